#include "request.hpp"

#include <algorithm>
#include <cmath>

#include "path.hpp"

namespace h5i::confined {
namespace {

constexpr std::string_view kWork = "$WORK";

sdk::Failure bad_path(std::string_view field, std::string_view path) {
  return sdk::failure(H5I_E_POLICY_PATH,
                      std::string(field) + ": " + std::string(path) + " is not an absolute, normal path");
}

sdk::Result<std::string> expanded(std::string_view field, const json::Value& value, const std::string& work) {
  if (!value.is_string()) return sdk::failure(H5I_E_INVALID, std::string(field) + ": text expected");
  std::string path = value.string();
  if (path == kWork || path.rfind("$WORK/", 0) == 0) path = work + path.substr(kWork.size());
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!is_normal(path)) return bad_path(field, path);
  return path;
}

sdk::Result<std::vector<std::string>> paths(std::string_view field, const json::Value& list, const std::string& work) {
  std::vector<std::string> out;
  if (!list.is_null() && !list.is_array()) return sdk::failure(H5I_E_INVALID, std::string(field) + ": list expected");
  for (const json::Value& v : list.array()) out.push_back(H5I_SDK_TRY(expanded(field, v, work)));
  return out;
}

sdk::Result<std::string> own_path(const json::Value& paths_object, std::string_view name) {
  const json::Value& v = paths_object[name];
  if (v.is_null() || v.string().empty()) return std::string();
  return expanded("paths." + std::string(name), v, {});
}

// A limit of 0 would mean "none" to the kernel in one place and "nothing at all" in another, so it is refused.
sdk::Result<std::optional<uint64_t>> limit(const json::Value& resources, std::string_view name) {
  const json::Value& v = resources[name];
  if (v.is_null()) return std::optional<uint64_t>();
  if (!v.is_int() || v.integer() <= 0)
    return sdk::failure(H5I_E_INVALID, "resources." + std::string(name) + ": a number above zero expected");
  return std::optional<uint64_t>(static_cast<uint64_t>(v.integer()));
}

sdk::Status read_resources(const json::Value& r, Resources& out) {
  if (auto mem = H5I_SDK_TRY(limit(r, "mem"))) out.mem = *mem;
  if (auto procs = H5I_SDK_TRY(limit(r, "procs"))) out.procs = *procs;
  out.cpu = H5I_SDK_TRY(limit(r, "cpu"));
  out.wall = H5I_SDK_TRY(limit(r, "wall"));
  out.fsize = H5I_SDK_TRY(limit(r, "fsize"));
  out.disk = H5I_SDK_TRY(limit(r, "disk"));
  out.inodes = H5I_SDK_TRY(limit(r, "inodes"));
  if (const json::Value& cpus = r["cpus"]; !cpus.is_null()) {
    if (!cpus.is_number() || !(cpus.number() > 0) || !std::isfinite(cpus.number()))
      return sdk::failure(H5I_E_INVALID, "resources.cpus: a number above zero expected");
    out.cpus = cpus.number();
  }
  for (const json::Value& name : r["explicit"].array()) out.named.push_back(name.string());
  return {};
}

sdk::Status read_private(const json::Value& object, std::vector<PrivateDir>& out) {
  for (const auto& [relative, kind] : object.object()) {
    if (!is_normal("/" + relative) || relative.empty()) return bad_path("fs.private", relative);
    if (kind.string() != "cache" && kind.string() != "scratch")
      return sdk::failure(H5I_E_INVALID, "fs.private." + relative + ": cache or scratch expected");
    out.push_back({relative, kind.string() == "scratch"});
  }
  return {};
}

sdk::Status read_ids(const json::Value& ids, Request& out) {
  for (std::string_view key : {"uid", "gid", "box_uid", "box_gid"}) {
    const json::Value& v = ids[key];
    if (!v.is_int() || v.integer() < 0 || v.integer() > 0xfffffffell)
      return sdk::failure(H5I_E_INVALID, "ids." + std::string(key) + ": a user or group id expected");
  }
  out.uid = static_cast<uint32_t>(ids["uid"].integer());
  out.gid = static_cast<uint32_t>(ids["gid"].integer());
  out.box_uid = static_cast<uint32_t>(ids["box_uid"].integer());
  out.box_gid = static_cast<uint32_t>(ids["box_gid"].integer());
  // Host root inside a box passes every owner check on the host's own files.
  if (out.box_uid == 0) return sdk::failure(H5I_E_INVALID, "ids.box_uid: a box never runs as the host's root");
  if (out.uid != 0 && (out.box_uid != out.uid || out.box_gid != out.gid))
    return sdk::failure(H5I_E_INVALID, "ids: only root can give a box another id than its own");
  if (out.uid == 0 && out.box_gid == 0)
    return sdk::failure(H5I_E_INVALID, "ids.box_gid: a box never has the host's group 0");
  return {};
}

sdk::Status read_command(const json::Value& command, Request& out) {
  if (command.is_null()) return {};
  for (const json::Value& v : command["argv"].array()) out.argv.push_back(v.string());
  for (const json::Value& v : command["exec"].array()) {
    if (!v.is_string() || v.string().empty() || v.string()[0] != '/')
      return sdk::failure(H5I_E_INVALID, "command.exec: absolute paths expected");
    out.exec.push_back(v.string());
  }
  if (out.argv.empty() || out.exec.empty()) return sdk::failure(H5I_E_INVALID, "command: argv and exec expected");
  out.cwd = H5I_SDK_TRY(expanded("command.cwd", command["cwd"], out.work));
  out.readonly = command["readonly"].boolean();
  return {};
}

// The destinations are the core's: it looked the names up and checked every address.
sdk::Status read_network(const json::Value& document, Request& out) {
  if (out.host_network) return sdk::failure(H5I_E_POLICY_EGRESS_TIER, "net.mode host: at this tier a box always has a network of its own");
  const json::Value& network = document["network"];
  if (!network["egress"]["allow"].is_array() || !network["hosts"].is_string())
    return sdk::failure(H5I_E_INVALID, "network: the destinations of net.egress are missing");
  out.egress = network["egress"];
  out.hosts = network["hosts"].string();
  return {};
}

}  // namespace

