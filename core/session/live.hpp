// What runs in a box right now, written down so that the next command can find it when everything of ours was killed:
// live.json of the box's folder. A process is named by its id and its start time, so that a reused id is never mistaken.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/session/box.hpp"

namespace h5i::session {

struct LiveProcess {
  std::string role;    // "core" (the h5i that runs it), "host", "spawner", "init", "workload"
  pid_t pid = 0;
  uint64_t start = 0;  // field 22 of /proc/PID/stat, in clock ticks since boot
};

struct Live {
  SessionId session;
  std::string verb;     // "box run"
  std::string started;  // RFC 3339
  std::string boot;     // boot_id: after a reboot nothing of it can live
  std::string tier;     // whose cleanup is asked
  std::vector<LiveProcess> processes;
  std::string groups;   // where the run makes control groups, empty when nowhere
  std::vector<std::string> placeholders;  // of this run outside the work tree, by absolute names
};

// Its name while it is written.
inline constexpr const char* kNewLive = ".live.json.new";

// 0 when there is no such process (a zombie counts as none).
uint64_t process_start(pid_t pid);
bool is_alive(const LiveProcess& p);
// A pidfd that is known to be this very process; NOT_FOUND when it is gone.
Result<UniqueFd> open_process(const LiveProcess& p);

// nullopt when nothing is recorded.
Result<std::optional<Live>> read_live(const BoxPaths& paths);
// Atomic, not flushed: it needs to survive our death, not the machine's. Caller holds the lock.
Result<void> write_live(const BoxPaths& paths, const Live& live);
Result<void> clear_live(const BoxPaths& paths);

}  // namespace h5i::session
