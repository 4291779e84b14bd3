#include "core/session/egress.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/base/ids.hpp"
#include "core/base/text.hpp"
#include "core/base/unique_fd.hpp"
#include "core/policy/allow_list.hpp"

namespace h5i::session {
namespace {

constexpr int kLookUpMs = 10'000;
constexpr size_t kMaxAnswer = 1 << 20;
constexpr size_t kMaxOfName = 32;  // addresses that are pinned of one name
constexpr uint16_t kLogGroup = 5;

std::string ports_text(const policy::EgressRule& r) {
  return r.low == r.high ? std::to_string(r.low) : std::to_string(r.low) + "-" + std::to_string(r.high);
}

Address address_of(const sockaddr* sa) {
  Address a;
  a.v6 = sa->sa_family == AF_INET6;
  if (a.v6) memcpy(a.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(sa)->sin6_addr, 16);
  else memcpy(a.bytes.data(), &reinterpret_cast<const sockaddr_in*>(sa)->sin_addr, 4);
  return a;
}

// "name address\n" for each.
[[noreturn]] void resolve_all(const std::vector<std::string>& names, int out, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(1);
  for (const std::string& name : names) {
    addrinfo hints{}, *list = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) continue;
    for (addrinfo* a = list; a; a = a->ai_next) {
      if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
      std::string line = name + " " + to_text(address_of(a->ai_addr)) + "\n";
      if (write(out, line.data(), line.size()) < 0) _exit(1);
    }
    freeaddrinfo(list);
  }
  _exit(0);
}

}  // namespace

Result<Addresses> look_up(const std::vector<std::string>& names) {
  Addresses out;
  if (names.empty()) return out;
  int p[2];
  if (pipe2(p, O_CLOEXEC) != 0) return sys_error("pipe");
  UniqueFd in(p[0]), child_end(p[1]);
  pid_t self = getpid(), pid = fork();
  if (pid < 0) return sys_error("fork");
  if (pid == 0) resolve_all(names, child_end.get(), self);
  child_end.reset();
  std::string text;
  bool late = false;
  for (const int64_t until = monotonic_ns() + int64_t{kLookUpMs} * 1'000'000;;) {
    int left = static_cast<int>((until - monotonic_ns()) / 1'000'000);
    pollfd q{in.get(), POLLIN, 0};
    int n = left > 0 ? poll(&q, 1, left) : 0;
    if (n < 0 && errno == EINTR) continue;
    late = n == 0;
    char buffer[4096];
    ssize_t got = n > 0 ? read(in.get(), buffer, sizeof buffer) : 0;
    if (got <= 0 || text.size() > kMaxAnswer) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (late) return make_error(Errc::EGRESS_RESOLVE, "names of net.egress could not be looked up in time", "no answer after 10 s");
  for (size_t at = 0; at < text.size();) {
    size_t space = text.find(' ', at), end = text.find('\n', at);
    if (space == std::string::npos || end == std::string::npos || space > end) break;
    std::string name = text.substr(at, space - at), address = text.substr(space + 1, end - space - 1);
    auto a = address.find(':') == std::string::npos ? parse_ipv4(address) : parse_ipv6(address);
    auto& list = out[name];
    if (a && std::find(list.begin(), list.end(), *a) == list.end()) list.push_back(*a);
    at = end + 1;
  }
  return out;
}

std::vector<std::string> names_of(const std::vector<policy::EgressRule>& rules) {
  std::vector<std::string> names;
  for (const policy::EgressRule& r : rules)
    if (r.kind == policy::EgressRule::Kind::NAME && std::find(names.begin(), names.end(), r.name) == names.end()) names.push_back(r.name);
  return names;
}

Result<Json> destination(const policy::EgressRule& r, const Addresses& found, const std::string& id, Json& refused) {
  using policy::EgressRule;
  if (r.kind == EgressRule::Kind::SUFFIX)
    return make_error(Errc::POLICY_EGRESS_TIER, "egress rule " + r.text() + " cannot be held by packet rules", "a suffix has no addresses that could be pinned", "name the hosts, or choose a tier that sees names on the wire");
  Json addresses = json::Array{};
  if (r.kind == EgressRule::Kind::NETWORK) {
    for (const auto& [from, to] : reachable_parts(r.network, r.private_ok)) addresses.push(from == to ? to_text(from) : to_text(from) + "-" + to_text(to));
    if (addresses.array().empty()) return make_error(Errc::EGRESS_RESOLVE, "egress rule " + r.text() + " leads nowhere", "no box may reach any of it");
  } else {
    auto at = found.find(r.name);
    std::string where;
    for (const Address& a : at == found.end() ? std::vector<Address>() : at->second) {
      where += (where.empty() ? "" : ", ") + to_text(a);
      if (addresses.array().size() == kMaxOfName) break;
      if (policy::admits_address(r, a, r.low)) addresses.push(to_text(a));
      else refused.push(json::Object{{"rule", r.text()}, {"address", to_text(a)}});
    }
    if (addresses.array().empty())
      return make_error(Errc::EGRESS_RESOLVE, "egress rule " + r.text() + " leads nowhere",
                        where.empty() ? "the name has no address on this host" : "no box may reach where the name points: " + where);
  }
  return Json(json::Object{{"id", id}, {"about", r.text()}, {"pinned", r.kind == EgressRule::Kind::NAME}, {"protocol", "tcp"}, {"addresses", addresses}, {"ports", json::Array{ports_text(r)}}});
}

std::string hosts_lines(const Json& allow) {
  std::map<std::string, std::vector<std::string>> pinned;
  for (const Json& d : allow.array()) {
    if (!d["pinned"].boolean()) continue;
    const std::string& about = d["about"].string();
    auto& list = pinned[about.substr(0, about.rfind(':'))];
    for (const Json& a : d["addresses"].array())
      if (std::find(list.begin(), list.end(), a.string()) == list.end()) list.push_back(a.string());
  }
  std::string out;
  for (const auto& [name, list] : pinned)
    for (const std::string& a : list) out += a + " " + name + "\n";
  return out;
}

Result<EgressNow> egress_now(const Json& profile, const UserDirs& dirs, const Lookup& lookup) {
  using policy::EgressRule;
  EgressNow out{Json(json::Object{}), Json(json::Array{}), Json(json::Array{})};
  std::vector<EgressRule> own;
  for (const Json& rule : profile["net"]["egress"].array()) own.push_back(H5I_TRY(policy::egress_from_json(rule)));
  policy::MergedEgress merged = policy::merge_allow_list(own, H5I_TRY(policy::load_allow_list(dirs.config + "/egress-allow", geteuid())));
  for (const EgressRule& r : merged.added) out.added.push(r.text());

  Addresses found;
  if (std::none_of(merged.rules.begin(), merged.rules.end(), [](const EgressRule& r) { return r.kind == EgressRule::Kind::SUFFIX; }))
    found = H5I_TRY(lookup(names_of(merged.rules)));
  Json allow = json::Array{};
  for (const EgressRule& r : merged.rules) allow.push(H5I_TRY(destination(r, found, "r" + std::to_string(allow.array().size() + 1), out.refused)));
  out.network = json::Object{{"egress", json::Object{{"schema", "h5i.egress/1"}, {"allow", allow}, {"log_group", kLogGroup}}}, {"hosts", hosts_lines(allow)}};
  return out;
}

bool takes_egress(const Json& claims) {
  return std::any_of(claims.array().begin(), claims.array().end(), [](const Json& c) { return c.string() == "net.egress"; });
}

}  // namespace h5i::session