bool Resources::names(std::string_view field) const {
  return std::find(named.begin(), named.end(), field) != named.end();
}

sdk::Result<Request> read_request(const json::Value& document, const TierKind& tier) {
  if (document["schema"].string() != "h5i.run/1")
    return sdk::failure(H5I_E_INVALID, "request: schema h5i.run/1 expected");
  const json::Value& profile = document["policy"]["profile"];
  if (!profile.is_object()) return sdk::failure(H5I_E_INVALID, "request: policy.profile is missing");
  Request out;
  out.tier = &tier;

  const json::Value& where = document["paths"];
  out.work = H5I_SDK_TRY(own_path(where, "work"));
  if (out.work.empty() || out.work == "/")
    return sdk::failure(H5I_E_INVALID, "paths.work: the box's directory expected");
  out.git = H5I_SDK_TRY(own_path(where, "git"));
  out.spool = H5I_SDK_TRY(own_path(where, "spool"));
  out.private_root = H5I_SDK_TRY(own_path(where, "private"));
  out.home = H5I_SDK_TRY(own_path(where, "home"));
  out.repo_git = H5I_SDK_TRY(own_path(where, "repo_git"));
  out.objects = H5I_SDK_TRY(paths("paths.objects", where["objects"], out.work));

  const json::Value& fs = profile["fs"];
  out.read = H5I_SDK_TRY(paths("fs.read", fs["read"], out.work));
  out.write = H5I_SDK_TRY(paths("fs.write", fs["write"], out.work));
  out.deny = H5I_SDK_TRY(paths("fs.deny", fs["deny"], out.work));
  out.optional = H5I_SDK_TRY(paths("fs.optional", fs["optional"], out.work));
  out.deny_always = H5I_SDK_TRY(paths("deny_always", document["deny_always"], out.work));
  out.hide_always = H5I_SDK_TRY(paths("hide_always", document["hide_always"], out.work));
  H5I_SDK_TRY(read_private(fs["private"], out.private_dirs));
  if (!out.private_dirs.empty() && out.private_root.empty())
    return sdk::failure(H5I_E_INVALID, "paths.private is needed for fs.private");

  const json::Value& net = profile["net"];
  const std::string& mode = net["mode"].string();
  if (mode != "deny" && mode != "host") return sdk::failure(H5I_E_INVALID, "net.mode: deny or host expected");
  out.host_network = mode == "host";
  out.unix_sockets = net["unix"].boolean();
  // An empty list allows nothing and needs no gate; a rule needs one that this tier does not have.
  if (!tier.network && !net["egress"].array().empty())
    return sdk::failure(H5I_E_POLICY_EGRESS_TIER,
                        "net.egress has rules, and the process tier has a network or none, nothing between");
  if (tier.network) H5I_SDK_TRY(read_network(document, out));
  out.names_image = profile["container"]["image"].is_string();
  out.denies_browser_verbs = !profile["browser"]["deny"].array().empty();
  for (const json::Value& port : net["loopback"].array()) out.loopback.push_back(static_cast<uint64_t>(port.integer()));

  H5I_SDK_TRY(read_resources(profile["resources"], out.resources));
  H5I_SDK_TRY(read_ids(document["ids"], out));
  H5I_SDK_TRY(read_command(document["command"], out));
  for (const auto& [name, value] : document["env"].object()) out.env[name] = value.string();
  return out;
}

}  // namespace h5i::confined
