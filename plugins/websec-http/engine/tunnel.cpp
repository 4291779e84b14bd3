// The way through a proxy: CONNECT is a send of its own, to the proxy, with a line of its own. What follows in the tunnel is the target's.
#include "plugins/websec-http/engine/resolve.hpp"
#include "plugins/websec-http/engine/sender.hpp"
#include "plugins/websec-http/http/proxy.hpp"
#include "plugins/websec-http/scope/route.hpp"

namespace h5i::websec {

sdk::Result<std::unique_ptr<Wire>> Sender::wire_for(const Url& url, const Way& way, Intent& intent, bool h2) {
  if (options_.proxy) intent.via = options_.proxy->host_and_port();
  auto wire = transport_.take(intent, h2);
  if (!options_.proxy || wire->connected()) return wire;
  return open_tunnel(url, way);
}

sdk::Result<std::unique_ptr<Wire>> Sender::open_tunnel(const Url& url, const Way& way) {
  const Url& proxy = *options_.proxy;
  const std::string text = url.href_without_fragment();
  auto no = [&](const std::string& shown, const char* why, const std::string& because, int code, const std::string& rule = {}) -> sdk::Result<std::unique_ptr<Wire>> {
    H5I_SDK_TRY(refuse(shown, why, because, code, rule));
    return std::unique_ptr<Wire>();
  };
  Route route = decide_route(scope_, url, proxy);
  if (!route.allowed) return no(text, "proxy", explain_route(scope_, url, proxy, route).line, 1, scope_.rule_text(route.proxy));
  if (proxy.scheme() != "http") return no(text, "proxy", "a proxy that is spoken to in TLS: this engine does not", 2);
  auto to_proxy = H5I_SDK_TRY(way_to(proxy, route.proxy));
  if (!to_proxy) return std::unique_ptr<Wire>();
  ProxyAsk ask;
  if (auto refused = write_connect(tunnel_authority(url, way.address), options_.proxy_headers, &ask)) return no(text, "proxy", std::string(refused->id) + ": " + refused->what, 1);
  Intent intent;
  intent.method = "CONNECT";
  intent.url = proxy.href_without_fragment();
  intent.peer = to_proxy->peer.to.text();
  intent.rule = scope_.rule_text(route.proxy);
  intent.head = ask.head;
  intent.computed = ask.computed;
  intent.credentials = ask.credentials;
  intent.tunnel_to = way.peer.to.text();
  Asked how;
  how.method = "CONNECT";
  auto made = H5I_SDK_TRY(make(proxy, std::move(intent), to_proxy->peer, std::move(how), std::make_unique<Wire>(host_)));
  if (!made) return std::unique_ptr<Wire>();
  ProxyAnswer answer = judge_proxy(made->exchange->parser(), made->exchange->rest(), !options_.lenient);
  for (const Oddity& o : answer.oddities.list()) made->facts["facts"].push(json::Object{{"id", oddity_id(o.id)}, {"offset", o.offset}, {"count", o.count}});
  if (!answer.schemes.empty()) {
    json::Value schemes = json::Array{};
    for (const std::string& s : answer.schemes) schemes.push(s);
    made->facts["proxy_schemes"] = std::move(schemes);
  }
  std::unique_ptr<Wire> wire;
  if (answer.tunnel) wire = made->exchange->tunnel();
  H5I_SDK_TRY(told(made->exchange->sent(), *made));
  if (!wire) out_.code = std::max(out_.code, 1);  // the proxy answered, and the target was not asked
  return wire;
}

}  // namespace h5i::websec
