#include "verify.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "canary.hpp"
#include "host_nodes.hpp"
#include "network_proof.hpp"
#include "path.hpp"

namespace h5i::confined {
namespace {

using json::Object;

// Numbers of the second run, which proves the mechanism of each limit: small, so that the proof is quick.
constexpr uint64_t kProofProcs = 24, kProofFork = 40;
constexpr uint64_t kProofMem = 32ull << 20, kProofMemMiB = 80;
constexpr uint64_t kProofFsize = 64u << 10;

// One act that the policy forbids. The control is the same act outside the box, or `control` where its names differ.
struct Dimension {
  std::string claim;
  Act act;
  std::vector<std::string> expected;
  std::string detail;
  Act control = {};

  const Act& outside() const { return control.empty() ? act : control; }
};

// In the box's root, beneath nothing that a Landlock rule opens: there only Landlock is between a mount and the box.
constexpr const char* kUnruled = "/.h5i-unruled";

bool put_byte(const std::string& path) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool ok = fd >= 0 && write(fd, "x", 1) == 1;
  if (fd >= 0) close(fd);
  return ok;
}

// Files that are made for the proof, below the box's private directory, which no box can see. The name's beginning is the
// host's: by it the core finds what a death left.
class Stage {
 public:
  static sdk::Result<Stage> make(const std::string& base) {
    // The stage is mounted into boxes, and no path of a plan goes through a link.
    char real[PATH_MAX];
    if (realpath(base.c_str(), real) == nullptr) return sdk::system_failure("realpath " + base);
    std::string name = join(real, ".h5i-verify-XXXXXX");
    if (mkdtemp(name.data()) == nullptr) return sdk::system_failure("mkdtemp " + name);
    Stage s(name);
    for (const char* d : {"ro", "rw", "rw/parent", "unruled"}) mkdir(s.path(d).c_str(), 0700);
    for (const char* f : {"hidden", "ro/file", "rw/file", "rw/denied", "rw/parent/denied", "unruled/file"})
      if (!put_byte(s.path(f))) return sdk::system_failure("write " + s.path(f));
    return s;
  }
  Stage(Stage&& o) noexcept : root_(std::exchange(o.root_, {})) {}
  Stage& operator=(Stage&&) = delete;
  ~Stage() {
    if (!root_.empty()) (void)remove_tree(root_);
  }
  std::string path(std::string_view name) const { return join(root_, name); }

