// The run request, h5i.run/1: everything that a tier is told about a run. Pure but for the directories it is given.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/session/box.hpp"
#include "core/session/environment.hpp"

namespace h5i::session {

struct RequestInput {
  SessionId session;
  const Manifest* manifest = nullptr;
  const BoxPaths* paths = nullptr;
  const Json* policy = nullptr;  // resolved
  const UserDirs* dirs = nullptr;
  std::string prefix;            // of the installation
  uint32_t uid = 0, gid = 0;     // of this process
  Variables env;
  std::vector<std::string> hidden;  // of always_hidden()
  const Json* network = nullptr;   // of egress_now(), for a tier that takes it
  const Json* probe = nullptr;     // what the tier itself said on this host, this boot; absent: it looks again
  struct Command {
    std::vector<std::string> argv, exec;
    std::string cwd;
    bool tty = false, readonly = false;
  };
  std::optional<Command> command;  // absent: for verify_exec
};
Json run_request(const RequestInput& in);

// 16 hexadecimal digits that name the box in host names and groups, the same for each of its runs.
std::string box_id(const BoxPaths& paths);

// Write-denied at every confining tier whatever a profile says: what would let a box change who watches it, or run code
// on the host later. Absolute; some of them may not exist.
std::vector<std::string> always_denied(const BoxPaths& paths, const Manifest& manifest, const UserDirs& dirs, const std::string& prefix);

// Neither readable nor writable at a confining tier whatever a profile says: h5i's own directories where this user has them,
// and <git directory>/h5i of the box's repository and of each known one that a grant of `policy` reaches. What lies there and
// is the box's own (paths.work, git, spool, private, objects) it keeps. Absolute; some of them may not exist.
Result<std::vector<std::string>> always_hidden(const BoxPaths& paths, const Manifest& manifest, const UserDirs& dirs, const Json& policy);

// Session values and their names, for the effective digest.
std::vector<std::pair<std::string, std::string>> session_names(const Json& request);

}  // namespace h5i::session
