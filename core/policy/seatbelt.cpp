#include "core/policy/seatbelt.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "core/policy/model.hpp"
#include "core/policy/paths.hpp"

namespace h5i::policy {
namespace {

using Paths = std::vector<std::string>;

// What the loader of programs needs to start any of them.
constexpr std::string_view kSystem[] = {"/Library/Apple", "/System/Library", "/System/Volumes/Preboot/Cryptexes", "/private/var/db/dyld", "/usr/lib"};
constexpr std::string_view kReadDevices[] = {"/dev/random", "/dev/urandom"};
constexpr std::string_view kDevices[] = {"/dev/null", "/dev/zero"};
// Of the machine, none of another process: kern.procargs2 would give away its environment.
constexpr std::string_view kSysctls[] = {"hw.activecpu", "hw.byteorder", "hw.cachelinesize", "hw.cpufamily", "hw.logicalcpu", "hw.logicalcpu_max",
                                         "hw.machine", "hw.memsize", "hw.model", "hw.ncpu", "hw.pagesize", "hw.physicalcpu", "hw.physicalcpu_max",
                                         "kern.argmax", "kern.maxfilesperproc", "kern.osproductversion", "kern.osrelease", "kern.ostype",
                                         "kern.osversion", "kern.version", "vm.loadavg"};
// Users and groups by name; nothing that speaks to a network.
constexpr std::string_view kServices[] = {"com.apple.system.opendirectoryd.libinfo"};

constexpr std::string_view kData = "/System/Volumes/Data";

Error path_error(std::string_view field, const std::string& path, std::string_view why) {
  return make_error(Errc::POLICY_PATH, std::string(field) + " has a path that a sandbox profile cannot hold", path.substr(0, 200) + ": " + std::string(why));
}

Result<void> check_path(std::string_view field, const std::string& path) {
  if (path.empty() || path[0] != '/') return path_error(field, path, "it is not absolute");
  if (path.find('\0') != std::string::npos) return path_error(field, path, "it has a NUL byte");
  for (size_t at = 1; at <= path.size() && path.size() > 1;) {
    size_t end = std::min(path.find('/', at), path.size());
    std::string_view name = std::string_view(path).substr(at, end - at);
    if (name.empty() || name == "." || name == "..") return path_error(field, path, "it has an empty component, `.` or `..`");
    at = end + 1;
  }
  if (path == kData) return path_error(field, path, "it is the whole of a volume under a second name");
  return {};
}

// The names under which the kernel may have what `path` names.
Paths spellings(const std::string& path) {
  Paths all = {path};
  std::string base = path;
  if (beneath(path, kData)) all.push_back(base = path.substr(kData.size()));
  for (std::string_view linked : {"/etc", "/tmp", "/var"})
    if (beneath(base, linked)) all.push_back("/private" + base);
  return all;
}

// At tiers with a view of their own these are the box's; here they would be the host's.
bool box_would_have_its_own(const std::string& path) {
  for (const std::string& p : spellings(path))
    if (beneath(p, "/dev") || beneath(p, "/proc") || p == "/private/tmp" || p == "/private/var/tmp") return true;
  return false;
}

Result<Paths> read_paths(const Json& list, std::string_view field, const std::string& work, bool grant) {
  Paths out;
  if (!list.is_array()) return make_error(Errc::INVALID, std::string(field) + " of the policy is no list");
  for (const Json& item : list.array()) {
    if (!item.is_string()) return make_error(Errc::INVALID, std::string(field) + " of the policy has an element that is no text");
    std::string path = item.string();
    if (path == "$WORK" || path.starts_with("$WORK/")) path = work + path.substr(5);
    H5I_TRY(check_path(field, path));
    if (grant && path == "/") return path_error(field, path, "a grant of the whole file system confines nothing");
    out.push_back(std::move(path));
  }
  return out;
}

class Writer {
 public:
  explicit Writer(SeatbeltProfile& out) : out_(out) {}

