#include "plugins/websec-http/scope/route.hpp"

#include <algorithm>

namespace h5i::websec {

sdk::Result<Url> parse_proxy(std::string_view text) {
  auto url = Url::parse(text);
  if (!url) return url;
  auto no = [](const char* what) { return sdk::failure(H5I_E_INVALID, std::string("proxy: ") + what + "; for example http://proxy.test:3128"); };
  if (url->scheme() != "http" && url->scheme() != "https") return no("only http and https proxies are spoken to");
  if (!url->host() || url->host()->text.empty()) return no("a host is needed");
  if (url->has_credentials()) return no("credentials are not part of the address: give them by name");
  if ((!url->path().empty() && url->path() != "/") || url->query() || url->fragment()) return no("nothing stands behind the port");
  return url;
}

std::string_view name(RouteReason reason) {
  switch (reason) {
    case RouteReason::ALLOWED: return "allowed";
    case RouteReason::TARGET: return "target";
    case RouteReason::PROXY: return "proxy";
    case RouteReason::PROXY_RULE: return "proxy-rule";
    case RouteReason::LOOP: return "proxy-loop";
  }
  return "";
}

Route decide_route(const Scope& scope, const Url& target, const Url& proxy) {
  Route route;
  route.target = scope.decide(target);
  route.proxy = scope.decide(proxy);
  bool own = std::any_of(route.proxy.by.begin(), route.proxy.by.end(), [&](size_t i) {
    const Rule& rule = scope.rules()[i];
    return rule.allow && !rule.wildcard && rule.path.empty();
  });
  bool loop = target.host() && proxy.host() && *target.host() == *proxy.host() && target.effective_port() == proxy.effective_port();
  if (!route.target.allowed) route.reason = RouteReason::TARGET;
  else if (!route.proxy.allowed) route.reason = RouteReason::PROXY;
  else if (!own) route.reason = RouteReason::PROXY_RULE;
  else if (loop) route.reason = RouteReason::LOOP;
  else route.reason = RouteReason::ALLOWED;
  route.allowed = route.reason == RouteReason::ALLOWED;
  return route;
}

Explanation explain_route(const Scope& scope, const Url& target, const Url& proxy, const Route& route) {
  Explanation root;
  switch (route.reason) {
    case RouteReason::ALLOWED: root.line = "allowed through the proxy"; break;
    case RouteReason::TARGET: root.line = "denied: the scope does not allow the target, through a proxy or without"; break;
    case RouteReason::PROXY: root.line = "denied: the scope does not allow the proxy, which is a target too"; break;
    case RouteReason::PROXY_RULE:
      root.line = "denied: the proxy needs a rule of its own, without a wildcard and without a path: ";
      root.line += "\"allow " + proxy.scheme() + "://" + proxy.host_and_port() + "\"";
      break;
    case RouteReason::LOOP: root.line = "denied: the target is the proxy itself"; break;
  }
  root.below.push_back(scope.explain(target, route.target));
  root.below.push_back(scope.explain(proxy, route.proxy));
  return root;
}

std::string tunnel_authority(const Url& target, const std::optional<Address>& pinned) {
  std::string host = target.hostname();
  if (pinned) host = pinned->v6 ? "[" + pinned->text() + "]" : pinned->text();
  return host + ":" + std::to_string(target.effective_port().value_or(0));
}

}  // namespace h5i::websec
