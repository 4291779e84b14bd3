#include "view.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "path.hpp"

namespace h5i::confined {
namespace {

using json::Object;
using json::Value;

// Landlock's file rights, by the bit that the kernel's interface gives them.
constexpr uint64_t kExecute = 1u << 0, kWriteFile = 1u << 1, kReadFile = 1u << 2, kReadDir = 1u << 3;
constexpr uint64_t kMakeChar = 1u << 6, kMakeSock = 1u << 9, kMakeBlock = 1u << 11, kTruncate = 1u << 14,
                   kIoctlDev = 1u << 15;
constexpr uint64_t kFileRights = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev;

// Of what lives in memory; the sizes together stay below the memory of the box.
constexpr uint64_t kTmpInodes = 1u << 18, kHomeInodes = 1u << 17, kShmInodes = 1u << 14;

// Of the directory that takes the place of a hidden one: names on the way to what the box has of its own there.
constexpr uint64_t kHiddenBytes = 1u << 16, kHiddenInodes = 1u << 10;

constexpr int kMaxLinks = 40;  // as the kernel's own limit

// One place of the box that shows something of the host, or something of its own in memory.
struct Area {
  std::string target;
  std::string source;  // empty: in memory
  bool write = false;
  bool idmap = false;
  bool device = false;
  bool granted = false;  // by the profile, and not one of the box's own directories
  NodeKind kind = NodeKind::DIRECTORY;

  std::string host_path(const std::string& path) const { return source + path.substr(target.size()); }
};

struct Link {
  std::string path, to;
};

// Looks at each name once: grants, denials and what is always denied share most of their parents.
class LookOnce final : public HostView {
 public:
  explicit LookOnce(const HostView& host) : host_(host) {}
  Node look(const std::string& path) const override {
    auto at = seen_.find(path);
    return at != seen_.end() ? at->second : seen_.emplace(path, host_.look(path)).first->second;
  }
  std::string link_target(const std::string& path) const override { return host_.link_target(path); }
  std::vector<std::string> names(const std::string& directory) const override { return host_.names(directory); }
  std::string small_file(const std::string& path) const override { return host_.small_file(path); }
  std::vector<std::string> listening_sockets() const override { return host_.listening_sockets(); }

 private:
  const HostView& host_;
  mutable std::unordered_map<std::string, Node> seen_;
};

struct Resolved {
  std::string path;
  Node node;
  std::vector<Link> links;
  bool loop = false;
};

// The path without symbolic links, and the links on the way: the box gets both, so names mean the same inside.
Resolved resolve(const HostView& host, const std::string& path) {
  Resolved out;
  std::vector<std::string> rest = components(path);
  std::reverse(rest.begin(), rest.end());
  std::string at = "/";
  out.node.kind = NodeKind::DIRECTORY;
  while (!rest.empty()) {
    std::string name = rest.back();
    rest.pop_back();
    if (name == ".") continue;
    if (name == "..") {
      at = parent_of(at);
      continue;
    }
    std::string next = join(at, name);
    out.node = host.look(next);
    if (out.node.kind == NodeKind::SYMLINK) {
      std::string to = host.link_target(next);
      if (to.empty() || out.links.size() >= kMaxLinks) {
        out.loop = true;
        out.node = {};
        return out;
      }
      out.links.push_back({next, to});
      if (to[0] == '/') at = "/";
      std::vector<std::string> more = components(to);
      rest.insert(rest.end(), more.rbegin(), more.rend());
      out.node.kind = NodeKind::DIRECTORY;
      continue;
    }
    at = next;
  }
  out.path = at;
  return out;
}

class Builder {
 public:
  Builder(const Request& request, const HostFacts& facts, const HostView& host)
      : request_(request), facts_(facts), host_(host), work_as_given_(request.work) {
    // Mounts are made without following a link; the names as given still lead there in the box.
    for (std::string* path : {&request_.work, &request_.git, &request_.spool, &request_.private_root}) {
      Resolved r = resolve(host_, *path);
      if (path->empty() || r.loop || r.node.kind == NodeKind::ABSENT) continue;
      for (const Link& link : r.links) links_[link.path] = link.to;
      *path = r.path;
    }
  }

