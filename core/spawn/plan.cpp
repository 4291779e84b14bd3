#include "core/spawn/plan.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "core/base/text.hpp"
#include "core/os/landlock.hpp"
#include "core/os/mount.hpp"
#include "core/os/namespace.hpp"

namespace h5i::spawn {
namespace {

constexpr size_t kMaxList = 4096;     // entries of any list
constexpr size_t kMaxPathLen = 4095;  // PATH_MAX without the NUL
constexpr size_t kMaxArg = 131071;    // MAX_ARG_STRLEN without the NUL
constexpr size_t kMaxDocument = 4u << 20;

Error bad(const std::string& where, std::string why) {
  return make_error(Errc::INVALID, "spawn plan refused at " + printable(where), std::move(why));
}

// One object of the document: every key is asked for by name, and what nobody asked for is an error at the end.
class Fields {
 public:
  static Result<Fields> of(const Json& v, std::string where) {
    if (!v.is_object()) return bad(where, "an object is expected");
    return Fields(v, std::move(where));
  }
  std::string at(std::string_view key) const {
    return where_.empty() ? std::string(key) : where_ + "." + std::string(key);
  }
  bool present(std::string_view key) {
    seen_.emplace(key);
    const Json* v = v_->object().find(key);
    return v && !v->is_null();
  }
  const Json& get(std::string_view key) {
    seen_.emplace(key);
    return (*v_)[key];
  }
  Result<std::string> text(std::string_view key, size_t limit = kMaxPathLen) {
    const Json& v = get(key);
    if (!v.is_string()) return bad(at(key), "text is expected");
    return checked_text(v.string(), at(key), limit);
  }
  Result<std::string> text_or(std::string_view key, std::string fallback, size_t limit = kMaxPathLen) {
    if (!present(key)) return fallback;
    return text(key, limit);
  }
  Result<std::string> path(std::string_view key) {
    auto p = H5I_TRY(text(key));
    return checked_path(std::move(p), at(key));
  }
  Result<bool> flag(std::string_view key) {
    if (!present(key)) return false;
    const Json& v = get(key);
    if (!v.is_bool()) return bad(at(key), "true or false is expected");
    return v.boolean();
  }
  Result<uint64_t> number(std::string_view key, uint64_t max) {
    const Json& v = get(key);
    if (!v.is_int() || v.integer() < 0 || static_cast<uint64_t>(v.integer()) > max)
      return bad(at(key), "an integer of 0 to " + std::to_string(max) + " is expected");
    return static_cast<uint64_t>(v.integer());
  }
  Result<uint64_t> number_or(std::string_view key, uint64_t fallback, uint64_t max) {
    if (!present(key)) return fallback;
    return number(key, max);
  }
  Result<const json::Array*> list(std::string_view key) {
    static const json::Array kEmpty;
    if (!present(key)) return &kEmpty;
    const Json& v = get(key);
    if (!v.is_array()) return bad(at(key), "a list is expected");
    if (v.array().size() > kMaxList) return bad(at(key), "too many entries");
    return &v.array();
  }
  Result<std::vector<std::string>> texts(std::string_view key, size_t limit) {
    std::vector<std::string> out;
    for (const Json& v : *H5I_TRY(list(key))) {
      std::string place = at(key) + "[" + std::to_string(out.size()) + "]";
      if (!v.is_string()) return bad(place, "text is expected");
      out.push_back(H5I_TRY(checked_text(v.string(), place, limit)));
    }
    return out;
  }
  Result<void> finish() const {
    for (const json::Member& m : v_->object())
      if (!seen_.count(m.first)) return bad(at(m.first), "unknown key");
    return {};
  }

  static Result<std::string> checked_text(const std::string& s, const std::string& place, size_t limit) {
    if (s.size() > limit) return bad(place, "longer than " + std::to_string(limit) + " bytes");
    if (s.find('\0') != std::string::npos) return bad(place, "a NUL inside");
    return s;
  }
  // Absolute, and spelled the one way that is comparable: no empty, "." or ".." component, no '/' at the end.
  static Result<std::string> checked_path(std::string p, const std::string& place) {
    if (p == "/") return p;
    if (p.empty() || p[0] != '/') return bad(place, "an absolute path is expected");
    for (size_t i = 1; i <= p.size();) {
      size_t end = std::min(p.find('/', i), p.size());
      std::string_view part = std::string_view(p).substr(i, end - i);
      if (part.empty() || part == "." || part == "..") return bad(place, "an empty, '.' or '..' component");
      if (part.size() > 255) return bad(place, "a component is longer than 255 bytes");
      i = end + 1;
    }
    return p;
  }