 private:
  explicit Stage(std::string root) : root_(std::move(root)) {}
  std::string root_;
};

// A listener on the host's loopback that a box without network must not reach.
class Listener {
 public:
  Listener() {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof a;
    if (fd_ < 0 || bind(fd_, reinterpret_cast<sockaddr*>(&a), n) != 0 || listen(fd_, 8) != 0 ||
        getsockname(fd_, reinterpret_cast<sockaddr*>(&a), &n) != 0)
      return;
    port_ = ntohs(a.sin_port);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() {
    if (fd_ >= 0) close(fd_);
  }
  unsigned port() const { return port_; }  // 0: there is none

 private:
  int fd_ = -1;
  unsigned port_ = 0;
};

// Adds the stage to a plan: by the same kinds of mount and the same flags that the policy's own grants have.
void show_stage(const Stage& stage, const Request& request, json::Value& plan) {
  auto bind = [&](const std::string& path, bool read_only, const char* target = nullptr) {
    json::Array flags;
    if (read_only) flags.push_back("ro");
    flags.push_back("nosuid");
    flags.push_back("nodev");
    Object o{{"kind", "bind"},
             {"source", path},
             {"target", target ? target : path},
             {"flags", std::move(flags)},
             {"recursive", !request.as_root()}};
    if (request.as_root()) o["idmap"] = true;
    plan["mounts"].push(std::move(o));
  };
  bind(stage.path("ro"), true);
  bind(stage.path("rw"), false);
  bind(stage.path("rw/parent"), false);
  bind(stage.path("unruled"), false, kUnruled);
  for (const char* name : {"rw/denied", "rw/parent/denied"})
    plan["mounts"].push(Object{{"kind", "mask"}, {"target", stage.path(name)}});
  if (!plan["landlock"].is_object()) return;
  uint64_t handled = static_cast<uint64_t>(plan["landlock"]["handled_fs"].integer());
  constexpr uint64_t kRead = 0xd, kDevices = 1u << 6 | 1u << 11;
  plan["landlock"]["rules"].push(Object{{"path", stage.path("ro")}, {"access", kRead & handled}});
  plan["landlock"]["rules"].push(Object{{"path", stage.path("rw")}, {"access", handled & ~kDevices}});
}

// Whether a grant of the policy shows what lies at `path` on the host: one above the box's own folders does.
bool granted(const json::Value& plan, const std::string& path) {
  const json::Array& mounts = plan["mounts"].array();
  return std::any_of(mounts.begin(), mounts.end(), [&](const json::Value& m) {
    return m["kind"].string() == "bind" && is_within(path, m["source"].string());
  });
}

std::vector<Dimension> forbidden(const Stage& stage, const Request& request, const json::Value& plan,
                                 const Listener& listener) {
  const std::vector<std::string> no_way = {"ENOENT", "EROFS", "EACCES"};
  std::vector<Dimension> d;
  if (granted(plan, stage.path("hidden"))) {
    d.push_back({"fs.read", {"list", "/sys"}, {"ENOENT", "EACCES"}, "a folder that no profile can grant"});
  } else {
    d.push_back({"fs.read", {"read", stage.path("hidden")}, {"ENOENT", "EACCES"}, "a file that is not granted"});
    d.push_back({"fs.write", {"open", stage.path("hidden"), "rw"}, no_way, "a file that is not granted"});
  }
  std::vector<Dimension> more = {
      {"fs.write", {"open", stage.path("ro/file"), "rw"}, no_way, "a file of a read-only grant"},
      {"fs.write", {"chmod", stage.path("ro/file"), "600"}, no_way, "the mode of a file of a read-only grant"},
      {"fs.write", {"utime", stage.path("ro/file")}, no_way, "the times of a file of a read-only grant"},
      {"fs.read", {"read", join(kUnruled, "file")}, {"EACCES"}, "a mounted file that no Landlock rule names",
       {"read", stage.path("unruled/file")}},
      {"fs.write", {"open", join(kUnruled, "file"), "rw"}, {"EACCES"}, "a writable mount that no Landlock rule names",
       {"open", stage.path("unruled/file"), "rw"}},
      {"fs.read", {"read", "/proc/kallsyms"}, {"EACCES"}, "a file of /proc that shows the whole machine"},
      {"proc.signals", {"stat", "/proc/" + std::to_string(getpid())}, {"ENOENT"}, "a process outside, in /proc"},
      {"fs.deny", {"read", stage.path("rw/denied")}, {"EACCES", "EPERM"}, "a denied name in a writable grant"},
      {"fs.deny",
       {"rename", stage.path("rw/parent"), stage.path("rw/elsewhere")},
       {"EBUSY", "EXDEV", "EACCES"},
       "the directory above a denied name"},
      {"proc.signals", {"kill", std::to_string(getpid()), "0"}, {"ESRCH", "EPERM"}, "a process outside"},
      {"proc.namespaces", {"unshare", std::to_string(0x10000000)}, {"EPERM", "ENOSYS"}, "a user namespace of its own"},
      {"proc.set-id", {"chmod", stage.path("rw/file"), "4755"}, {"EPERM"}, "a set-user-id file"},
      {"proc.keyrings",
       {"syscall", std::to_string(__NR_keyctl), "0", "-3", "1"},
       {"EPERM", "ENOSYS"},
       "the keyring of the login"},
  };
  d.insert(d.end(), more.begin(), more.end());
  if (!request.host_network && listener.port() != 0)
    d.push_back({"net.mode",
                 {"connect", "tcp", "127.0.0.1", std::to_string(listener.port())},
                 {"ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH"},
                 "a service on the host's loopback"});
  if (!request.unix_sockets) d.push_back({"net.unix", {"socket", "1", "1", "0"}, {"EPERM", "EACCES"}, "a unix socket"});
  return d;
}

// The plan with small numbers in the places where the policy's are.
json::Value with_small_limits(const json::Value& plan, std::vector<Dimension>& out, const std::string& file) {
  json::Value p = plan;
  bool procs = false, mem = false;
  for (json::Value& r : p["rlimits"].make_array()) {
    auto set = [&](uint64_t value) {
      r["soft"] = value;
      r["hard"] = value;
    };
    const std::string& name = r["name"].string();
    if (name == "nproc") {
      set(kProofProcs);
      procs = true;
    } else if (name == "data") {
      set(kProofMem);
      mem = true;
    } else if (name == "fsize") {
      set(kProofFsize);
      out.push_back(
          {"resources.fsize", {"write", file, std::to_string(4 * kProofFsize)}, {"EFBIG"}, "a file above the limit"});
    } else if (name == "cpu") {
      r["soft"] = 1;
      r["hard"] = 2;
      out.push_back(
          {"resources.cpu", {"cpu", "2"}, {"SIGXCPU", "XCPU", "SIGKILL", "KILL"}, "processor time above the limit"});
    }
  }
  if (json::Value* limits = p["cgroup"].is_object() ? p["cgroup"].make_object().find("limits") : nullptr) {
    if (limits->object().contains("pids.max")) {
      (*limits)["pids.max"] = std::to_string(kProofProcs);
      procs = true;
    }
    if (limits->object().contains("memory.max")) {
      (*limits)["memory.max"] = std::to_string(kProofMem);
      mem = true;
    }
  }
  if (procs)
    out.push_back(
        {"resources.procs", {"fork", std::to_string(kProofFork)}, {"EAGAIN"}, "more processes than the limit"});
  // Last: a whole box may be killed together for it.
  if (mem)
    out.push_back({"resources.mem",
                   {"memory", std::to_string(kProofMemMiB)},
                   {"ENOMEM", "SIGKILL", "KILL", "killed by signal 9"},
                   "memory above the limit"});
  return p;
}

// Every limit of the policy is in the plan, and no higher there; what is declared instead is not claimed.
void require_limits(const Request& request, const json::Value& plan, json::Array& rows, bool& all_held) {
  const Resources& r = request.resources;
  auto declared = [&](std::string_view field) {
    const json::Array& list = plan["not_enforced"].array();
    return std::any_of(list.begin(), list.end(), [&](const json::Value& n) { return n["field"].string() == field; });
  };
  auto planned = [&](std::string_view rlimit, const char* file) -> std::optional<uint64_t> {
    if (const std::string& text = plan["cgroup"]["limits"][file].string(); !text.empty())
      return strtoull(text.c_str(), nullptr, 10);
    for (const json::Value& l : plan["rlimits"].array())
      if (l["name"].string() == rlimit) return static_cast<uint64_t>(l["soft"].integer());
    return std::nullopt;
  };
  auto require = [&](const char* field, std::optional<uint64_t> wanted, std::optional<uint64_t> there) {
    if (!wanted || (!there && declared(field)) || (there && *there <= *wanted)) return;
    all_held = false;
    rows.push_back(Object{{"claim", field},
                          {"control", "ok"},
                          {"negative", there ? "a limit of " + std::to_string(*there) : std::string("no limit")},
                          {"expected", json::Array{"at most " + std::to_string(*wanted)}},
                          {"ok", false},
                          {"detail", "what the plan has for it"}});
  };
  require("resources.mem", r.mem, planned("data", "memory.max"));
  require("resources.procs", r.procs, planned("nproc", "pids.max"));
  require("resources.cpu", r.cpu, planned("cpu", ""));
  require("resources.fsize", r.fsize, planned("fsize", ""));
}

// Adds a row for each dimension. Without a control a dimension proves nothing: it goes to `unproved`.
void judge(const std::vector<Dimension>& dimensions, const std::vector<Line>& denied, size_t denied_from,
           const std::vector<Line>& control, size_t control_from, json::Array& rows, json::Array& unproved,
           bool& all_held) {
  for (size_t i = 0; i < dimensions.size(); i++) {
    const Dimension& d = dimensions[i];
    const Line& in = denied[denied_from + i];
    const Line& out = control[control_from + i];
    if (!out.ok) {
      unproved.push_back(d.claim + " (" + d.detail + "): outside the box it gives " + out.error + ", too");
      continue;
    }
    std::string got = in.ok ? "succeeded" : in.error;
    bool held = !in.ok && std::find(d.expected.begin(), d.expected.end(), in.error) != d.expected.end();
    all_held = all_held && held;
    json::Array expected;
    for (const std::string& e : d.expected) expected.push_back(e);
    rows.push_back(Object{{"claim", d.claim},
                          {"control", "ok"},
                          {"negative", got},
                          {"expected", std::move(expected)},
                          {"ok", held},
                          {"detail", d.detail}});
  }
}

// fs.private needs no forbidden act: what the box sees under the name must not be what the work tree has there.
struct PrivateProof {
  std::vector<std::string> markers;  // in the private directories, to be removed
  std::vector<Act> acts;
  ~PrivateProof() {
    for (const std::string& m : markers) unlink(m.c_str());
  }
};

}  // namespace

sdk::Result<json::Value> verify(const sdk::Host& host, const Request& request, const Plan& plan) {
  if (request.private_root.empty()) return sdk::failure(H5I_E_INVALID, "verify: paths.private is needed");
  Stage stage = H5I_SDK_TRY(Stage::make(request.private_root));
  Listener listener;

  std::vector<Act> positive = {{"read", "/proc/self/status"},
                               {"ids"},
                               {"capabilities"},
                               {"list", "/"},
                               {"read", stage.path("ro/file")},
                               {"read", stage.path("rw/file")},
                               {"write", stage.path("rw/made"), "16"}};
  PrivateProof private_proof;
  for (const PrivateDir& p : request.private_dirs) {
    std::string marker = join(private_source(request, p), ".h5i-verify");
    if (!put_byte(marker)) return sdk::system_failure("write " + marker);
    private_proof.markers.push_back(marker);
    private_proof.acts.push_back({"stat", join(join(request.work, p.relative), ".h5i-verify")});
  }
  std::vector<Dimension> dimensions = forbidden(stage, request, plan.document, listener);

  std::vector<Act> in = positive, out;
  in.insert(in.end(), private_proof.acts.begin(), private_proof.acts.end());
  for (const Dimension& d : dimensions) in.push_back(d.act);
  json::Value confined = plan.document;
  show_stage(stage, request, confined);
  std::vector<Line> inside_lines = H5I_SDK_TRY(perform(host, inside(confined, in), in.size()));

  std::vector<Dimension> limits;
  json::Value small = with_small_limits(confined, limits, stage.path("rw/large"));
  std::vector<Act> limit_acts;
  for (const Dimension& d : limits) limit_acts.push_back(d.act);
  std::vector<Line> limit_lines;
  if (!limits.empty()) limit_lines = H5I_SDK_TRY(perform(host, inside(small, limit_acts), limit_acts.size()));

  // Controls come last, because some of them change what they act on.
  for (const Dimension& d : dimensions) out.push_back(d.outside());
  out.insert(out.end(), private_proof.acts.begin(), private_proof.acts.end());
  out.insert(out.end(), limit_acts.begin(), limit_acts.end());
  std::vector<Line> control = H5I_SDK_TRY(perform(host, outside(request, out), out.size()));

  bool ran = true;
  std::string detail;
  for (size_t i = 0; i < positive.size(); i++)
    if (!inside_lines[i].ok) {
      ran = false;
      detail +=
          positive[i][0] + (positive[i].size() > 1 ? " " + positive[i][1] : "") + ": " + inside_lines[i].error + "; ";
    }
  if (inside_lines[1].value.array().empty() ||
      inside_lines[1].value.array()[0].integer(-1) != static_cast<int64_t>(request.box_uid)) {
    ran = false;
    detail += "the test program did not run as " + std::to_string(request.box_uid) + "; ";
  }

  json::Array rows, unproved;
  bool held = true;
  if (request.tier->network) {
    std::string blocked = H5I_SDK_TRY(prove_network(host, plan.document, rows, unproved, held));
    ran = ran && blocked.empty();
    detail += blocked;
  }
  judge(dimensions, inside_lines, positive.size() + private_proof.acts.size(), control, 0, rows, unproved, held);
  require_limits(request, plan.document, rows, held);
  judge(limits, limit_lines, 0, control, dimensions.size() + private_proof.acts.size(), rows, unproved, held);
  for (size_t i = 0; i < private_proof.acts.size(); i++) {
    const Line& seen = inside_lines[positive.size() + i];
    const Line& tree = control[dimensions.size() + i];
    bool ok = seen.ok && !tree.ok && tree.error == "ENOENT";
    held = held && ok;
    rows.push_back(Object{{"claim", "fs.private"},
                          {"control", seen.ok ? "ok" : seen.error},
                          {"negative", tree.ok ? "succeeded" : tree.error},
                          {"expected", json::Array{"ENOENT"}},
                          {"ok", ok},
                          {"detail", "a file of the private directory " + request.private_dirs[i].relative +
                                         ", looked for in the work tree"}});
  }
  return json::Value(Object{
      {"schema", "h5i.verify/1"},
      {"tier", request.tier->id},
      {"ok", ran && held},
      {"positive",
       Object{{"ok", ran}, {"detail", ran ? "the test program ran, read, wrote and was the box's user" : detail}}},
      {"dimensions", std::move(rows)},
      {"missing", json::Array{}},
      {"unproved", std::move(unproved)}});
}

}  // namespace h5i::confined
