#include "core/session/environment.hpp"

#include <unistd.h>

#include <algorithm>

#include "core/base/text.hpp"

namespace h5i::session {

Variables host_variables() {
  Variables out;
  for (char** e = environ; e && *e; e++) {
    std::string_view line(*e);
    size_t eq = line.find('=');
    if (eq == std::string_view::npos || eq == 0) continue;
    out.emplace(line.substr(0, eq), line.substr(eq + 1));  // the first of two wins, as getenv does
  }
  return out;
}

Environment compute_environment(const Json& profile, const Variables& host) {
  Environment out;
  const Json& env = profile["env"];
  for (const Json& name : env["pass"].array()) {
    auto it = host.find(name.string());
    if (it == host.end()) continue;
    if (valid_utf8(it->second)) out.values[it->first] = it->second;
    else out.unrepresentable.push_back(it->first);
  }
  for (const auto& [name, value] : env["set"].object()) out.values[name] = value.string();
  out.values.emplace("PATH", kDefaultPath);
  return out;
}

std::vector<std::string> exec_candidates(std::string_view name, std::string_view path, std::string_view cwd) {
  if (name.empty()) return {};
  if (name.front() == '/') return {std::string(name)};
  if (name.find('/') != std::string_view::npos) return {std::string(cwd) + "/" + std::string(name)};
  std::vector<std::string> out;
  while (!path.empty()) {
    size_t colon = path.find(':');
    std::string_view dir = path.substr(0, colon);
    path.remove_prefix(colon == std::string_view::npos ? path.size() : colon + 1);
    if (!dir.starts_with('/')) continue;
    std::string candidate = std::string(dir) + (dir.ends_with('/') ? "" : "/") + std::string(name);
    if (std::find(out.begin(), out.end(), candidate) == out.end()) out.push_back(std::move(candidate));
  }
  return out;
}

std::string_view base_name(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

Result<void> check_tool(const Json& profile, std::string_view argv0) {
  const Json& tools = profile["tools"];
  if (!tools.is_array()) return {};
  std::string list;
  for (const Json& t : tools.array()) {
    if (t.string() == base_name(argv0)) return {};
    list += (list.empty() ? "" : ", ") + t.string();
  }
  return make_error(Errc::POLICY_TOOL, "refused to start " + std::string(base_name(argv0)),
                    list.empty() ? "the profile allows no program" : "the profile allows: " + list);
}

Result<void> check_broker(const Json& profile) {
  const char* what = !profile["secrets"].object().empty() ? "secrets" : !profile["auth"].array().empty() ? "auth" : nullptr;
  if (!what) return {};
  return make_error(Errc::BROKER_ABSENT, std::string("the profile has ") + what,
                    "this build has no broker yet, so nothing could hand them to the box");
}

Result<std::string> cwd_below(const std::string& work, std::string_view relative) {
  auto refuse = [given = relative](const char* why) {
    return make_error(Errc::PATH_ESCAPE, "working directory refused: " + printable(given), why);
  };
  if (relative.starts_with('/')) return refuse("it must be relative to $WORK");
  std::string out = work;
  while (!relative.empty()) {
    size_t slash = relative.find('/');
    std::string_view part = relative.substr(0, slash);
    relative.remove_prefix(slash == std::string_view::npos ? relative.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") return refuse("it has a '..'");
    out += "/" + std::string(part);
  }
  return out;
}

}  // namespace h5i::session
