// h5i-proxy: the egress proxy of one box, a process of its own that holds nothing but the box's listening socket and the rules, and can do
// nothing but dial.
//
// Descriptor 3 is a SEQPACKET socket of whoever started it; it ends with that. One packet is one JSON object. Asked, once, with the
// listening socket as a descriptor: {"do":"begin","rules":[{"to","private"}]}; then any number of {"do":"replace","rules":...},
// {"do":"report"}. Answered: {"error":id,"what":text,"evidence":text}, {"begun":true}, {"replaced":true} or h5i.proxy/1.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <optional>

#include "core/base/json.hpp"
#include "core/broker/confinement.hpp"
#include "core/broker/egress_proxy.hpp"
#include "core/os/socket.hpp"

namespace {

using namespace h5i;
using namespace h5i::broker;

constexpr int kAsks = 3;
constexpr size_t kMaxRules = 1024;

Result<std::vector<policy::EgressRule>> rules_of(const Json& asked) {
  std::vector<policy::EgressRule> out;
  if (!asked["rules"].is_array() || asked["rules"].array().size() > kMaxRules) return make_error(Errc::INVALID, "a list of at most 1024 rules is expected");
  for (const Json& r : asked["rules"].array()) out.push_back(H5I_TRY(policy::egress_from_json(r)));
  return out;
}

Result<Json> answer(std::optional<EgressProxy>& proxy, os::Packet packet) {
  Json asked = H5I_TRY(parse_json(packet.bytes, "request to h5i-proxy", os::kMaxPacket));
  std::string verb = asked["do"].string();
  if (verb == "begin") {
    if (proxy || packet.fds.size() != 1) return make_error(Errc::INVALID, "one beginning, with one listening socket, is expected");
    auto rules = H5I_TRY(rules_of(asked));
    H5I_TRY(confine_proxy());
    proxy.emplace(H5I_TRY(EgressProxy::make(std::move(packet.fds[0]), std::move(rules), look_up)));
    return Json(json::Object{{"begun", true}});
  }
  if (!proxy || !packet.fds.empty()) return make_error(Errc::INVALID, "the proxy was not begun, or is given what it did not ask for");
  if (verb == "replace") {
    proxy->replace(H5I_TRY(rules_of(asked)));
    return Json(json::Object{{"replaced", true}});
  }
  if (verb == "report") return proxy->report();
  return make_error(Errc::INVALID, "no such request", verb);
}

}  // namespace

int main() {
  if (fcntl(kAsks, F_SETFD, FD_CLOEXEC) != 0) return 64;
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  signal(SIGPIPE, SIG_IGN);
  rlimit files{1024, 1024}, core{0, 0};  // two for each connection, and those of the look-ups
  setrlimit(RLIMIT_NOFILE, &files);
  setrlimit(RLIMIT_CORE, &core);
  // A resolver that says nothing gives its thread back before the next client has waited in vain.
  setenv("RES_OPTIONS", "timeout:2 attempts:2", 1);
  std::optional<EgressProxy> proxy;
  for (;;) {
    if (proxy && !proxy->serve(kAsks)) return 1;
    auto packet = os::receive_packet(kAsks, proxy.has_value());
    if (!packet && packet.error().code == Errc::BUSY) continue;
    if (!packet || !*packet) _exit(0);  // nobody is left to ask, and no look-up is waited for
    auto said = answer(proxy, std::move(**packet));
    Json out = said ? std::move(*said) : Json(json::Object{{"error", errc_id(said.error().code)}, {"what", said.error().what}, {"evidence", said.error().evidence}});
    if (!os::send_packet(kAsks, json::canonical(out))) _exit(1);
  }
}
