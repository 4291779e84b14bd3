// Finding and killing descendants where no pid namespace and no cgroup holds them together: by /proc, from a process
// that is their subreaper, so that whatever loses its parent becomes its child rather than init's.
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace h5i::spawn {

// pid -> parent's pid. Every descendant of `root`, not `root` itself. Pure.
std::vector<pid_t> descendants_of(pid_t root, const std::map<pid_t, pid_t>& parents);
// What /proc says now. Zombies are left out: they hold nothing any more.
std::map<pid_t, pid_t> process_parents();

struct WalkResult {
  uint64_t killed = 0;
  bool complete = false;  // false: something could not be killed in time
};
// Kills every descendant of this process: stops each first, so that none can fork away while the others are looked for,
// and repeats until a walk finds none. `reaped` hears of every child that was waited for.
using Reaped = std::function<void(pid_t pid, int status, const rusage& usage)>;
WalkResult kill_descendants(const Reaped& reaped);
// wait4 without blocking, for every child that has ended.
void reap_children(const Reaped& reaped);

}  // namespace h5i::spawn
