// What a run that was killed left behind: found, ended, removed and recorded by the next command (invariant I9).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/session/live.hpp"

namespace h5i::session {

struct Swept {
  SessionId session;
  std::vector<LiveProcess> killed;   // survivors; role "found" for those that no record named
  std::vector<std::string> removed;  // stale files of the box's folder, placeholders of denied names, control groups
  std::string cleanup;               // "" when the tier's cleanup succeeded or none was needed, else why not
};

// Asks the tier to remove what its run left (plugin cleanup).
using TierCleanup = std::function<Result<void>(const std::string& tier, const SessionId& session)>;

// Does nothing (nullopt) while somebody holds the box's lock, or when nothing was left. Otherwise kills, removes, appends
// one "sweep" record to the box's log, and moves a manifest that still says "running" to idle.
Result<std::optional<Swept>> sweep_box(const BoxEntry& box, const TierCleanup& cleanup);

// Processes of this user that carry the session's mark H5I_SESSION in the environment they were started with. A box's
// process can hide from this by starting programs with another environment; only a confining tier prevents that.
std::vector<LiveProcess> find_marked(const SessionId& session);

}  // namespace h5i::session