 private:
  Fields(const Json& v, std::string where) : v_(&v), where_(std::move(where)) {}
  const Json* v_;
  std::string where_;
  std::set<std::string, std::less<>> seen_;
};

struct FlagName {
  const char* name;
  uint64_t flag;
};
constexpr FlagName kMountFlags[] = {
    {"ro", os::kMountReadOnly}, {"nosuid", os::kMountNoSuid}, {"nodev", os::kMountNoDev}, {"noexec", os::kMountNoExec}};

struct KindName {
  const char* name;
  MountSpec::Kind kind;
};
constexpr KindName kKinds[] = {{"bind", MountSpec::Kind::bind}, {"tmpfs", MountSpec::Kind::tmpfs},
                               {"proc", MountSpec::Kind::proc}, {"devpts", MountSpec::Kind::devpts},
                               {"mask", MountSpec::Kind::mask}, {"dir", MountSpec::Kind::dir},
                               {"file", MountSpec::Kind::file}, {"symlink", MountSpec::Kind::symlink}};

struct ResourceName {
  const char* name;
  int resource;
};
constexpr ResourceName kResources[] = {
    {"as", RLIMIT_AS},           {"core", RLIMIT_CORE},     {"cpu", RLIMIT_CPU},
    {"data", RLIMIT_DATA},       {"fsize", RLIMIT_FSIZE},   {"locks", RLIMIT_LOCKS},
    {"memlock", RLIMIT_MEMLOCK}, {"nice", RLIMIT_NICE},     {"msgqueue", RLIMIT_MSGQUEUE},
    {"nofile", RLIMIT_NOFILE},   {"nproc", RLIMIT_NPROC},   {"rss", RLIMIT_RSS},
    {"rtprio", RLIMIT_RTPRIO},   {"rttime", RLIMIT_RTTIME}, {"sigpending", RLIMIT_SIGPENDING},
    {"stack", RLIMIT_STACK}};

constexpr uint64_t kMaxId = 0xfffffffe;
constexpr uint64_t kMaxBytes = 1ull << 50;
constexpr uint64_t kMaxMode = 01777;  // no set-id bit is ever made by set-up

Result<uint64_t> mount_flags(Fields& f) {
  uint64_t out = 0;
  for (const std::string& s : H5I_TRY(f.texts("flags", 16))) {
    auto at = std::find_if(std::begin(kMountFlags), std::end(kMountFlags), [&](auto& k) { return s == k.name; });
    if (at == std::end(kMountFlags)) return bad(f.at("flags"), "unknown flag " + printable(s));
    out |= at->flag;
  }
  return out;
}

Result<MountSpec> mount_spec(const Json& v, const std::string& where) {
  auto f = H5I_TRY(Fields::of(v, where));
  MountSpec m;
  auto kind = H5I_TRY(f.text("kind", 16));
  auto at = std::find_if(std::begin(kKinds), std::end(kKinds), [&](auto& k) { return kind == k.name; });
  if (at == std::end(kKinds)) return bad(f.at("kind"), "unknown kind " + printable(kind));
  m.kind = at->kind;
  m.target = H5I_TRY(f.path("target"));
  if (m.target == "/") return bad(f.at("target"), "the root itself is no target");
  switch (m.kind) {
    case MountSpec::Kind::bind:
      m.source = H5I_TRY(f.path("source"));
      m.flags = H5I_TRY(mount_flags(f));
      m.recursive = H5I_TRY(f.flag("recursive"));
      m.idmap = H5I_TRY(f.flag("idmap"));
      break;
    case MountSpec::Kind::tmpfs:
      m.flags = H5I_TRY(mount_flags(f));
      m.size = H5I_TRY(f.number("size", kMaxBytes));
      m.inodes = H5I_TRY(f.number_or("inodes", 0, kMaxBytes));
      m.mode = static_cast<unsigned>(H5I_TRY(f.number_or("mode", 0755, kMaxMode)));
      if (m.size == 0) return bad(f.at("size"), "a tmpfs without a limit");
      break;
    case MountSpec::Kind::mask:
      m.optional = H5I_TRY(f.flag("optional"));
      break;
    case MountSpec::Kind::dir:
      m.mode = static_cast<unsigned>(H5I_TRY(f.number_or("mode", 0755, kMaxMode)));
      break;
    case MountSpec::Kind::file:
      m.content = H5I_TRY(f.text("content", 1u << 20));
      m.mode = static_cast<unsigned>(H5I_TRY(f.number_or("mode", 0444, 0777)));
      break;
    case MountSpec::Kind::symlink:
      m.to = H5I_TRY(f.text("to"));
      if (m.to.empty()) return bad(f.at("to"), "an empty link");
      break;
    case MountSpec::Kind::proc:
    case MountSpec::Kind::devpts:
      break;
  }
  H5I_TRY(f.finish());
  return m;
}

Result<RlimitSpec> rlimit_spec(const Json& v, const std::string& where) {
  auto f = H5I_TRY(Fields::of(v, where));
  RlimitSpec r;
  r.name = H5I_TRY(f.text("name", 16));
  auto at = std::find_if(std::begin(kResources), std::end(kResources), [&](auto& k) { return r.name == k.name; });
  if (at == std::end(kResources)) return bad(f.at("name"), "unknown resource " + printable(r.name));
  r.resource = at->resource;
  auto value = [&](const char* key) -> Result<uint64_t> {
    const Json& n = f.get(key);
    if (!n.is_int() || n.integer() < -1) return bad(f.at(key), "-1 or a limit is expected");
    return n.integer() == -1 ? UINT64_MAX : static_cast<uint64_t>(n.integer());
  };
  r.soft = H5I_TRY(value("soft"));
  r.hard = H5I_TRY(value("hard"));
  if (r.soft > r.hard) return bad(f.at("soft"), "above the hard limit");
  H5I_TRY(f.finish());
  return r;
}

Result<LandlockSpec> landlock_spec(const Json& v) {
  namespace ll = os::landlock;
  auto f = H5I_TRY(Fields::of(v, "landlock"));
  LandlockSpec s;
  s.abi = static_cast<int>(H5I_TRY(f.number("abi", 1000)));
  if (s.abi < 1) return bad("landlock.abi", "at least 1");
  s.handled_fs = H5I_TRY(f.number("handled_fs", INT64_MAX));
  s.handled_net = H5I_TRY(f.number_or("handled_net", 0, INT64_MAX));
  s.scoped = H5I_TRY(f.number_or("scoped", 0, INT64_MAX));
  if (s.handled_fs & ~ll::all_fs(s.abi)) return bad("landlock.handled_fs", "rights that this ABI does not have");
  if (s.handled_net & ~ll::all_net(s.abi)) return bad("landlock.handled_net", "rights that this ABI does not have");
  if (s.scoped & ~ll::all_scopes(s.abi)) return bad("landlock.scoped", "scopes that this ABI does not have");
  if (!s.handled_fs && !s.handled_net && !s.scoped) return bad("landlock", "a ruleset that handles nothing");
  for (const Json& rule : *H5I_TRY(f.list("rules"))) {
    std::string where = "landlock.rules[" + std::to_string(s.rules.size()) + "]";
    auto r = H5I_TRY(Fields::of(rule, where));
    LandlockRule out;
    out.access = H5I_TRY(r.number("access", INT64_MAX));
    if (out.access == 0) return bad(r.at("access"), "a rule that grants nothing");
    if (r.present("port")) {
      out.port = H5I_TRY(r.number("port", 65535));
      if (out.access & ~s.handled_net) return bad(r.at("access"), "rights that are not handled");
    } else {
      out.path = H5I_TRY(r.path("path"));
      if (out.access & ~s.handled_fs) return bad(r.at("access"), "rights that are not handled");
    }
    H5I_TRY(r.finish());
    s.rules.push_back(std::move(out));
  }
  H5I_TRY(f.finish());
  return s;
}

// The child's last calls are made under the filter. One that refuses or notifies them would hang or break the start, so
// the plan is refused before anything is cloned.
Result<void> check_last_calls(const os::seccomp::Program& program, bool notify, bool canary) {
  struct Call {
    const char* name;
    long nr;
    bool needed;
  };
  const Call calls[] = {{"sendmsg", __NR_sendmsg, notify},   {"write", __NR_write, true},
                        {"read", __NR_read, true},           {"execve", __NR_execve, !canary},
                        {"execveat", __NR_execveat, canary}, {"exit_group", __NR_exit_group, true}};
  for (const Call& c : calls) {
    if (!c.needed) continue;
    seccomp_data d{};
    d.nr = static_cast<int>(c.nr);
    d.arch = os::seccomp::kNativeArch;
    uint32_t action = os::seccomp::evaluate(program, d) & SECCOMP_RET_ACTION_FULL;
    if (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG)
      return bad("seccomp.program", std::string("it does not allow ") + c.name + ", which the start itself needs");
  }
  return {};
}

Result<SeccompSpec> seccomp_spec(const Json& v, bool canary) {
  auto f = H5I_TRY(Fields::of(v, "seccomp"));
  SeccompSpec s;
  std::string raw;
  const std::string encoded = H5I_TRY(f.text("program", 64u << 10));
  if (!unbase64(encoded, &raw)) return bad("seccomp.program", "not base64");
  s.sha256 = H5I_TRY(f.text("sha256", 64));
  if (sha256_hex(raw) != s.sha256) return bad("seccomp.sha256", "it is not the digest of the program");
  auto program = os::seccomp::decode(raw);
  if (!program) return bad("seccomp.program", program.error().evidence);
  s.program = std::move(*program);
  if (f.present("notify")) {
    s.notify = true;
    const Json& table = f.get("notify");
    if (!table.is_object()) return bad("seccomp.notify", "an object is expected");
    bool has_default = false;
    for (const json::Member& m : table.object()) {
      std::string where = "seccomp.notify." + m.first;
      if (!m.second.is_int() || m.second.integer() < 1 || m.second.integer() > 4095)
        return bad(where, "an errno of 1 to 4095 is expected");  // 0 would report success for a call never made
      int err = static_cast<int>(m.second.integer());
      if (m.first == "default") {
        s.default_answer = err;
        has_default = true;
        continue;
      }
      uint32_t nr = 0;
      auto [end, ec] = std::from_chars(m.first.data(), m.first.data() + m.first.size(), nr);
      if (ec != std::errc() || end != m.first.data() + m.first.size() || std::to_string(nr) != m.first)
        return bad(where, "the number of a system call or 'default' is expected");
      s.answers[nr] = err;
    }
    if (!has_default) return bad("seccomp.notify", "'default' is missing");
  }
  H5I_TRY(f.finish());
  H5I_TRY(check_last_calls(s.program, s.notify, canary));
  return s;
}

Result<void> check_combinations(const Plan& p) {
  const uint64_t user = *os::namespace_flag("user"), mnt = *os::namespace_flag("mnt"), pid = *os::namespace_flag("pid"),
                 net = *os::namespace_flag("net"), uts = *os::namespace_flag("uts");
  if (p.nested_user && !(p.has(user) && p.has(mnt))) return bad("nested_user", "needs the namespaces user and mnt");
  if (p.has_root && !p.has(mnt)) return bad("root", "needs the namespace mnt");
  if (!p.mounts.empty() && !p.has_root) return bad("mounts", "need a root");
  if (p.has_root && p.identity_map) return bad("identity_map", "with a root of its own, confinement is meant");
  if (!p.hostname.empty() && !p.has(uts)) return bad("hostname", "needs the namespace uts");
  if (p.loopback && !p.has(net)) return bad("loopback", "needs the namespace net");
  if (p.network && (!p.has(net) || !p.nested_user || !p.init)) return bad("network", "needs the namespace net, nested_user and init: else the box could change its rules, or outlive them");
  if (p.init && !p.has(pid)) return bad("init", "needs the namespace pid");
  if (!p.init && p.has(pid)) return bad("namespaces", "pid needs init: a workload as pid 1 would ignore signals");
  if (p.has(user) && !p.identity_map && (p.outside_uid == 0 || p.outside_gid == 0 || p.inside_uid == 0))
    return bad("ids", "0 is root, inside or outside; only an identity map keeps it");
  if ((!p.has(user) || p.identity_map) && (p.inside_uid != p.outside_uid || p.inside_gid != p.outside_gid))
    return bad("ids", "inside and outside differ without a map that could make them differ");
  if ((p.landlock || p.seccomp) && !p.no_new_privs) return bad("no_new_privs", "landlock and seccomp need it");
  if (p.nested_user && p.keep_capabilities) return bad("capabilities", "'keep' would undo the nested user namespace");
  bool idmap = std::any_of(p.mounts.begin(), p.mounts.end(), [](auto& m) { return m.idmap; });
  if (idmap && !p.has(user)) return bad("mounts", "idmap needs the namespace user");
  if (p.canary) {
    if (!p.exec.empty() || !p.argv.empty()) return bad("canary", "with exec or argv, it is not clear what would run");
    if (p.canary->empty()) return bad("canary", "without an act");
  } else {
    if (p.exec.empty()) return bad("exec", "no program");
    if (p.argv.empty()) return bad("argv", "no program name");
  }
  return {};
}

Result<NetworkSpec> network_spec(const Json& v, bool canary) {
  auto f = H5I_TRY(Fields::of(v, "network"));
  NetworkSpec n;
  n.egress = f.get("egress");
  if (!n.egress.is_object()) return bad("network.egress", "an object is expected");
  n.uplink = H5I_TRY(f.text("uplink", 32));
  // A canary proves the rules and reaches nobody; a workload's packets are nobody's to answer but the world's.
  bool fits = canary ? n.uplink == "observed" : n.uplink == "any" || n.uplink == "slirp4netns" || n.uplink == "pasta";
  if (n.uplink != "none" && !fits) return bad("network.uplink", "no uplink of a " + std::string(canary ? "canary: " : "workload: ") + printable(n.uplink));
  n.host_loopback = H5I_TRY(f.flag("host_loopback"));
  H5I_TRY(f.finish());
  return n;
}

Result<Plan> decode_document(const Json& doc) {
  auto f = H5I_TRY(Fields::of(doc, ""));
  Plan p;
  if (H5I_TRY(f.text("schema", 64)) != "h5i.plan/1") return bad("schema", "h5i.plan/1 is expected");
  p.tier = H5I_TRY(f.text("tier", 128));
  p.namespaces = H5I_TRY(f.texts("namespaces", 16));
  for (const std::string& n : p.namespaces) {
    auto flag = os::namespace_flag(n);
    if (!flag) return bad("namespaces", "unknown namespace " + printable(n));
    if (p.clone_flags & *flag) return bad("namespaces", n + " twice");
    p.clone_flags |= *flag;
  }
  p.nested_user = H5I_TRY(f.flag("nested_user"));
  p.identity_map = H5I_TRY(f.flag("identity_map"));
  {
    auto ids = H5I_TRY(Fields::of(f.get("ids"), "ids"));
    p.inside_uid = static_cast<uint32_t>(H5I_TRY(ids.number("inside_uid", kMaxId)));
    p.inside_gid = static_cast<uint32_t>(H5I_TRY(ids.number("inside_gid", kMaxId)));
    p.outside_uid = static_cast<uint32_t>(H5I_TRY(ids.number("outside_uid", kMaxId)));
    p.outside_gid = static_cast<uint32_t>(H5I_TRY(ids.number("outside_gid", kMaxId)));
    H5I_TRY(ids.finish());
  }
  if (f.present("root")) {
    auto root = H5I_TRY(Fields::of(f.get("root"), "root"));
    p.has_root = true;
    p.root_size = H5I_TRY(root.number("size", kMaxBytes));
    p.root_inodes = H5I_TRY(root.number_or("inodes", 0, kMaxBytes));
    if (p.root_size == 0) return bad("root.size", "a root without a limit");
    H5I_TRY(root.finish());
  }
  for (const Json& m : *H5I_TRY(f.list("mounts")))
    p.mounts.push_back(H5I_TRY(mount_spec(m, "mounts[" + std::to_string(p.mounts.size()) + "]")));
  p.hostname = H5I_TRY(f.text_or("hostname", "", 64));
  p.loopback = H5I_TRY(f.flag("loopback"));
  if (f.present("network")) p.network = H5I_TRY(network_spec(f.get("network"), f.present("canary")));
  p.cwd = H5I_TRY(f.path("cwd"));
  p.exec = H5I_TRY(f.texts("exec", kMaxPathLen));
  // Looked up in the box's view by the workload itself, so "/work/./x" and "/work/../x" mean what they mean there.
  for (size_t i = 0; i < p.exec.size(); i++)
    if (p.exec[i].empty() || p.exec[i][0] != '/')
      return bad("exec[" + std::to_string(i) + "]", "an absolute path is expected");
  p.argv = H5I_TRY(f.texts("argv", kMaxArg));
  if (!f.get("env").is_object()) return bad("env", "an object is expected");
  for (const json::Member& m : f.get("env").object()) {
    std::string where = "env." + m.first;
    if (m.first.empty() || m.first.find('=') != std::string::npos || m.first.find('\0') != std::string::npos)
      return bad(where, "not a name");
    if (!m.second.is_string()) return bad(where, "text is expected");
    if (m.first.size() + m.second.string().size() >= kMaxArg) return bad(where, "too long");
    p.env[m.first] = H5I_TRY(Fields::checked_text(m.second.string(), where, kMaxArg));
  }
  p.umask = static_cast<unsigned>(H5I_TRY(f.number_or("umask", 022, 0777)));
  for (const Json& r : *H5I_TRY(f.list("rlimits"))) {
    p.rlimits.push_back(H5I_TRY(rlimit_spec(r, "rlimits[" + std::to_string(p.rlimits.size()) + "]")));
    for (size_t i = 0; i + 1 < p.rlimits.size(); i++)
      if (p.rlimits[i].name == p.rlimits.back().name) return bad("rlimits", p.rlimits.back().name + " twice");
  }
  if (f.present("cgroup")) {
    auto c = H5I_TRY(Fields::of(f.get("cgroup"), "cgroup"));
    p.cgroup_base = H5I_TRY(c.path("base"));
    if (p.cgroup_base == "/") return bad("cgroup.base", "not a group");
    const Json& limits = c.get("limits");
    if (!limits.is_object()) return bad("cgroup.limits", "an object is expected");
    for (const json::Member& m : limits.object()) {
      if (!m.second.is_string()) return bad("cgroup.limits." + m.first, "text is expected");
      // Only knobs that limit: cgroup.procs, cgroup.subtree_control and their like would move or open things.
      static constexpr const char* kKnobs[] = {"memory.max",  "memory.high", "memory.swap.max", "memory.oom.group",
                                               "pids.max",    "cpu.max",     "cpu.weight",      "cpuset.cpus",
                                               "cpuset.mems", "io.max",      "io.weight"};
      if (std::none_of(std::begin(kKnobs), std::end(kKnobs), [&](auto* k) { return m.first == k; }))
        return bad("cgroup.limits." + m.first, "not a limit that a plan may set");
      p.cgroup_limits[m.first] = H5I_TRY(Fields::checked_text(m.second.string(), "cgroup.limits." + m.first, 128));
    }
    H5I_TRY(c.finish());
  }
  auto caps = H5I_TRY(f.text("capabilities", 8));
  if (caps != "none" && caps != "keep") return bad("capabilities", "'none' or 'keep' is expected");
  p.keep_capabilities = caps == "keep";
  p.no_new_privs = H5I_TRY(f.flag("no_new_privs"));
  if (f.present("canary")) {
    p.canary.emplace();
    for (const Json& act : *H5I_TRY(f.list("canary"))) {
      std::string where = "canary[" + std::to_string(p.canary->size()) + "]";
      if (!act.is_array() || act.array().empty()) return bad(where, "a list of words is expected");
      std::vector<std::string> words;
      for (const Json& w : act.array()) {
        if (!w.is_string()) return bad(where, "text is expected");
        words.push_back(H5I_TRY(Fields::checked_text(w.string(), where, kMaxPathLen)));
      }
      p.canary->push_back(std::move(words));
    }
  }
  if (f.present("landlock")) p.landlock = H5I_TRY(landlock_spec(f.get("landlock")));
  if (f.present("seccomp")) p.seccomp = H5I_TRY(seccomp_spec(f.get("seccomp"), p.canary.has_value()));
  p.init = H5I_TRY(f.flag("init"));
  for (const Json& n : *H5I_TRY(f.list("not_enforced"))) {
    auto e = H5I_TRY(Fields::of(n, "not_enforced"));
    H5I_TRY(e.text("field", 128));
    H5I_TRY(e.text("reason", 128));
    H5I_TRY(e.text_or("detail", "", 1024));
    H5I_TRY(e.finish());
  }
  p.not_enforced = f.present("not_enforced") ? f.get("not_enforced") : Json(json::Array{});
  H5I_TRY(f.finish());
  H5I_TRY(check_combinations(p));
  return p;
}

// `value` at the start of a path, whole or up to a '/'.
std::string named_path(const std::string& path, const Names& names) {
  const std::pair<std::string, std::string>* best = nullptr;
  for (const auto& v : names.values)
    if (!v.first.empty() && path.compare(0, v.first.size(), v.first) == 0 &&
        (path.size() == v.first.size() || path[v.first.size()] == '/') &&
        (!best || v.first.size() > best->first.size()))
      best = &v;
  auto doubled = [](std::string_view s) {
    std::string out;
    for (char c : s) out += c == '$' ? std::string("$$") : std::string(1, c);
    return out;
  };
  return best ? best->second + doubled(std::string_view(path).substr(best->first.size())) : doubled(path);
}

std::string named_text(const std::string& text, const Names& names) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const std::pair<std::string, std::string>* best = nullptr;
    for (const auto& v : names.values)
      if (!v.first.empty() && text.compare(i, v.first.size(), v.first) == 0 &&
          (!best || v.first.size() > best->first.size()))
        best = &v;
    if (best) {
      out += best->second;
      i += best->first.size();
    } else {
      out += text[i] == '$' ? std::string("$$") : std::string(1, text[i]);
      i++;
    }
  }
  return out;
}

