#include "core/session/attest.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "core/os/cgroup.hpp"
#include "core/os/fs.hpp"
#include "core/os/namespace.hpp"

namespace h5i::session {
namespace {

constexpr size_t kMaxProcFile = 4u << 20;

std::optional<std::string> slurp(int dir, const char* name) {
  UniqueFd fd(openat(dir, name, O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string out;
  char buf[16384];
  for (;;) {
    ssize_t n = read(fd.get(), buf, sizeof buf);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) return out;
    out.append(buf, static_cast<size_t>(n));
    if (out.size() > kMaxProcFile) return std::nullopt;
  }
}

template <class F>
void each_line(std::string_view text, F f) {
  while (!text.empty()) {
    size_t end = text.find('\n');
    f(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  size_t i = 0;
  while (i < line.size()) {
    while (i < line.size() && (line[i] == ' ' || line[i] == '\t')) i++;
    size_t b = i;
    while (i < line.size() && line[i] != ' ' && line[i] != '\t') i++;
    if (i > b) out.push_back(line.substr(b, i - b));
  }
  return out;
}

uint64_t number(std::string_view t) {
  uint64_t n = 0;
  std::from_chars(t.data(), t.data() + t.size(), n);
  return n;
}

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view t) {
  std::string out;
  for (size_t i = 0; i < t.size(); i++) {
    auto octal = [&](size_t k) { return k < t.size() && t[k] >= '0' && t[k] <= '7'; };
    if (t[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out += static_cast<char>((t[i + 1] - '0') * 64 + (t[i + 2] - '0') * 8 + (t[i + 3] - '0'));
      i += 3;
    } else {
      out += t[i];
    }
  }
  return out;
}

std::vector<IdMap> parse_map(std::string_view text) {
  std::vector<IdMap> out;
  each_line(text, [&](std::string_view line) {
    auto w = words(line);
    if (w.size() == 3) out.push_back({number(w[0]), number(w[1]), number(w[2])});
  });
  return out;
}

bool has(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Name in a plan -> name in /proc/PID/limits.
constexpr std::pair<const char*, const char*> kLimitNames[] = {
    {"as", "Max address space"},   {"core", "Max core file size"}, {"cpu", "Max cpu time"},
    {"data", "Max data size"},     {"fsize", "Max file size"},     {"memlock", "Max locked memory"},
    {"nofile", "Max open files"},  {"nproc", "Max processes"},     {"stack", "Max stack size"},
    {"sigpending", "Max pending signals"}, {"msgqueue", "Max msgqueue size"},
};

// Collects what differs; each sentence names both sides.
struct Judge {
  const AttestInput& in;
  Attestation out;

  void expect(bool ok, std::string words_if_not) {
    if (!ok) out.mismatches.push_back(std::move(words_if_not));
  }

  void process(const ProcessFacts& p, const std::string& who) {
    if (in.plan["no_new_privs"].boolean())
      expect(p.no_new_privs == 1, who + ": no_new_privs is " + std::to_string(p.no_new_privs));
    if (in.plan["capabilities"].string() == "none") {
      expect(p.capabilities.size() == 5, who + ": capability sets cannot be read");
      for (const auto& [set, value] : p.capabilities)
        expect(value.find_first_not_of('0') == std::string::npos, who + ": capability set " + set + " is " + value);
    }
  }

  void seccomp() {
    const ProcessFacts& w = in.workload;
    if (in.plan["seccomp"].is_null()) return;
    expect(w.seccomp == 2, "workload: seccomp mode is " + std::to_string(w.seccomp) + ", not 2 (filter)");
    expect(w.seccomp_filters > std::max(0, in.self.seccomp_filters),
           "workload: " + std::to_string(w.seccomp_filters) + " filters, we have " + std::to_string(in.self.seccomp_filters));
  }

  void namespaces() {
    auto planned = strings(in.plan["namespaces"]);
    for (const char* ns : kNamespaces) {
      auto ours = in.self.namespaces.find(ns), theirs = in.workload.namespaces.find(ns);
      if (ours == in.self.namespaces.end()) continue;  // this kernel has none
      if (theirs == in.workload.namespaces.end()) {
        expect(false, std::string("workload: namespace ") + ns + " cannot be read");
        continue;
      }
      bool differs = ours->second != theirs->second, wanted = has(planned, ns);
      expect(differs == wanted, std::string("workload: namespace ") + ns +
                                    (wanted ? " is the host's, the plan says a new one" : " is new, the plan says the host's"));
    }
    // The second user namespace is what locks the mounts: its parent owns them.
    int levels = !has(planned, "user") ? 0 : in.plan["nested_user"].boolean() ? 2 : 1;
    expect(in.workload.user_depth == levels, "workload: its user namespace is " + std::to_string(in.workload.user_depth) +
                                                 " below ours, the plan says " + std::to_string(levels));
  }

  void ids() {
    const Json& ids = in.plan["ids"];
    if (in.plan["identity_map"].boolean() || !has(strings(in.plan["namespaces"]), "user") || !ids.is_object()) return;
    auto want = [&](const char* i, const char* o) {
      return IdMap{static_cast<uint64_t>(ids[i].integer()), static_cast<uint64_t>(ids[o].integer()), 1};
    };
    IdMap uid = want("inside_uid", "outside_uid"), gid = want("inside_gid", "outside_gid");
    auto text = [](const std::vector<IdMap>& m) {
      std::string t;
      for (const IdMap& x : m)
        t += (t.empty() ? "" : ", ") + std::to_string(x.inside) + " " + std::to_string(x.outside) + " " + std::to_string(x.count);
      return t.empty() ? std::string("empty") : t;
    };
    expect(in.workload.uid_map == std::vector<IdMap>{uid}, "workload: uid_map is " + text(in.workload.uid_map));
    expect(in.workload.gid_map == std::vector<IdMap>{gid}, "workload: gid_map is " + text(in.workload.gid_map));
    for (uint64_t u : in.workload.uids)
      expect(u == uid.outside, "workload: runs as user " + std::to_string(u) + " of the host, not " + std::to_string(uid.outside));
    expect(!in.workload.uids.empty(), "workload: user ids cannot be read");
  }

  void mounts() {
    if (in.plan["root"].is_null()) return;
    const auto& seen = in.workload.mounts;
    // Later mounts lie on top of earlier ones with the same target, in the plan as in mountinfo.
    auto top = [&](std::string_view target) -> const MountSeen* {
      for (auto it = seen.rbegin(); it != seen.rend(); ++it)
        if (it->target == target) return &*it;
      return nullptr;
    };
    const MountSeen* root = top("/");
    expect(root && root->fstype == "tmpfs", "workload: the root is " + (root ? root->fstype : std::string("not visible")));
    std::map<std::string, const Json*> last;
    for (const Json& m : in.plan["mounts"].array()) last[m["target"].string()] = &m;
    uint64_t checked = 0;
    for (const auto& [target, m] : last) {
      const std::string& kind = (*m)["kind"].string();
      if (kind == "dir" || kind == "file" || kind == "symlink") continue;
      const MountSeen* s = top(target);
      if (!s && (*m)["optional"].boolean()) continue;  // there was nothing to hide
      expect(s, "workload: nothing is mounted at " + target);
      if (!s) continue;
      checked++;
      for (const std::string& flag : strings((*m)["flags"]))
        expect(has(s->options, flag), "workload: " + target + " is not mounted " + flag);
      if (kind == "tmpfs") expect(s->fstype == "tmpfs", "workload: " + target + " is " + s->fstype + ", not tmpfs");
      if (kind == "proc") expect(s->fstype == "proc", "workload: " + target + " is " + s->fstype + ", not proc");
      if (kind == "mask") expect(has(s->options, "ro"), "workload: the mask at " + target + " is writable");
    }
    // Whatever else is mounted there is nothing that the plan meant: only what recursive binds bring may be.
    for (const MountSeen& s : seen) {
      if (s.target == "/" || last.count(s.target)) continue;
      bool below = false;
      for (const auto& [target, m] : last)
        below |= (*m)["kind"].string() == "bind" && s.target.starts_with(target == "/" ? target : target + "/");
      bool device = s.target.starts_with("/dev/") || s.target.starts_with("/proc/");
      expect(below || device, "workload: " + s.target + " is mounted, the plan has no such mount");
    }
    out.facts["mounts"] = json::Object{{"root", root ? root->fstype : ""}, {"seen", seen.size()}, {"checked", checked}};
  }

  void descriptors() {
    const ProcessFacts& w = in.workload;
    expect(w.descriptors >= 0, "workload: its descriptors cannot be listed");
    for (int fd : w.kept_descriptors) expect(false, "workload: descriptor " + std::to_string(fd) + " would stay open in the program");
    out.facts["descriptors"] = json::Object{{"open", w.descriptors}, {"kept", w.kept_descriptors.size()}};
  }

  void limits() {
    for (const Json& r : in.plan["rlimits"].array()) {
      const std::string& name = r["name"].string();
      if (r["soft"].integer() < 0) continue;
      for (const auto& [plan_name, proc_name] : kLimitNames) {
        if (name != plan_name) continue;
        auto it = in.workload.limits.find(proc_name);
        // "only ever lowered": what we had may have been lower than the plan already.
        bool ok = it != in.workload.limits.end() && it->second != "unlimited" &&
                  number(it->second) <= static_cast<uint64_t>(r["soft"].integer());
        expect(ok, "workload: limit " + name + " is " + (it == in.workload.limits.end() ? "unreadable" : it->second) +
                       ", the plan says " + std::to_string(r["soft"].integer()));
      }
    }
  }

  void parents() {
    if (in.init) {
      expect(in.init->parent == in.spawner, "init's parent is " + std::to_string(in.init->parent) + ", not the spawner");
      expect(in.workload.parent == in.init->pid, "the workload's parent is " + std::to_string(in.workload.parent) + ", not init");
      bool ours = in.init_digest_ok || (in.init_ino != 0 && in.init->exe_ino == in.init_ino && in.init->exe_dev == in.init_dev);
      expect(ours, "init is not our h5i-init");
    } else {
      expect(!in.plan["init"].boolean(), "the plan has an init, none was shown");
      expect(in.workload.parent == in.spawner, "the workload's parent is " + std::to_string(in.workload.parent) + ", not the spawner");
    }
  }

  // How the kernel shows a limit that was written so: memory in whole pages, a share with its period.
  static std::string shown_as(const std::string& file, const std::string& text) {
    if (file == "cpu.max" && text.find(' ') == std::string::npos) return text + " 100000";
    if ((file != "memory.max" && file != "memory.high" && file != "memory.swap.max") || text == "max") return text;
    char* unit = nullptr;
    uint64_t bytes = strtoull(text.c_str(), &unit, 10);
    if (*unit) bytes <<= *unit == 'G' || *unit == 'g' ? 30 : *unit == 'M' || *unit == 'm' ? 20 : 10;
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return std::to_string(bytes / page * page);
  }

  void cgroup() {
    const Json& c = in.plan["cgroup"];
    if (!c.is_object()) return;
    expect(in.workload.cgroup != in.self.cgroup && !in.workload.cgroup.empty(),
           "workload: cgroup is " + in.workload.cgroup + ", the plan says one of its own");
    for (const auto& [file, text] : c["limits"].object()) {
      if (!file.starts_with("memory.") && !file.starts_with("cpu.") && !file.starts_with("pids.")) continue;  // shown in another form than written
      auto seen = in.workload.cgroup_files.find(file);
      std::string there = seen == in.workload.cgroup_files.end() ? "unreadable" : seen->second;
      expect(there == shown_as(file, text.string()), "workload: " + file + " of its cgroup is " + there + ", the plan says " + text.string());
    }
  }
};

}  // namespace

std::vector<MountSeen> parse_mountinfo(std::string_view text) {
  std::vector<MountSeen> out;
  each_line(text, [&](std::string_view line) {
    auto w = words(line);
    auto dash = std::find(w.begin(), w.end(), "-");
    if (w.size() < 7 || dash == w.end() || dash + 1 == w.end()) return;
    MountSeen m;
    m.target = unescape(w[4]);
    m.fstype = std::string(*(dash + 1));
    std::string_view opts = w[5];
    while (!opts.empty()) {
      size_t comma = opts.find(',');
      m.options.emplace_back(opts.substr(0, comma));
      opts.remove_prefix(comma == std::string_view::npos ? opts.size() : comma + 1);
    }
    out.push_back(std::move(m));
  });
  return out;
}

void parse_status(std::string_view text, ProcessFacts* out) {
  each_line(text, [&](std::string_view line) {
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    std::string_view key = line.substr(0, colon);
    auto w = words(line.substr(colon + 1));
    auto first = [&] { return w.empty() ? -1 : static_cast<int>(number(w[0])); };
    if (key == "PPid") out->parent = first();
    else if (key == "NoNewPrivs") out->no_new_privs = first();
    else if (key == "Seccomp") out->seccomp = first();
    else if (key == "Seccomp_filters") out->seccomp_filters = first();
    else if (key == "Uid") for (auto x : w) out->uids.push_back(number(x));
    else if (key == "Gid") for (auto x : w) out->gids.push_back(number(x));
    else if (key.size() == 6 && key.starts_with("Cap") && !w.empty())
      out->capabilities[std::string(key.substr(3))] = std::string(w[0]);
  });
}

// A descriptor of the host's that survives the exec would be a way around every mount and namespace.
static void read_descriptors(int proc, ProcessFacts* out) {
  UniqueFd fd(openat(proc, "fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return;
  std::unique_ptr<DIR, int (*)(DIR*)> list(fdopendir(fd.get()), closedir);
  if (!list) return;
  fd.release();  // the list's now
  out->descriptors = 0;
  while (dirent* e = readdir(list.get())) {
    if (e->d_name[0] == '.') continue;
    out->descriptors++;
    int n = static_cast<int>(number(e->d_name));
    if (n <= 2) continue;
    bool closes = false;
    auto info = slurp(dirfd(list.get()), e->d_name);
    if (info)
      each_line(*info, [&](std::string_view line) {
        if (line.starts_with("flags:")) {
          auto w = words(line.substr(6));
          closes = !w.empty() && (strtoul(std::string(w[0]).c_str(), nullptr, 8) & O_CLOEXEC);
        }
      });
    if (!closes) out->kept_descriptors.push_back(n);
  }
}

Result<ProcessFacts> read_process(pid_t pid, bool whole) {
  ProcessFacts f;
  f.pid = pid;
  std::string path = "/proc/" + std::to_string(pid);
  UniqueFd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return sys_error("open " + path);
  auto status = slurp(dir.get(), "status");
  if (!status) return sys_error("read " + path + "/status");
  parse_status(*status, &f);
  for (const char* ns : kNamespaces) {
    char target[64];
    ssize_t n = readlinkat(dir.get(), (std::string("ns/") + ns).c_str(), target, sizeof target);
    if (n > 0) f.namespaces[ns] = std::string(target, static_cast<size_t>(n));
  }
  if (auto t = slurp(dir.get(), "uid_map")) f.uid_map = parse_map(*t);
  if (auto t = slurp(dir.get(), "gid_map")) f.gid_map = parse_map(*t);
  if (auto t = slurp(dir.get(), "cgroup"))
    each_line(*t, [&](std::string_view line) {
      if (line.starts_with("0::")) f.cgroup = std::string(line.substr(3));
    });
  if (auto t = slurp(dir.get(), "limits"))
    each_line(*t, [&](std::string_view line) {
      if (line.size() < 27) return;
      std::string_view name = line.substr(0, 25);
      while (name.ends_with(' ')) name.remove_suffix(1);
      auto w = words(line.substr(25));
      if (!w.empty()) f.limits[std::string(name)] = std::string(w[0]);
    });
  struct stat st {};
  if (fstatat(dir.get(), "exe", &st, 0) == 0) {
    f.exe_dev = st.st_dev;
    f.exe_ino = st.st_ino;
  }
  if (!whole) return f;
  if (UniqueFd ns(openat(dir.get(), "ns/user", O_RDONLY | O_CLOEXEC)); ns)
    if (auto depth = os::user_namespace_depth(ns.get())) f.user_depth = *depth;
  if (auto t = slurp(dir.get(), "mountinfo")) f.mounts = parse_mountinfo(*t);
  read_descriptors(dir.get(), &f);
  return f;
}

void read_cgroup_files(const Json& limits, ProcessFacts* process) {
  auto mounts = os::read_file("/proc/self/mountinfo", 4 << 20);
  if (!mounts || process->cgroup.empty()) return;
  const std::string group = os::parse_cgroup_view(*mounts, "").mount + process->cgroup;
  for (const auto& [file, wanted] : limits.object()) {
    auto text = os::read_file(group + "/" + file, 4096);
    if (!text) continue;
    if (text->ends_with('\n')) text->pop_back();
    process->cgroup_files[file] = *text;
  }
}

std::vector<std::string> unfounded_claims(const Json& plan, const std::vector<std::string>& claims, const Json& policy) {
  std::vector<std::string> out;
  auto declared = [&](std::string_view field) {
    for (const Json& n : plan["not_enforced"].array())
      if (n["field"].string() == field) return true;
    return false;
  };
  auto ns = strings(plan["namespaces"]);
  bool view = !plan["root"].is_null() && has(ns, "mnt"), landlock = plan["landlock"].is_object();
  for (const std::string& claim : claims) {
    if (declared(claim)) continue;  // claimed in general, given up for this run and in words
    if (claim.starts_with("fs.") && !view && !landlock)
      out.push_back(claim + " is claimed, the plan has neither a root of its own nor Landlock");
    if (claim.starts_with("fs.") && (!plan["no_new_privs"].boolean() || plan["capabilities"].string() != "none"))
      out.push_back(claim + " is claimed, the plan keeps capabilities or the way to new ones");
    if (claim.starts_with("fs.") && view && !plan["nested_user"].boolean())
      out.push_back(claim + " is claimed, nothing in the plan locks its mounts (nested_user)");
    if (claim.starts_with("fs.") && view && !has(ns, "pid"))
      out.push_back(claim + " is claimed, the plan shows the host's processes (no pid namespace)");
    if (claim == "net.mode" && policy["profile"]["net"]["mode"].string() == "deny" && !has(ns, "net"))
      out.push_back("net.mode is claimed and the policy says deny, the plan has no network namespace");
    if (claim == "net.egress" && plan["network"].is_object() && !has(ns, "net"))
      out.push_back("net.egress is claimed, the plan has rules and no network namespace for them");
    if (claim == "net.unix" && !policy["profile"]["net"]["unix"].boolean() && !plan["seccomp"].is_object())
      out.push_back("net.unix is claimed, the plan has no system call filter");
  }
  return out;
}

Attestation judge(const AttestInput& in) {
  Judge j{in, {}};
  j.out.facts = json::Object{{"observer", "core"}};
  for (std::string& line : unfounded_claims(in.plan, in.claims, in.policy)) j.out.mismatches.push_back(std::move(line));
  j.parents();
  if (in.init) j.process(*in.init, "init");
  j.process(in.workload, "workload");
  j.seccomp();
  j.namespaces();
  j.ids();
  j.mounts();
  j.descriptors();
  j.limits();
  j.cgroup();

  const ProcessFacts& w = in.workload;
  Json& f = j.out.facts;
  f["no_new_privs"] = w.no_new_privs == 1;
  f["seccomp_mode"] = w.seccomp;
  f["seccomp_filters"] = w.seccomp_filters;
  Json caps = json::Object{};
  for (const auto& [set, value] : w.capabilities) caps[set] = value;
  f["capabilities"] = std::move(caps);
  Json spaces = json::Object{};
  for (const char* ns : kNamespaces) {
    auto ours = in.self.namespaces.find(ns), theirs = w.namespaces.find(ns);
    if (ours == in.self.namespaces.end()) continue;
    spaces[ns] = theirs == w.namespaces.end() ? "unreadable" : theirs->second == ours->second ? "host" : "own";
  }
  f["namespaces"] = std::move(spaces);
  f["user_namespace_depth"] = w.user_depth;
  Json map = json::Array{};
  for (const IdMap& m : w.uid_map) map.push(json::Array{m.inside, m.outside, m.count});
  f["uid_map"] = std::move(map);
  f["cgroup"] = w.cgroup;
  f["init"] = in.init ? "h5i-init" : "none";
  f["matches_plan"] = j.out.mismatches.empty();
  return std::move(j.out);
}

}  // namespace h5i::session
