#include "core/plugin/registry.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "core/plugin/manifest.hpp"
#include "core/plugin/pins.hpp"
#include "core/plugin/trusted_path.hpp"

namespace h5i::plugin {
namespace {

constexpr size_t kMaxPluginsPerDirectory = 256;
constexpr const char* kHostDirectories = "/etc/h5i/plugin-directories";
constexpr size_t kMaxHostDirectories = 4096;  // bytes of that file

// Names of packages, for the message about a tier that is not there. Whether a tier exists is for manifests to say.
constexpr std::string_view kShippedTiers[] = {"workspace", "process", "supervised", "container", "microvm", "seatbelt"};

Result<std::string> prefix_of_this_executable() {
  std::string exe(4096, '\0');
  ssize_t n = readlink("/proc/self/exe", exe.data(), exe.size());
  if (n <= 0) return sys_error("read /proc/self/exe");
  exe.resize(static_cast<size_t>(n));
  std::string dir = exe.substr(0, exe.rfind('/'));
  if (dir.ends_with("/libexec/h5i")) return dir.substr(0, dir.size() - std::string_view("/libexec/h5i").size());
  return dir.substr(0, dir.rfind('/'));
}

// Empty when there is no home: then there is no user's directory, and nothing in it.
std::string state_of_user() {
  if (const char* xdg = getenv("XDG_STATE_HOME"); xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/h5i";
  if (const char* home = getenv("HOME"); home != nullptr && home[0] == '/')
    return std::string(home) + "/.local/state/h5i";
  return {};
}

// One absolute path a line, '#' begins a comment. No such file is no directories.
Result<std::vector<std::string>> directories_of_host(Believed believed) {
  std::vector<std::string> out;
  auto dir = open_trusted_directory("/etc/h5i", believed);
  if (!dir && dir.error().code == Errc::NOT_FOUND) return out;
  UniqueFd etc = H5I_TRY(std::move(dir));
  auto file = open_trusted_file(etc, "plugin-directories", kHostDirectories, believed);
  if (!file && file.error().code == Errc::NOT_FOUND) return out;
  UniqueFd fd = H5I_TRY(std::move(file));
  return host_directories(H5I_TRY(read_all(fd, kMaxHostDirectories, kHostDirectories)));
}

std::vector<std::string> manifest_names(int directory_fd) {
  std::vector<std::string> out;
  int copy = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return out;
  std::unique_ptr<DIR, int (*)(DIR*)> d(fdopendir(copy), closedir);
  if (!d) {
    close(copy);
    return out;
  }
  while (const dirent* e = readdir(d.get())) {
    std::string_view name = e->d_name;
    if (name[0] != '.' && name.size() > kManifestSuffix.size() && name.ends_with(kManifestSuffix) &&
        out.size() < kMaxPluginsPerDirectory)
      out.emplace_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Scan {
 public:
  Scan(const Settings& settings, std::vector<PluginInfo>& out)
      : settings_(settings), believed_{settings.euid}, out_(out) {}

  void run() {
    auto pins = load_pins(settings_.lock_file, believed_);
    if (pins)
      pins_ = std::move(*pins);
    else
      pins_error_ = pins.error();
    for (const Directory& d : settings_.directories) directory(d);
    refuse_duplicates();
    std::sort(out_.begin(), out_.end(), [](const PluginInfo& a, const PluginInfo& b) {
      return std::tie(a.name(), a.manifest_path) < std::tie(b.name(), b.manifest_path);
    });
  }

 private:
  void directory(const Directory& d) {
    auto opened = open_trusted_directory(d.path, believed_);
    if (opened) {
      for (const std::string& name : manifest_names(opened->get())) out_.push_back(plugin(d, *opened, name));
      return;
    }
    if (opened.error().code == Errc::NOT_FOUND) return;
    // What lies in a directory that is not trusted is shown, by file name only: nothing of it is read.
    UniqueFd listed(open(d.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const std::string& name : manifest_names(listed.get())) {
      out_.push_back(named(d, name));
      out_.back().refused = opened.error();
    }
  }

  static PluginInfo named(const Directory& d, const std::string& file) {
    PluginInfo info;
    info.manifest_path = d.path + "/" + file;
    info.stem = file.substr(0, file.size() - kManifestSuffix.size());
    return info;
  }

  PluginInfo plugin(const Directory& d, const UniqueFd& dir, const std::string& file) {
    PluginInfo info = named(d, file);
    if (auto r = read(d, dir, file, info); !r) info.refused = r.error();
    return info;
  }

  Result<void> read(const Directory& d, const UniqueFd& dir, const std::string& file, PluginInfo& info) {
    UniqueFd fd = H5I_TRY(open_trusted_file(dir, file, info.manifest_path, believed_));
    std::string bytes = H5I_TRY(read_all(fd, kMaxManifestBytes, info.manifest_path));
    auto parsed = parse_manifest(bytes, info.manifest_path);
    if (!parsed) {
      remember_id(bytes, info);
      return parsed.error();
    }
    info.manifest = std::move(*parsed);
    info.id = info.manifest["id"].string();
    info.kind = info.manifest["kind"].string();
    info.version = info.manifest["version"].string();
    info.digest = PluginDigest(info.manifest["sha256"].string());
    info.library = d.path + "/" + info.manifest["library"].string();
    info.package = info.manifest["package"].string();
    H5I_TRY(trust(d, info));
    UniqueFd library = H5I_TRY(open_trusted_file(dir, info.manifest["library"].string(), info.library, believed_));
    return {};
  }

  // A manifest that is refused may still say whose it is, so that asking for that tier names the reason.
  static void remember_id(const std::string& bytes, PluginInfo& info) {
    auto v = json::parse(bytes);
    if (!v) return;
    const std::string& id = (*v)["id"].string();
    if (valid_plugin_id(id)) info.id = id;
    const std::string& kind = (*v)["kind"].string();
    if (kind == "tier" || kind == "websec") info.kind = kind;
  }

  Result<void> trust(const Directory& d, PluginInfo& info) {
    if (d.trust == Trust::SYSTEM) {
      info.trust = Trust::SYSTEM;
      return {};
    }
    if (pins_error_) return *pins_error_;
    auto pin = pins_.find(info.id);
    if (pin == pins_.end())
      return make_error(Errc::PLUGIN_UNTRUSTED, info.id + " is not trusted", "no digest of it is pinned",
                        "h5i plugin trust " + info.id);
    if (pin->second.digest != info.digest)
      return make_error(Errc::PLUGIN_DIGEST, info.id + " is not the one that was trusted",
                        "pinned " + pin->second.digest.value + ", the manifest says " + info.digest.value);
    info.trust = Trust::PINNED;
    return {};
  }

  // Only plugins that could be used count, so that a bad one never takes a good one with it.
  void refuse_duplicates() {
    std::map<std::string, std::vector<PluginInfo*>> by_id;
    for (PluginInfo& p : out_)
      if (!p.refused) by_id[p.id].push_back(&p);
    for (auto& [id, all] : by_id) {
      if (all.size() < 2) continue;
      std::string paths;
      for (PluginInfo* p : all) paths += (paths.empty() ? "" : " and ") + p->manifest_path;
      for (PluginInfo* p : all)
        p->refused = make_error(Errc::PLUGIN_DUPLICATE, "more than one plugin says that it is " + id, paths);
    }
  }

  const Settings& settings_;
  Believed believed_;
  std::vector<PluginInfo>& out_;
  Pins pins_;
  std::optional<Error> pins_error_;
};

}  // namespace

std::string_view trust_name(Trust t) { return t == Trust::SYSTEM ? "system" : t == Trust::PINNED ? "pinned" : "none"; }

std::string package_of_tier(std::string_view id) {
  bool shipped = std::find(std::begin(kShippedTiers), std::end(kShippedTiers), id) != std::end(kShippedTiers);
  return shipped ? "h5i-tier-" + std::string(id) : std::string();
}

std::vector<std::string> shipped_tiers() { return {std::begin(kShippedTiers), std::end(kShippedTiers)}; }

std::vector<std::string> host_directories(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '/' || line.back() == '\r'))
      line.remove_suffix(1);
    if (!line.empty() && line[0] == '/') out.emplace_back(line);
    at = end + 1;
  }
  return out;
}

Result<Settings> Settings::of_this_process() {
  Settings s;
  s.euid = geteuid();
  std::string prefix = H5I_TRY(prefix_of_this_executable());
  s.directories.push_back({prefix + "/lib/h5i/plugins/1", Trust::SYSTEM});
  if (std::string state = state_of_user(); !state.empty()) {
    s.state_directory = state + "/plugins";
    s.lock_file = state + "/plugins.lock.json";
    s.directories.push_back({s.state_directory, Trust::PINNED});
  }
  auto listed = directories_of_host({s.euid});
  if (!listed) {
    s.host_list_refused = listed.error();
    return s;
  }
  for (std::string& path : *listed)
    if (std::none_of(s.directories.begin(), s.directories.end(), [&](const Directory& d) { return d.path == path; }))
      s.directories.push_back({std::move(path), Trust::SYSTEM});
  return s;
}

Result<Registry> Registry::scan(Settings settings) {
  Registry r;
  r.settings_ = std::move(settings);
  Scan(r.settings_, r.plugins_).run();
  return r;
}

Result<PluginInfo> Registry::find_tier(std::string_view id) const {
  const PluginInfo* refused = nullptr;
  std::string present;
  for (const PluginInfo& p : plugins_) {
    bool named = p.id == id || (p.id.empty() && p.stem == "tier-" + std::string(id));
    if (named && !p.refused && p.kind == "tier") return p;
    if (named && p.refused && refused == nullptr) refused = &p;
    if (!p.refused && p.kind == "tier") present += (present.empty() ? "" : ", ") + p.id;
  }
  std::string tier(id);
  if (refused != nullptr)
    return make_error(Errc::TIER_REFUSED, "tier " + tier + " is installed but refused",
                      std::string(refused->refused->id()) + ": " + refused->refused->what +
                          (refused->refused->evidence.empty() ? "" : " (" + refused->refused->evidence + ")"),
                      refused->refused->remedy());
  if (std::string package = package_of_tier(id); !package.empty())
    return make_error(Errc::TIER_NOT_INSTALLED, "tier " + tier + " is not installed",
                      "no plugin with this id; the package is " + package, "install the package " + package);
  return make_error(Errc::TIER_UNKNOWN, "there is no tier called " + tier,
                    present.empty() ? "no tier is installed" : "installed: " + present);
}

Result<PluginInfo> Registry::find(std::string_view name) const {
  for (bool usable : {true, false})
    for (const PluginInfo& p : plugins_)
      if ((p.id == name || p.stem == name) && !p.refused == usable) return p;
  return make_error(Errc::NOT_FOUND, "there is no plugin called " + std::string(name),
                    "looked for its id and file name", "h5i plugin list");
}

void Registry::verify_bytes() {
  for (PluginInfo& p : plugins_)
    if (!p.refused)
      if (auto r = open_verified(p, settings_.euid); !r) p.refused = r.error();
}

}  // namespace h5i::plugin
