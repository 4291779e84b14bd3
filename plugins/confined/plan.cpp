#include "plan.hpp"

#include "baked.hpp"
#include "limits.hpp"

namespace h5i::confined {
namespace {

using json::Object;

constexpr uint64_t kRootBytes = 16u << 20, kRootInodes = 16384;  // names and small files only
constexpr int kUmask = 022;
// What a hostname, a name service and a program's own name look-up agree on without a network; see /etc/hosts in the
// box.
constexpr const char* kHostname = "box";
constexpr uint64_t kScopeAbstractSockets = 1, kScopeSignals = 2;

json::Value landlock(const HostFacts& facts, json::Array rules) {
  uint64_t scoped = facts.landlock_abi >= 6 ? kScopeAbstractSockets | kScopeSignals : 0;
  // TCP rights are left to the network namespace: a rule names one port, and the box's own loopback has all of them.
  return Object{{"abi", facts.landlock_abi},
                {"handled_fs", landlock_rights(facts.landlock_abi)},
                {"handled_net", 0},
                {"scoped", scoped},
                {"rules", std::move(rules)}};
}

json::Value seccomp(const Request& request) {
  const BakedFilter& filter = baked_filter(native_arch(), request.unix_sockets);
  Object notify{{"default", kDefaultErrno}};
  for (uint32_t i = 0; i < filter.errno_count; i++)
    notify.append_unchecked(std::to_string(filter.errnos[i].number), filter.errnos[i].value);
  return Object{{"program", filter.program_base64}, {"sha256", filter.sha256}, {"notify", std::move(notify)}};
}

// Packet rules hold the network alone; what Landlock would double, and what of it is missing on this kernel.
NotEnforced landlock_ports(int abi) {
  std::string detail = "packet rules alone hold where the box connects: ";
  if (abi < 4) detail += "Landlock of this kernel (ABI " + std::to_string(abi) + ") has no rules for the network, which came with ABI 4";
  else detail += "a Landlock rule names a port and no address, and the box's own loopback has every port";
  if (abi < 6) detail += std::string("; the way out is not kept from ") + (abi < 4 ? "the host's TCP ports, " : "") + "its abstract sockets and its processes, which takes ABI " + (abi < 4 ? "4 and 6" : "6");
  return {"net.landlock-ports", abi < 4 ? "landlock-abi" : "ports-without-addresses", std::move(detail)};
}

// Everything of the policy that this tier does not hold here. The rest is held by view, filter, limits, or the core.
void declare(const Request& request, const HostFacts& facts, std::vector<NotEnforced>& out) {
  out.push_back({"proc.tools", "first-program-only",
                 "tools limits the program that h5i starts; what that program starts is not limited"});
  if (request.names_image)
    out.push_back({"container.image", "no-image", "this tier shows the host's programs: the image that the profile names is not used"});
  if (request.denies_browser_verbs)
    out.push_back({"browser.deny", "no-browser-control", "nothing here stands between the box and a browser that it starts"});
  if (request.host_network) {
    out.push_back(
        {"net.host-loopback", "host-network", "net.mode host: services on the host's loopback are reachable, and what listens in the box is, wherever the host is"});
    if (request.unix_sockets && facts.landlock_abi < 6)
      out.push_back({"net.abstract-sockets", "landlock-abi",
                     "net.mode host with net.unix: abstract sockets of the host are reachable before Landlock ABI 6"});
  }
  if (request.tier->network) {
    out.push_back({"net.name-level", "pinned-addresses",
                   "names were looked up once, on the host: whatever else lives on their addresses is reachable as well"});
    out.push_back(landlock_ports(facts.landlock_abi));
    if (!request.egress["allow"].array().empty())
      out.push_back({"net.content", "not-inspected", "what is sent to a destination that is let through is not looked at"});
  } else if (!request.loopback.empty()) {
    out.push_back({"net.loopback", "no-uplink",
                   "this tier has no uplink: ports of the host's loopback cannot be reached from "
                   "a network namespace of the box"});
  }
}

// The host's loopback as the box sees it through its uplink.
constexpr const char* kGateway = "192.0.2.2";

json::Value network(const Request& request) {
  json::Value egress = request.egress;
  if (!request.loopback.empty()) {
    json::Array ports;
    for (uint64_t port : request.loopback) ports.push_back(std::to_string(port));
    egress["allow"].push(Object{{"id", "host-loopback"}, {"about", "net.loopback"}, {"protocol", "tcp"}, {"addresses", json::Array{kGateway}}, {"ports", std::move(ports)}});
  }
  bool out = !egress["allow"].array().empty();
  return Object{{"egress", std::move(egress)}, {"uplink", out ? "any" : "none"}, {"host_loopback", !request.loopback.empty()}};
}

}  // namespace

sdk::Result<Plan> build_plan(const Request& request, const HostFacts& facts, const HostView& host) {
  if (facts.landlock_abi < 1)
    return sdk::failure(H5I_E_TIER_PROBE_MISSING, "landlock: this kernel has none, or it is not enabled");
  View view = H5I_SDK_TRY(build_view(request, facts, host));
  Limits limits = H5I_SDK_TRY(build_limits(request, facts));

  std::vector<NotEnforced> unheld;
  declare(request, facts, unheld);
  unheld.insert(unheld.end(), limits.not_enforced.begin(), limits.not_enforced.end());
  unheld.insert(unheld.end(), view.not_enforced.begin(), view.not_enforced.end());
  json::Array not_enforced;
  for (NotEnforced& n : unheld)
    not_enforced.push_back(Object{{"field", n.field}, {"reason", n.reason}, {"detail", n.detail}});

  json::Array namespaces{"user", "mnt", "pid", "ipc", "uts", "cgroup"};
  if (!request.host_network) namespaces.push_back("net");
  json::Array exec, argv;
  for (const std::string& path : request.exec) exec.push_back(path);
  for (const std::string& word : request.argv) argv.push_back(word);
  Object env;
  for (const auto& [name, value] : request.env) env.append_unchecked(name, value);

  Plan plan;
  plan.placeholders = std::move(view.placeholders);
  plan.document = Object{
      {"schema", "h5i.plan/1"},
      {"tier", request.tier->id},
      {"namespaces", std::move(namespaces)},
      {"nested_user", true},
      {"ids", Object{{"inside_uid", request.box_uid},
                     {"inside_gid", request.box_gid},
                     {"outside_uid", request.box_uid},
                     {"outside_gid", request.box_gid}}},
      {"identity_map", false},
      {"root", Object{{"size", kRootBytes}, {"inodes", kRootInodes}}},
      {"mounts", std::move(view.mounts)},
      {"hostname", kHostname},
      {"loopback", !request.host_network},
      {"cwd", request.cwd.empty() ? request.work : request.cwd},
      {"exec", std::move(exec)},
      {"argv", std::move(argv)},
      {"env", std::move(env)},
      {"umask", kUmask},
      {"rlimits", std::move(limits.rlimits)},
      {"cgroup", std::move(limits.cgroup)},
      {"capabilities", "none"},
      {"no_new_privs", true},
      {"landlock", landlock(facts, std::move(view.landlock_rules))},
      {"seccomp", seccomp(request)},
      {"init", true},
      {"canary", nullptr},
      {"not_enforced", std::move(not_enforced)},
  };
  if (request.tier->network) plan.document["network"] = network(request);
  return plan;
}

sdk::Result<Plan> plan_of_run(const std::optional<Shown>& shown, const json::Value& document, const Request& request,
                              const HostFacts& facts, const HostView& host) {
  if (shown && shown->document == document) return shown->plan;
  return build_plan(request, facts, host);
}

}  // namespace h5i::confined