  // (ACTION OPERATIONS (FILTER (param ...)) ...), nothing for no paths: a rule without a filter is about everything.
  void paths(std::string_view action, std::string_view operations, std::string_view filter, std::string_view name, const Paths& paths) {
    std::set<std::string> seen;
    std::string filters;
    for (const std::string& path : paths)
      for (const std::string& p : spellings(path))
        if (seen.insert(p).second) filters += "\n  (" + std::string(filter) + " (param \"" + parameter(name, seen.size() - 1, p) + "\"))";
    if (!filters.empty()) rule(action, operations, filters);
  }
  template <class List>
  void names(std::string_view operation, std::string_view filter, const List& list) {
    std::string filters;
    for (std::string_view n : list) filters += "\n  (" + std::string(filter) + " \"" + std::string(n) + "\")";
    rule("allow", operation, filters);
  }
  void rule(std::string_view action, std::string_view operations, const std::string& filters = "") {
    out_.text += "(" + std::string(action) + " " + std::string(operations) + filters + ")\n";
  }
  void say(std::string_view comment) { out_.text += "\n; " + std::string(comment) + "\n"; }

 private:
  std::string parameter(std::string_view prefix, size_t number, const std::string& value) {
    std::string name = std::string(prefix) + "_" + std::to_string(number);
    out_.parameters.push_back({name, value});
    return name;
  }
  SeatbeltProfile& out_;
};

// The directories above `paths`, without "/"; with `inside`, only those that lie in one of its trees.
Paths above(const Paths& paths, const Paths* inside) {
  std::set<std::string> all;
  for (const std::string& path : paths)
    for (std::string p : spellings(path))
      for (size_t slash = p.rfind('/'); slash != 0 && slash != std::string::npos; slash = p.rfind('/')) {
        p.resize(slash);
        bool wanted = !inside;
        if (inside)
          for (const std::string& tree : *inside)
            for (const std::string& t : spellings(tree)) wanted = wanted || beneath(p, t);
        if (wanted) all.insert(p);
      }
  return {all.begin(), all.end()};
}

void list_unheld(const Json& profile, const SeatbeltRun& run, const std::vector<std::pair<std::string, std::string>>& dropped, SeatbeltProfile& out) {
  const Json &fs = profile["fs"], &net = profile["net"];
  auto unheld = [&](std::string field, const char* reason, std::string detail) { out.not_held.push_back({std::move(field), reason, std::move(detail)}); };
  if (profile.object().contains("tools")) unheld("proc.tools", "first-program-only", "the list is checked for the command that h5i starts; a shell can start anything");
  for (const auto& [field, path] : dropped) unheld(field, "no-view", path + " of a box would be the host's here: it is not granted");
  if (!fs["deny"].array().empty()) {
    unheld("fs.deny", "by-name", "a rule names bytes: on a volume that folds case, or through a link, a name is what the kernel makes of it");
    unheld("fs.preexisting-hardlink", "by-name", "a second link that was there before is another name");
  }
  if (!fs["private"].object().empty()) unheld("fs.private", "no-view", "a profile moves nothing: the directories stay in $WORK");
  if (!net["egress"].array().empty()) {
    if (run.proxy) unheld("net.egress", "by-the-proxy", "the rules admit the proxy's port alone; what is reached beyond it is the proxy's to hold");
    else unheld("net.egress", "no-proxy", "without a proxy nothing is reached: the rules are not granted");
  }
  if (net["unix"].boolean()) unheld("net.unix", "not-granted", "no rule grants a socket with a path");
  if (!net["loopback"].array().empty()) unheld("net.loopback", "not-granted", "no port of the loopback is granted but the proxy's");
  for (std::string_view name : kResources)
    if (profile["resources"].object().contains(name)) unheld("resources." + std::string(name), "no-rule", "a sandbox profile has no rule for it");
  for (const char* field : {"secrets", "auth"})
    if (profile.object().contains(field)) unheld(field, "no-rule", "a sandbox profile has no rule for it");
  if (profile.object().contains("container")) unheld("container.image", "no-image", "the tier takes no image");
  if (!profile["browser"]["deny"].array().empty()) unheld("browser.deny", "no-rule", "a sandbox profile has no rule for it");
}

}  // namespace

Result<SeatbeltProfile> seatbelt_profile(const Json& document, const SeatbeltRun& run) {
  const Json &profile = document["profile"], &fs = profile["fs"], &net = profile["net"];
  if (document["schema"].string() != "h5i.policy/1" || !profile.is_object() || !fs.is_object() || !net.is_object())
    return make_error(Errc::INVALID, "not a resolved policy", "schema " + document["schema"].string().substr(0, 100));
  if (net["mode"].string() != "deny")
    return make_error(Errc::POLICY_FIELD_TIER, "net.mode: host cannot be given at tier seatbelt", "the rules know no network but the proxy's port");
  if (run.proxy && *run.proxy == 0) return make_error(Errc::INVALID, "the proxy has no port");
  H5I_TRY(check_path("$WORK", run.work));
  if (run.work == "/") return path_error("$WORK", run.work, "a grant of the whole file system confines nothing");
  for (const auto* list : {&run.locked, &run.hidden})
    for (const std::string& path : *list) H5I_TRY(check_path("what is always denied", path));

  Paths read = H5I_TRY(read_paths(fs["read"], "fs.read", run.work, true));
  Paths write = H5I_TRY(read_paths(fs["write"], "fs.write", run.work, true));
  Paths denied = H5I_TRY(read_paths(fs["deny"], "fs.deny", run.work, false));
  denied.insert(denied.end(), run.hidden.begin(), run.hidden.end());
  std::vector<std::pair<std::string, std::string>> dropped;  // field and path
  for (Paths* list : {&read, &write})
    std::erase_if(*list, [&](const std::string& p) {
      if (!box_would_have_its_own(p)) return false;
      dropped.emplace_back(list == &read ? "fs.read" : "fs.write", p);
      return true;
    });

  SeatbeltProfile out;
  out.text = "(version 1)\n(deny default)\n";
  Writer w(out);
  w.say("processes");
  w.rule("allow", "process-fork");
  w.rule("allow", "signal", " (target self)");
  w.rule("allow", "process-info*", " (target self)");
  w.names("sysctl-read", "sysctl-name", kSysctls);
  w.names("mach-lookup", "global-name", kServices);

  w.say("what every program needs");
  Paths of_system(std::begin(kSystem), std::end(kSystem)), devices(std::begin(kDevices), std::end(kDevices));
  Paths granted = of_system;
  for (const Paths* list : {&read, &write}) granted.insert(granted.end(), list->begin(), list->end());
  w.paths("allow", "file-read*", "literal", "ROOT", {"/"});
  w.paths("allow", "file-read-metadata", "literal", "ABOVE", above(granted, nullptr));
  w.paths("allow", "file-read* file-map-executable", "subpath", "SYSTEM", of_system);
  w.paths("allow", "file-read*", "literal", "SOURCE", Paths(std::begin(kReadDevices), std::end(kReadDevices)));
  w.paths("allow", "file-read* file-write-data", "literal", "DEVICE", devices);

  w.say("grants");
  w.paths("allow", "file-read* file-map-executable process-exec*", "subpath", "READ", read);
  w.paths("allow", "file-read* file-write* file-map-executable process-exec*", "subpath", "WRITE", write);

  w.say("network");
  if (run.proxy && !net["egress"].array().empty()) w.rule("allow", "network-outbound", " (remote tcp \"localhost:" + std::to_string(*run.proxy) + "\")");
  else w.rule("deny", "network*");

  w.say("denials: the last rule that matches decides");
  w.rule("deny", "file-write-setugid");
  w.paths("deny", "file-write*", "subpath", "LOCKED", run.locked);
  w.paths("deny", "file-read* file-write* file-map-executable process-exec*", "subpath", "DENIED", denied);
  // Whoever renames a directory above takes a denied name out of its rule.
  Paths kept = denied;
  kept.insert(kept.end(), run.locked.begin(), run.locked.end());
  w.paths("deny", "file-write-unlink", "literal", "KEPT", above(kept, &write));
  list_unheld(profile, run, dropped, out);
  return out;
}

}  // namespace h5i::policy
