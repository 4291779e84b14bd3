#include "core/cli/policy_input.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "core/cli/caller.hpp"
#include "core/os/beneath.hpp"
#include "core/session/box.hpp"

namespace h5i::cli {
namespace {

constexpr uint64_t kMaxPolicyFile = 4u << 20;
constexpr const char* kEtcHostPolicy = "/etc/h5i/host.yaml";

// A document that was resolved before, with its digest recomputed rather than believed.
Result<policy::Resolved> resolved_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) return sys_error("open " + path);
  std::string bytes = H5I_TRY(os::read_all(fd, kMaxPolicyFile));
  policy::Resolved r;
  r.document = H5I_TRY(parse_json(bytes, path));
  if (r.document["schema"].string() != "h5i.policy/1")
    return make_error(Errc::INVALID, path + " is not a resolved policy", "schema is `" + r.document["schema"].string() + "`, expected h5i.policy/1");
  r.profile = r.document["profile"]["name"].string();
  r.profile_from = "file";
  r.defined_at = path;
  r.isolation = r.document["profile"]["isolation"].string();
  r.isolation_at = path;
  if (r.document.object().contains("tier")) r.digest = PolicyDigest(canonical_digest(r.document));
  return r;
}

}  // namespace

Result<PolicySurroundings> policy_surroundings(const Parsed& parsed) {
  PolicySurroundings s;
  std::string here = H5I_TRY(current_directory());
  s.directory = here;
  if (auto repo = session::find_repository(here); repo && !repo->work_dir.empty()) {
    s.directory = repo->work_dir;
    s.input.repo = repo->work_dir;
  }
  s.root = H5I_TRY(os::open_directory(s.directory));
  policy::ResolveInput& in = s.input;
  in.repo_root_fd = s.root.get();
  in.uid = ::geteuid();
  if (std::string home = environment("HOME"); !home.empty() && home[0] == '/') {
    in.home = home;
    while (in.home.size() > 1 && in.home.back() == '/') in.home.pop_back();
  }
  if (auto dirs = session::UserDirs::from_environment()) in.own_dirs = {dirs->config, dirs->state, dirs->cache, dirs->runtime};
  in.agent = parsed.get("--agent", environment("H5I_AGENT"));
  if (parsed.has("--image")) in.image = parsed.get("--image");
  in.runtimes = policy::installed_runtimes(in.home, environment("PATH"));
  in.command_extractors = environment("H5I_ALLOW_COMMAND_EXTRACTORS") == "1";
  auto user_file = config_file("host.yaml");
  in.host = H5I_TRY(policy::load_host_policy(kEtcHostPolicy, user_file ? *user_file : "", in.uid));
  in.exists = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  return s;
}

Result<policy::Resolved> profile_or_file(const policy::ResolveInput& input, const std::string& name) {
  bool file = name.find('/') != std::string::npos || (name.size() > 5 && name.substr(name.size() - 5) == ".json");
  if (file) return resolved_file(name);
  policy::ResolveInput in = input;
  in.profile = name;
  return policy::resolve(in);
}

Json error_json(const Error& e) {
  return json::Object{{"id", e.id()}, {"code", static_cast<int>(e.code)}, {"what", e.what},
                      {"evidence", e.evidence.empty() ? "nothing more is known" : e.evidence}, {"next", e.remedy()}};
}

Result<std::string> config_file(const std::string& name) {
  session::UserDirs dirs = H5I_TRY(session::UserDirs::from_environment());
  return dirs.config + "/" + name;
}

}  // namespace h5i::cli
