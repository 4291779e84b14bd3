// A target that is reached through a proxy. The proxy is a machine that gets our bytes, so it is a target too and needs a rule of its own; it takes
// nothing away from what the target needs.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "plugins/websec-http/scope/dial.hpp"
#include "plugins/websec-http/scope/scope.hpp"

namespace h5i::websec {

// "http://proxy.test:3128": http or https, a host, nothing behind the port but "/", and no credentials, which enter by name.
// H5I_E_INVALID or H5I_E_TOO_LARGE with what is wrong.
sdk::Result<Url> parse_proxy(std::string_view text);

enum class RouteReason {
  ALLOWED,
  TARGET,      // the scope does not allow the target
  PROXY,       // nor the proxy
  PROXY_RULE,  // only a wildcard or a rule with a path allows the proxy: neither was written with it in mind
  LOOP,        // the target is the proxy
};
std::string_view name(RouteReason reason);  // the word in the log: "allowed", "target", "proxy", "proxy-rule", "proxy-loop"

struct Route {
  bool allowed = false;
  RouteReason reason = RouteReason::TARGET;  // the first that holds, in the order above
  Decision target, proxy;                    // both were asked, whatever came of the first
};
// Each of the two is resolved and judged with its own decision by choose_address(): the proxy's address is the one that is dialled.
Route decide_route(const Scope& scope, const Url& target, const Url& proxy);
Explanation explain_route(const Scope& scope, const Url& target, const Url& proxy, const Route& route);

// What CONNECT asks for. `pinned`: the target's address, resolved and judged here, so that the proxy is not asked to resolve again. Without one the name
// goes to the proxy, and nobody on our side sees where it leads: whoever calls so says it in the record.
std::string tunnel_authority(const Url& target, const std::optional<Address>& pinned);

}  // namespace h5i::websec
