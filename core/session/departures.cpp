#include "core/session/departures.hpp"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

namespace h5i::session {
namespace {

// What a program cannot do without, and what harms nobody.
constexpr const char* kDevices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};
// Mounted over the box's own /proc to make parts of it read-only.
constexpr const char* kProc[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"};

bool within(std::string_view path, std::string_view folder) {
  return path == folder || folder == "/" || (path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

// Without links, as far as it exists; the rest as it is written.
std::string real(const std::string& path) {
  char out[PATH_MAX];
  if (realpath(path.c_str(), out) != nullptr) return out;
  size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return path;
  return real(path.substr(0, slash)) + path.substr(slash);
}

class Comparison {
 public:
  Comparison(const Json& plan, const Json& request, const std::vector<std::string>& claims) : plan_(plan), request_(request), claims_(claims) {}

  std::vector<std::string> lines() {
    // The same words under another program's name are a departure; other words are another kind of plan.
    if (!(plan_["argv"] == request_["command"]["argv"])) return {};
    if (!(plan_["exec"] == request_["command"]["exec"])) out_.push_back("the plan would run another program than the command");
    if (claimed("env.pass") || claimed("env.set")) environment();
    if (claimed("net.egress")) egress();
    if (plan_["root"].is_null()) return std::move(out_);
    if (claimed("fs.write")) writable();
    if (claimed("fs.read")) readable();
    if (claimed("fs.deny")) denied();
    hidden();
    return std::move(out_);
  }

 private:
  bool claimed(std::string_view field) const {
    if (std::find(claims_.begin(), claims_.end(), field) == claims_.end()) return false;
    const auto& given_up = plan_["not_enforced"].array();
    return std::none_of(given_up.begin(), given_up.end(), [&](const Json& n) { return n["field"].string() == field; });
  }

  void environment() {
    if (plan_["env"] == request_["env"]) return;
    for (const auto& [name, value] : plan_["env"].object())
      if (!(request_["env"][name] == value)) return void(out_.push_back("env is claimed, the plan sets " + name));
    out_.push_back("env is claimed, the plan leaves variables out");
  }

  // What the plan's rules let through is what the core looked up, and the host's loopback at the ports of the policy.
  void egress() {
    const Json& network = plan_["network"];
    const Json& profile = request_["policy"]["profile"]["net"];
    if (network.is_null()) {
      // Without rules only a network with nothing in it holds what was asked for.
      const auto& ns = plan_["namespaces"].array();
      bool own = std::any_of(ns.begin(), ns.end(), [](const Json& n) { return n.string() == "net"; });
      if (!own && profile["mode"].string() == "deny") out_.push_back("net.egress is claimed, the plan has the host's network and no rules");
      return;
    }
    auto same = [](const Json& a, const Json& b) { return a["protocol"] == b["protocol"] && a["addresses"] == b["addresses"] && a["ports"] == b["ports"]; };
    const auto& asked = request_["network"]["egress"]["allow"].array();
    if (network["host_loopback"].boolean() && profile["loopback"].array().empty()) out_.push_back("net.loopback is empty, the plan opens the host's loopback");
    for (const Json& a : network["egress"]["allow"].array()) {
      if (std::any_of(asked.begin(), asked.end(), [&](const Json& b) { return same(a, b); })) continue;
      bool loopback = a["id"].string() == "host-loopback" && network["host_loopback"].boolean() && a["protocol"].string() == "tcp" && a["addresses"] == Json(json::Array{"192.0.2.2"});
      for (const Json& port : a["ports"].array()) {
        const auto& ports = profile["loopback"].array();
        loopback = loopback && std::any_of(ports.begin(), ports.end(), [&](const Json& p) { return std::to_string(p.integer()) == port.string(); });
      }
      if (!loopback) out_.push_back("net.egress is claimed, the plan lets through " + a["id"].string() + ", which was not asked for");
    }
  }

  std::vector<std::string> paths(const char* field) const {
    std::vector<std::string> out;
    for (const Json& p : request_["policy"]["profile"]["fs"][field].array()) {
      std::string path = p.string();
      if (path == "$WORK" || path.starts_with("$WORK/")) path = request_["paths"]["work"].string() + path.substr(5);
      out.push_back(real(path));
    }
    return out;
  }

  void add(std::vector<std::string>& list, const char* name) const {
    const std::string& path = request_["paths"][name].string();
    if (!path.empty()) list.push_back(real(path));
  }

  template <class F>
  void each_bind(F f) const {
    for (const Json& m : plan_["mounts"].array()) {
      if (m["kind"].string() != "bind") continue;
      const auto& flags = m["flags"].array();
      bool read_only = std::any_of(flags.begin(), flags.end(), [](const Json& w) { return w.string() == "ro"; });
      f(m["source"].string(), m["target"].string(), read_only);
    }
  }

  static bool among(const std::vector<std::string>& folders, const std::string& path) {
    return std::any_of(folders.begin(), folders.end(), [&](const std::string& f) { return within(path, f); });
  }

  std::vector<std::string> own_and_written() const {
    std::vector<std::string> out = paths("write");
    for (const char* name : {"work", "git", "spool", "private"}) add(out, name);
    return out;
  }

  void writable() {
    auto granted = own_and_written();
    each_bind([&](const std::string& source, const std::string&, bool read_only) {
      bool device = std::find(std::begin(kDevices), std::end(kDevices), source) != std::end(kDevices);
      if (!read_only && !device && !among(granted, source)) out_.push_back("fs.write is claimed, the plan makes " + source + " writable");
    });
  }

  void readable() {
    auto granted = own_and_written();
    for (std::string& p : paths("read")) granted.push_back(std::move(p));
    for (const Json& p : request_["paths"]["objects"].array()) granted.push_back(real(p.string()));
    // Names must be resolved as on the host when its network is granted; the file is often a link to a daemon's folder.
    if (request_["policy"]["profile"]["net"]["mode"].string() == "host") granted.push_back(real("/etc/resolv.conf"));
    granted.insert(granted.end(), std::begin(kDevices), std::end(kDevices));
    granted.insert(granted.end(), std::begin(kProc), std::end(kProc));
    each_bind([&](const std::string& source, const std::string&, bool) {
      if (!among(granted, source)) out_.push_back("fs.read is claimed, the plan shows " + source);
    });
  }

  bool masked(const std::string& path) const {
    const auto& mounts = plan_["mounts"].array();
    return std::any_of(mounts.begin(), mounts.end(),
                       [&](const Json& m) { return m["kind"].string() == "mask" && within(path, m["target"].string()); });
  }

  void denied() {
    for (const std::string& name : paths("deny")) {
      char there[PATH_MAX];
      bool exists = realpath(name.c_str(), there) != nullptr;
      // What shows the name in the box is the last bind that reaches it.
      std::string seen;
      bool fixed = false;
      each_bind([&](const std::string& source, const std::string& target, bool read_only) {
        if (!within(name, source)) return;
        seen = target + (source == "/" ? name : name.substr(source.size()));
        fixed = read_only;
      });
      // In a read-only grant nobody in the box can make a name that is not there.
      if (seen.empty() || masked(seen) || (!exists && fixed)) continue;
      out_.push_back("fs.deny is claimed, the plan does not mask " + seen);
    }
  }

  // Of every tier that builds a view, whatever it claims: h5i's own files are in no box.
  void hidden() {
    std::vector<std::string> own;
    for (const char* name : {"work", "git", "spool", "private"}) add(own, name);
    for (const Json& p : request_["paths"]["objects"].array()) own.push_back(real(p.string()));
    const auto& mounts = plan_["mounts"].array();
    auto covered_after = [&](const std::string& seen, size_t at) {
      return std::any_of(mounts.begin() + static_cast<ptrdiff_t>(at) + 1, mounts.end(), [&](const Json& m) {
        const std::string& kind = m["kind"].string();
        return (kind == "mask" || kind == "tmpfs") && within(seen, m["target"].string());
      });
    };
    for (const Json& p : request_["hide_always"].array()) {
      std::string path = real(p.string());
      bool exists = access(path.c_str(), F_OK) == 0;
      for (size_t i = 0; i < mounts.size(); i++) {
        const Json& m = mounts[i];
        if (m["kind"].string() != "bind") continue;
        const std::string &source = m["source"].string(), &target = m["target"].string();
        bool shown = within(source, path) && !among(own, source);
        if (within(path, source) && path != source && !among(own, source)) {
          const auto& flags = m["flags"].array();
          bool fixed = std::any_of(flags.begin(), flags.end(), [](const Json& w) { return w.string() == "ro"; });
          std::string seen = target + (source == "/" ? path : path.substr(source.size()));
          shown = !covered_after(seen, i) && (exists || !fixed);
        }
        if (shown) out_.push_back("the plan shows h5i's own " + path + " by its bind of " + source);
      }
    }
  }

  const Json& plan_;
  const Json& request_;
  const std::vector<std::string>& claims_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> departures(const Json& plan, const Json& request, const std::vector<std::string>& claims) {
  return Comparison(plan, request, claims).lines();
}

}  // namespace h5i::session
