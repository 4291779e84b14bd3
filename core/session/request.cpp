#include "core/session/request.hpp"

#include <limits.h>
#include <stdlib.h>

#include <algorithm>

#include "core/session/index.hpp"

namespace h5i::session {
namespace {

Json list(const std::vector<std::string>& words) {
  Json out = json::Array{};
  for (const std::string& w : words) out.push(w);
  return out;
}

bool within(std::string_view path, std::string_view folder) {
  return path == folder || folder == "/" || (path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

// Files that an interactive or login shell of the user runs.
constexpr const char* kShellStartup[] = {".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv",
                                         ".zprofile", ".zlogin", ".zlogout", ".cshrc", ".tcshrc", ".login", ".kshrc",
                                         ".config/fish", ".inputrc", ".xprofile", ".xsessionrc", ".pam_environment"};

}  // namespace

std::string box_id(const BoxPaths& paths) { return sha256_hex(paths.dir).substr(0, 16); }

std::vector<std::string> always_denied(const BoxPaths& paths, const Manifest& m, const UserDirs& dirs, const std::string& prefix) {
  std::vector<std::string> out = {paths.manifest(), paths.policy(), paths.log(), paths.blobs(), paths.lock(), paths.live(),
                                  dirs.config, dirs.cache, dirs.state + "/keys", dirs.state + "/plugins",
                                  dirs.state + "/plugins.lock.json", dirs.state + "/trust", "/etc/h5i", prefix + "/bin/h5i", prefix + "/libexec/h5i", prefix + "/lib/h5i"};
  if (!m.repo_git_dir.empty()) {
    out.push_back(m.repo_git_dir + "/hooks");
    out.push_back(m.repo_git_dir + "/config");
  }
  if (!dirs.home.empty()) {
    for (const char* name : kShellStartup) out.push_back(dirs.home + "/" + name);
    out.push_back(dirs.home + "/.local/bin/h5i");
  }
  std::erase(out, "");
  return out;
}

Result<std::vector<std::string>> always_hidden(const BoxPaths& paths, const Manifest& m, const UserDirs& dirs, const Json& policy) {
  std::vector<std::string> out = {dirs.config, dirs.state, dirs.cache, dirs.runtime};
  // Where they are for programs that do not see this environment's XDG variables.
  if (!dirs.home.empty())
    for (const char* usual : {"/.config/h5i", "/.local/state/h5i", "/.cache/h5i"}) out.push_back(dirs.home + usual);
  if (size_t at = paths.dir.rfind("/boxes/"); at != std::string::npos && at > 0) out.push_back(paths.dir.substr(0, at));
  if (!m.repo_git_dir.empty()) out.push_back(m.repo_git_dir + "/h5i");
  std::vector<std::string> grants;
  for (const char* field : {"read", "write"})
    for (const Json& g : policy["profile"]["fs"][field].array()) {
      char real[PATH_MAX];
      if (g.string().starts_with('/') && realpath(g.string().c_str(), real)) grants.emplace_back(real);
    }
  for (const std::string& repository : H5I_TRY(known_repositories(dirs)))
    if (std::any_of(grants.begin(), grants.end(), [&](const std::string& g) { return within(repository + "/h5i", g); }))
      out.push_back(repository + "/h5i");
  std::erase(out, "");
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Json run_request(const RequestInput& in) {
  const BoxPaths& p = *in.paths;
  const Manifest& m = *in.manifest;
  Json env = json::Object{};
  for (const auto& [name, value] : in.env) env[name] = value;
  Json r = json::Object{
      {"schema", "h5i.run/1"},
      {"session", in.session.value},
      {"box", m.name.str()},
      {"boxid", box_id(p)},
      {"policy", *in.policy},
      {"paths", json::Object{{"work", p.work()},
                             {"git", m.base_commit.empty() ? "" : p.git()},
                             {"objects", list(m.object_dirs)},
                             {"spool", p.spool()},
                             {"private", p.priv()},
                             {"repo_git", m.repo_git_dir},
                             {"home", in.dirs->home},
                             {"libexec", in.prefix + "/libexec/h5i"}}},
      {"deny_always", list(always_denied(p, m, *in.dirs, in.prefix))},
      {"hide_always", list(in.hidden)},
      {"env", std::move(env)},
      {"ids", json::Object{{"uid", in.uid},
                           {"gid", in.gid},
                           {"box_uid", in.uid == 0 ? m.host_uid : in.uid},
                           {"box_gid", in.uid == 0 ? m.host_gid : in.gid}}}};
  if (in.network && in.network->is_object()) r["network"] = *in.network;
  if (in.probe && in.probe->is_object()) r["probe"] = *in.probe;
  if (in.command)
    r["command"] = json::Object{{"argv", list(in.command->argv)},
                                {"exec", list(in.command->exec)},
                                {"cwd", in.command->cwd},
                                {"tty", in.command->tty},
                                {"readonly", in.command->readonly}};
  return r;
}

std::vector<std::pair<std::string, std::string>> session_names(const Json& request) {
  const Json& paths = request["paths"];
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, name] : {std::pair{"work", "$WORK"}, {"git", "$GIT"}, {"spool", "$SPOOL"}, {"private", "$PRIVATE"}})
    if (!paths[key].string().empty()) out.emplace_back(paths[key].string(), name);
  if (const std::string& hosts = request["network"]["hosts"].string(); !hosts.empty()) out.emplace_back(hosts, "$PINNED\n");
  out.emplace_back(request["session"].string(), "$SESSION");
  out.emplace_back(request["boxid"].string(), "$BOXID");
  return out;
}

}  // namespace h5i::session