void name_member(Json& object, const char* key, const Names& names, bool is_path) {
  if (!object[key].is_string()) {
    if (object[key].is_null()) object.make_object().erase(key);
    return;
  }
  std::string s = object[key].string();
  object[key] = is_path ? named_path(s, names) : named_text(s, names);
}

}  // namespace

Result<Plan> decode_plan(std::string_view document) {
  return decode_parsed_plan(H5I_TRY(parse_json(document, "spawn plan", kMaxDocument)));
}

Result<Plan> decode_parsed_plan(const Json& doc) {
  Plan plan = H5I_TRY(decode_document(doc));
  plan.digest = canonical_digest(doc);
  return plan;
}

Result<Json> effective_form(std::string_view document, const Names& names) {
  Json doc = H5I_TRY(parse_json(document, "spawn plan", kMaxDocument));
  H5I_TRY(decode_document(doc));
  return effective_form_of(std::move(doc), names);
}

Json effective_form_of(Json doc, const Names& names) {
  json::Object& o = doc.make_object();
  for (const char* key : {"argv", "exec", "cwd", "canary"}) o.erase(key);
  std::vector<std::string> env;
  for (const json::Member& m : doc["env"].object()) env.push_back(m.first);
  std::sort(env.begin(), env.end());
  json::Array list;
  for (std::string& n : env) list.emplace_back(std::move(n));
  doc["env"] = std::move(list);
  for (Json& m : doc["mounts"].make_array()) {
    name_member(m, "source", names, true);
    name_member(m, "target", names, true);
    name_member(m, "to", names, true);
    name_member(m, "content", names, false);
  }
  if (doc["landlock"].is_object())
    for (Json& r : doc["landlock"]["rules"].make_array()) name_member(r, "path", names, true);
  if (doc["cgroup"].is_object()) doc["cgroup"].make_object().erase("base");  // another with each run: what is held is in the limits
  name_member(doc, "hostname", names, false);
  if (doc["seccomp"].is_object()) doc["seccomp"].make_object().erase("program");
  // What names meant today is the session's; what was asked for is the policy's.
  if (doc["network"].is_object())
    for (Json& a : doc["network"]["egress"]["allow"].make_array())
      if (a["pinned"].boolean()) a.make_object().erase("addresses");
  for (auto [key, value, name] :
       {std::tuple{"inside_uid", names.box_uid, "$BOXUID"}, std::tuple{"outside_uid", names.box_uid, "$BOXUID"},
        std::tuple{"inside_gid", names.box_gid, "$BOXGID"}, std::tuple{"outside_gid", names.box_gid, "$BOXGID"}})
    if (value && doc["ids"][key].integer(-1) == static_cast<int64_t>(*value)) doc["ids"][key] = name;
  return doc;
}

Result<EffectiveDigest> effective_digest(std::string_view document, const Names& names) {
  return EffectiveDigest(canonical_digest(H5I_TRY(effective_form(document, names))));
}

}  // namespace h5i::spawn