  sdk::Result<View> build();

 private:
  sdk::Status add_grants();
  sdk::Status add_own_directories();
  void add_memory();
  sdk::Status add_denials();
  sdk::Status deny(const std::string& name);
  sdk::Status write_deny(const Resolved& resolved);
  sdk::Status hide(const Resolved& resolved);
  bool own(const std::string& path) const;
  bool hidden(const std::string& path) const;
  sdk::Status protect_parents(const Area& area, const std::string& path, std::string_view field);
  sdk::Status refuse_sockets();
  void add_identity_files();
  void add_file(const std::string& path, std::string content);
  void add_devices();
  void add_proc();
  void add_merged_usr();
  void emit_areas();
  void add_landlock();

  sdk::Status add_area(std::string_view field, const std::string& path, Area area, bool may_be_missing);
  const Area* covering(const std::string& path) const;
  void mount(const std::string& target, Object entry);
  Object bind_of(const Area& area, const std::string& path, bool read_only) const;
  bool denied(const std::string& path) const;
  void need(const Area& area, const std::string& path, bool directory);
  void rule(const std::string& path, uint64_t access);

  Request request_;
  const HostFacts& facts_;
  LookOnce host_;
  std::map<std::string, Area> areas_;
  std::map<std::string, Value, decltype(&parent_first)> mounts_{&parent_first};
  std::map<std::string, std::string> links_;
  std::vector<std::string> denied_, hidden_;
  View view_;
  std::string work_as_given_;
};

sdk::Failure path_refused(std::string_view field, const std::string& path, std::string_view why) {
  return sdk::failure(H5I_E_POLICY_PATH, std::string(field) + ": " + path + " " + std::string(why));
}

// Never the host's: each box has its own.
bool box_has_its_own(std::string_view path) {
  return path == "/tmp" || path == "/var/tmp" || path == "/proc" || is_within(path, "/dev");
}

const Area* Builder::covering(const std::string& path) const {
  for (std::string at = path;; at = parent_of(at)) {
    if (auto it = areas_.find(at); it != areas_.end()) return &it->second;
    if (at == "/") return nullptr;
  }
}

// The box's own, wherever it lies.
bool Builder::own(const std::string& path) const {
  return is_within(path, request_.work) || (!request_.spool.empty() && is_within(path, request_.spool));
}

bool Builder::hidden(const std::string& path) const {
  return !own(path) &&
         std::any_of(hidden_.begin(), hidden_.end(), [&](const std::string& h) { return is_within(path, h); });
}

bool Builder::denied(const std::string& path) const {
  return hidden(path) || std::any_of(denied_.begin(), denied_.end(), [&](const std::string& d) { return is_within(path, d); });
}

// Asks for a node at `path` and for the directories above it, as far as they are missing.
void Builder::need(const Area& area, const std::string& path, bool directory) {
  if (host_.look(area.host_path(path)).kind != NodeKind::ABSENT) return;
  if (parent_of(path).size() > area.target.size()) need(area, parent_of(path), true);
  std::string relative = path.substr(area.target.size() + 1);
  for (const Placeholder& p : view_.placeholders)
    if (p.root == area.source && p.relative == relative) return;
  view_.placeholders.push_back({area.source, relative, directory});
}

void Builder::mount(const std::string& target, Object entry) {
  entry["target"] = target;
  mounts_.insert_or_assign(target, Value(std::move(entry)));
}

Object Builder::bind_of(const Area& area, const std::string& path, bool read_only) const {
  json::Array flags;
  if (read_only) flags.push_back("ro");
  flags.push_back("nosuid");
  if (area.device)
    flags.push_back("noexec");
  else
    flags.push_back("nodev");
  Object o{{"kind", "bind"}, {"source", area.host_path(path)}, {"flags", std::move(flags)}};
  // An id-mapped tree is cloned without what is mounted below it: the map would have to hold for each of those, too.
  o["recursive"] = !area.idmap;
  if (area.idmap) o["idmap"] = true;
  return o;
}

sdk::Status Builder::add_area(std::string_view field, const std::string& path, Area area, bool may_be_missing) {
  Resolved r = resolve(host_, path);
  if (r.loop || r.node.kind == NodeKind::ABSENT) {
    if (may_be_missing) return {};
    return path_refused(field, path, r.loop ? "is a loop of symbolic links" : "is not there on this host");
  }
  if (r.node.kind == NodeKind::SOCKET)
    return sdk::failure(H5I_E_POLICY_SOCKET,
                        std::string(field) + ": " + path + " is a socket: whoever listens there acts outside");
  if (r.node.kind == NodeKind::FIFO || r.node.kind == NodeKind::DEVICE)
    return path_refused(field, path, "is neither a directory nor a file");
  if (r.path == "/" || is_within(r.path, "/sys") || is_within(r.path, "/proc") || is_within(r.path, "/dev"))
    return path_refused(field, path, "is never shown to a box");
  for (const Link& link : r.links) links_[link.path] = link.to;
  area.target = r.path;
  area.source = area.source.empty() ? r.path : area.source;
  area.kind = r.node.kind;
  auto [it, fresh] = areas_.try_emplace(r.path, area);
  // Read and write of one path: write says more. A box's own directory is what it is, whatever a grant adds.
  if (!fresh && area.write && it->second.granted) it->second = area;
  return {};
}

sdk::Status Builder::add_grants() {
  auto optional = [&](const std::string& path) {
    return std::find(request_.optional.begin(), request_.optional.end(), path) != request_.optional.end();
  };
  auto add = [&](std::string_view field, const std::string& path, bool write) -> sdk::Status {
    if (box_has_its_own(path)) return {};
    Area area;
    area.write = write;
    area.granted = true;
    if (request_.as_root()) {
      // What belongs to root on disk and is meant for this box appears as the box's own. System directories keep their
      // owner, or /etc/shadow would become readable.
      std::string repository = request_.repo_git.empty() ? "" : parent_of(request_.repo_git);
      area.idmap = write || (!request_.home.empty() && is_within(path, request_.home)) ||
                   (!repository.empty() && repository != "/" && is_within(path, repository)) ||
                   is_within(path, work_as_given_);
    }
    if (path == work_as_given_) {
      area.write = write && !request_.readonly;
      area.granted = false;
    }
    return add_area(field, path, area, optional(path));
  };
  for (const std::string& path : request_.write) H5I_SDK_TRY(add("fs.write", path, true));
  for (const std::string& path : request_.read) H5I_SDK_TRY(add("fs.read", path, false));
  // A read grant below a write grant adds nothing: fs.write is visible, readable and also writable.
  for (auto it = areas_.begin(); it != areas_.end();) {
    const Area* above = it->first == "/" ? nullptr : covering(parent_of(it->first));
    bool same = above != nullptr && it->second.granted && above->idmap == it->second.idmap &&
                (above->write || !it->second.write) && (above->granted || above->target == request_.work);
    it = same ? areas_.erase(it) : std::next(it);
  }
  return {};
}

sdk::Status Builder::add_own_directories() {
  auto own = [&](const std::string& source, bool write) {
    Area a;
    a.source = source;
    a.write = write;
    a.idmap = request_.as_root();
    return a;
  };
  bool work_is_visible = covering(request_.work) != nullptr;
  for (const std::string& path : request_.objects) {
    Resolved r = resolve(host_, path);
    const Area* above = r.path.empty() ? nullptr : covering(r.path);
    if (r.node.kind != NodeKind::DIRECTORY || (above != nullptr && !above->write && above->idmap == request_.as_root()))
      continue;
    for (const Link& link : r.links) links_[link.path] = link.to;
    Area a = own(r.path, false);
    a.target = r.path;
    areas_.insert_or_assign(r.path, a);
  }
  if (!request_.spool.empty() && host_.look(request_.spool).kind == NodeKind::DIRECTORY) {
    Area a = own(request_.spool, true);
    a.target = request_.spool;
    areas_.insert_or_assign(a.target, a);
  }
  if (!work_is_visible) return {};
  std::string work = resolve(host_, request_.work).path;
  bool writable = covering(work) != nullptr && covering(work)->write;
  if (!request_.git.empty()) {
    NodeKind there = host_.look(join(work, ".git")).kind;
    if (there != NodeKind::ABSENT && there != NodeKind::DIRECTORY)
      return path_refused("paths.git", join(work, ".git"),
                          "is not a directory, so the box's own cannot be mounted there");
    Area a = own(request_.git, writable);
    a.target = join(work, ".git");
    need(*covering(work), a.target, true);
    areas_.insert_or_assign(a.target, a);
  }
  for (const PrivateDir& directory : request_.private_dirs) {
    Area a = own(private_source(request_, directory), true);
    a.target = join(work, directory.relative);
    for (std::string at = parent_of(a.target); at != work; at = parent_of(at))
      if (NodeKind k = host_.look(at).kind; k != NodeKind::DIRECTORY && k != NodeKind::ABSENT)
        return path_refused("fs.private", at, "is not a directory");
    NodeKind there = host_.look(a.target).kind;
    if (there != NodeKind::DIRECTORY && there != NodeKind::ABSENT)
      return path_refused("fs.private", a.target, "is not a directory");
    need(*covering(work), a.target, true);
    areas_.insert_or_assign(a.target, a);
  }
  return {};
}

// What is the box's own and in memory. HOME is private unless something at or above it is granted.
void Builder::add_memory() {
  uint64_t mem = request_.resources.mem;
  uint64_t bound = std::min(mem, request_.resources.disk.value_or(mem));
  auto memory = [&](const std::string& target, uint64_t size, uint64_t inodes, int mode,
                    std::vector<std::string_view> flags) {
    Area a;
    a.target = target;
    a.write = true;
    areas_.try_emplace(target, a);
    json::Array list;
    for (std::string_view f : flags) list.push_back(f);
    mount(target, {{"kind", "tmpfs"}, {"size", size}, {"inodes", inodes}, {"mode", mode}, {"flags", std::move(list)}});
  };
  memory("/tmp", bound / 2, kTmpInodes, 01777, {"nosuid", "nodev"});
  memory("/var/tmp", bound / 8, kTmpInodes, 01777, {"nosuid", "nodev"});
  memory("/dev/shm", bound / 8, kShmInodes, 01777, {"nosuid", "nodev", "noexec"});
  if (!request_.home.empty() && request_.home != "/" && !box_has_its_own(request_.home)) {
    Resolved home = resolve(host_, request_.home);
    std::string path = home.path.empty() ? request_.home : home.path;
    const Area* above = covering(path);
    // A HOME below /tmp (scratch homes of tests) is not there either: the box's own /tmp begins empty.
    if (above == nullptr || (above->source.empty() && above->target != path)) {
      for (const Link& link : home.links) links_[link.path] = link.to;
      memory(path, bound / 8, kHomeInodes, 0700, {"nosuid", "nodev"});
    }
  }
}

// A rename of a parent would carry the mask away and leave the name free. A mount point cannot be renamed, so every
// directory between the writable root and the name is mounted onto itself.
sdk::Status Builder::protect_parents(const Area& area, const std::string& path, std::string_view field) {
  for (std::string at = parent_of(path); at.size() > area.target.size(); at = parent_of(at)) {
    NodeKind kind = host_.look(area.host_path(at)).kind;
    if (kind == NodeKind::SYMLINK)
      return sdk::failure(H5I_E_POLICY_FIELD_TIER,
                          std::string(field) + ": " + at +
                              " is a symbolic link in a writable directory and could be replaced; "
                              "name the path that it leads to");
    if (kind != NodeKind::DIRECTORY && kind != NodeKind::ABSENT) return path_refused(field, at, "is not a directory");
    if (mounts_.count(at) == 0 && areas_.count(at) == 0) mount(at, bind_of(area, at, false));
  }
  return {};
}

sdk::Status Builder::deny(const std::string& name) {
  Resolved r = resolve(host_, name);
  if (r.loop) return path_refused("fs.deny", name, "is a loop of symbolic links");
  // A link whose own directory is writable could be replaced by something else of that name.
  for (const Link& link : r.links) {
    const Area* area = covering(link.path);
    if (area != nullptr && area->write && !area->source.empty())
      return sdk::failure(
          H5I_E_POLICY_FIELD_TIER,
          "fs.deny: " + link.path +
              " is a symbolic link in a writable directory and could be replaced; name the path that it leads to");
  }
  const std::string& path = r.path;
  if (is_within(request_.work, path)) return path_refused("fs.deny", name, "holds the box's own work tree");
  denied_.push_back(path);
  // What is granted, protected or asked for inside a denied path is denied with it.
  std::erase_if(areas_, [&](const auto& a) { return is_within(a.first, path) && !a.second.source.empty(); });
  std::erase_if(mounts_,
                [&](const auto& m) {
                  return is_within(m.first, path) && (m.second["kind"].string() != "tmpfs" || areas_.count(m.first) == 0);
                });
  const Area* area = covering(path);
  if (area == nullptr || area->source.empty()) return {};  // not in the view
  std::erase_if(view_.placeholders,
                [&](const Placeholder& p) { return is_within(join(p.root, p.relative), area->host_path(path)); });
  Node node = host_.look(area->host_path(path));
  if (node.kind == NodeKind::ABSENT && !area->write) return {};  // nobody in the box can make it
  if (node.kind == NodeKind::FILE && node.links > 1)
    view_.not_enforced.push_back({"fs.preexisting-hardlink", "other-name",
                                  name + " has " + std::to_string(node.links) + " names; only this one is masked"});
  if (area->write) {
    H5I_SDK_TRY(protect_parents(*area, path, "fs.deny"));
    need(*area, path, false);
  }
  mount(path, {{"kind", "mask"}});
  return {};
}

// Write-denied whatever the profile says: what other programs of the user start or trust.
sdk::Status Builder::write_deny(const Resolved& r) {
  for (const Link& link : r.links) {
    const Area* area = covering(link.path);
    if (area != nullptr && area->granted && area->write)
      return sdk::failure(H5I_E_POLICY_FIELD_TIER, "fs.write: " + area->target +
                                                       " would let the box replace the link " + link.path +
                                                       ", which other programs of yours trust");
  }
  for (auto& [target, a] : areas_)
    if (a.granted && is_within(target, r.path)) a.write = false;
  const Area* above = covering(r.path);
  if (above == nullptr || !above->granted || !above->write) return {};
  H5I_SDK_TRY(protect_parents(*above, r.path, "fs.write"));
  if (r.node.kind == NodeKind::ABSENT) {
    need(*above, r.path, false);
    mount(r.path, {{"kind", "mask"}});
    return {};
  }
  Area area = *above;
  area.source = above->host_path(r.path);
  area.target = r.path;
  area.write = false;
  area.kind = r.node.kind;
  areas_.insert_or_assign(r.path, area);
  return {};
}

// Neither shown nor written whatever the profile says. Where the box's own directories lie there, an empty directory in
// memory takes the place, and they are mounted in it; anywhere else a mask does.
sdk::Status Builder::hide(const Resolved& r) {
  for (const Link& link : r.links) {
    const Area* area = covering(link.path);
    if (area != nullptr && area->granted && area->write)
      return sdk::failure(H5I_E_POLICY_FIELD_TIER, "fs.write: " + area->target +
                                                       " would let the box replace the link " + link.path +
                                                       ", which leads to h5i's own files");
  }
  // A work tree that is seen only because something above is granted stays.
  if (const Area* above = covering(request_.work); above != nullptr && is_within(request_.work, r.path)) {
    Area work = *above;
    work.source = above->host_path(request_.work);
    work.target = request_.work;
    work.write = above->write && !request_.readonly;
    if (!above->source.empty()) areas_.try_emplace(request_.work, work);
  }
  hidden_.push_back(r.path);
  std::erase_if(areas_, [&](const auto& a) { return a.second.granted && hidden(a.first); });
  const Area* area = covering(r.path);
  if (area == nullptr || area->source.empty()) return {};  // not in the view
  Node node = host_.look(area->host_path(r.path));
  if (node.kind == NodeKind::ABSENT && !area->write) return {};  // nobody in the box can make it
  if (area->write) {
    H5I_SDK_TRY(protect_parents(*area, r.path, "fs.write"));
    need(*area, r.path, true);
  }
  bool holds_own = std::any_of(areas_.begin(), areas_.end(), [&](const auto& a) {
    return a.first != r.path && is_within(a.first, r.path) && !a.second.source.empty();
  });
  if (!holds_own) {
    mount(r.path, {{"kind", "mask"}});
    return {};
  }
  mount(r.path, {{"kind", "tmpfs"}, {"size", kHiddenBytes}, {"inodes", kHiddenInodes}, {"mode", 0555},
                 {"flags", json::Array{"nosuid", "nodev", "noexec"}}});
  return {};
}

// What is always hidden or write-denied comes first, parents before what is in them: then a denial below it finds a
// read-only directory, and nothing that protects one name's parents makes another's writable.
sdk::Status Builder::add_denials() {
  struct Always {
    Resolved at;
    bool hide;
  };
  std::vector<Always> always;
  for (const std::string& name : request_.hide_always)
    if (Resolved r = resolve(host_, name); !r.loop) always.push_back({std::move(r), true});
  for (const std::string& name : request_.deny_always)
    if (Resolved r = resolve(host_, name); !r.loop) always.push_back({std::move(r), false});
  std::stable_sort(always.begin(), always.end(), [](const auto& a, const auto& b) { return parent_first(a.at.path, b.at.path); });
  for (const Always& a : always)
    if (!hidden(a.at.path)) H5I_SDK_TRY(a.hide ? hide(a.at) : write_deny(a.at));
  std::vector<std::string> names = request_.deny;
  std::sort(names.begin(), names.end(), parent_first);
  for (const std::string& name : names)
    if (!denied(name)) H5I_SDK_TRY(deny(name));
  return {};
}

sdk::Status Builder::refuse_sockets() {
  for (const std::string& path : host_.listening_sockets()) {
    if (!is_normal(path) || denied(path)) continue;
    const Area* area = covering(path);
    if (area != nullptr && area->granted && host_.look(path).kind == NodeKind::SOCKET)
      return sdk::failure(H5I_E_POLICY_SOCKET, "fs: the grant " + area->target + " holds the socket " + path +
                                                   ": whoever listens there acts outside");
  }
  return {};
}

void Builder::add_file(const std::string& path, std::string content) {
  const Area* area = covering(path);
  // In a read-only directory a file can only be mounted over one that is there.
  if (denied(path) || (area != nullptr && host_.look(path).kind != NodeKind::FILE)) return;
  mount(path, {{"kind", "file"}, {"content", std::move(content)}, {"mode", 0444}});
}

bool has_id(const std::string& table, uint32_t id) {
  // name:password:id:...
  std::string wanted = std::to_string(id);
  size_t at = 0;
  while (at < table.size()) {
    size_t end = std::min(table.find('\n', at), table.size());
    size_t first = table.find(':', at), second = first < end ? table.find(':', first + 1) : std::string::npos;
    size_t third = second < end ? std::min(table.find(':', second + 1), end) : std::string::npos;
    if (third <= end && table.substr(second + 1, third - second - 1) == wanted) return true;
    at = end + 1;
  }
  return false;
}

// Programs ask who they are and what the machine is called; both must have an answer that needs no network.
void Builder::add_identity_files() {
  auto table = [&](const std::string& path, const char* least, uint32_t id, const std::string& line) {
    bool visible = covering(path) != nullptr && host_.look(path).kind == NodeKind::FILE;
    std::string content = visible ? host_.small_file(path) : least;
    if (visible && has_id(content, id)) return;
    if (!content.empty() && content.back() != '\n') content += '\n';
    add_file(path, content + line);
  };
  std::string uid = std::to_string(request_.box_uid), gid = std::to_string(request_.box_gid);
  table("/etc/passwd", "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n", request_.box_uid,
        "box:x:" + uid + ":" + gid + "::" + (request_.home.empty() ? "/" : request_.home) + ":/bin/sh\n");
  table("/etc/group", "root:x:0:\nnogroup:x:65534:\n", request_.box_gid, "box:x:" + gid + ":\n");
  std::string hosts = request_.host_network ? host_.small_file("/etc/hosts") : "127.0.0.1 localhost\n::1 localhost\n";
  if (!hosts.empty() && hosts.back() != '\n') hosts += '\n';
  add_file("/etc/hosts", hosts + "127.0.0.1 box\n" + request_.hosts);
  if (request_.host_network && covering("/etc/resolv.conf") != nullptr) {
    // Often a link to a file that a daemon keeps elsewhere.
    Resolved r = resolve(host_, "/etc/resolv.conf");
    if (r.node.kind == NodeKind::FILE && covering(r.path) == nullptr && !denied(r.path)) {
      for (const Link& link : r.links) links_[link.path] = link.to;
      Area a;
      a.target = a.source = r.path;
      a.kind = NodeKind::FILE;
      areas_[r.path] = a;
    }
  }
}

constexpr std::string_view kDevices[] = {"null", "zero", "full", "random", "urandom", "tty"};

void Builder::add_devices() {
  for (std::string_view name : kDevices) {
    Area a;
    a.target = a.source = join("/dev", name);
    a.device = true;
    mount(a.target, bind_of(a, a.target, false));
  }
  mount("/dev/pts", {{"kind", "devpts"}});
  links_["/dev/ptmx"] = "pts/ptmx";
  links_["/dev/fd"] = "/proc/self/fd";
  links_["/dev/stdin"] = "/proc/self/fd/0";
  links_["/dev/stdout"] = "/proc/self/fd/1";
  links_["/dev/stderr"] = "/proc/self/fd/2";
}

// Files of the private /proc that show or steer the whole machine. Others of that kind belong to the host's root with
// no right for anybody else, and a box's id is never root's; each mask is a mount that every run pays for.
constexpr std::string_view kProcMasked[] = {"acpi",        "asound", "kallsyms",      "kcore",
                                            "key-users",   "keys",   "kmsg",          "latency_stats",
                                            "sched_debug", "scsi",   "sysrq-trigger", "timer_list"};
constexpr std::string_view kProcReadOnly[] = {"bus", "fs", "irq", "sys"};

void Builder::add_proc() {
  mount("/proc", {{"kind", "proc"}});
  for (std::string_view name : kProcMasked)
    if (std::string path = join("/proc", name); host_.look(path).kind != NodeKind::ABSENT)
      mount(path, {{"kind", "mask"}});
  for (std::string_view name : kProcReadOnly) {
    Area a;
    a.target = a.source = join("/proc", name);
    if (host_.look(a.target).kind == NodeKind::DIRECTORY) mount(a.target, bind_of(a, a.target, true));
  }
}

// "/bin -> usr/bin" and its kind, where the host has them and what they lead to is in the view.
void Builder::add_merged_usr() {
  for (const std::string& name : host_.names("/")) {
    std::string path = "/" + name;
    if (host_.look(path).kind != NodeKind::SYMLINK) continue;
    Resolved r = resolve(host_, path);
    if (!r.path.empty() && covering(r.path) != nullptr && !covering(r.path)->source.empty())
      links_[path] = host_.link_target(path);
  }
}

void Builder::emit_areas() {
  for (const auto& [target, area] : areas_)
    if (!area.source.empty() && mounts_.count(target) == 0) mount(target, bind_of(area, target, !area.write));
  for (const auto& [path, to] : links_)
    // Inside a grant the link is there already; on what is the box's own it has to be made.
    if ((covering(path) == nullptr || covering(path)->source.empty()) && mounts_.count(path) == 0 && !denied(path))
      mount(path, {{"kind", "symlink"}, {"to", to}});
}

void Builder::rule(const std::string& path, uint64_t access) {
  access &= landlock_rights(facts_.landlock_abi);
  if (access != 0) view_.landlock_rules.push_back(Object{{"path", path}, {"access", access}});
}

void Builder::add_landlock() {
  uint64_t all = landlock_rights(facts_.landlock_abi);
  uint64_t write = all & ~(kMakeChar | kMakeBlock | (request_.unix_sockets ? 0 : kMakeSock));
  uint64_t read = kExecute | kReadFile | kReadDir;
  rule("/", kReadDir);  // the root holds nothing but the names below
  rule("/proc", kReadFile | kReadDir | kWriteFile | kTruncate);
  for (std::string_view name : kDevices)
    rule(join("/dev", name), kReadFile | kWriteFile | kTruncate | (name == "tty" ? kIoctlDev : 0));
  rule("/dev/pts", kReadFile | kWriteFile | kReadDir | kIoctlDev);
  for (const auto& [target, area] : areas_) {
    uint64_t access = area.write ? write & ~kIoctlDev : read;
    rule(target, area.kind == NodeKind::DIRECTORY ? access : access & kFileRights);
  }
  for (std::string_view path : {"/etc/passwd", "/etc/group", "/etc/hosts"})
    if (mounts_.count(std::string(path)) > 0 && covering(std::string(path)) == nullptr)
      rule(std::string(path), kReadFile);
}

sdk::Result<View> Builder::build() {
  H5I_SDK_TRY(add_grants());
  H5I_SDK_TRY(add_own_directories());
  add_memory();
  H5I_SDK_TRY(add_denials());
  H5I_SDK_TRY(refuse_sockets());
  add_identity_files();
  add_devices();
  add_proc();
  add_merged_usr();
  emit_areas();
  add_landlock();
  for (auto& [target, entry] : mounts_) view_.mounts.push_back(entry);
  return std::move(view_);
}

}  // namespace

uint64_t landlock_rights(int abi) {
  if (abi < 1) return 0;
  uint64_t rights = (1u << 13) - 1;
  if (abi >= 2) rights |= 1u << 13;  // REFER
  if (abi >= 3) rights |= kTruncate;
  if (abi >= 5) rights |= kIoctlDev;
  return rights;
}

std::string private_source(const Request& request, const PrivateDir& directory) {
  // One flat name for each: "%" and "/" of the path are written as escapes, so that two paths never share a directory.
  std::string name;
  for (char c : directory.relative) name += c == '%' ? "%25" : c == '/' ? "%2f" : std::string(1, c);
  return join(join(request.private_root, directory.scratch ? "scratch" : "cache"), name);
}

sdk::Result<View> build_view(const Request& request, const HostFacts& facts, const HostView& host) {
  return Builder(request, facts, host).build();
}

}  // namespace h5i::confined
