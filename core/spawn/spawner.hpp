// The spawner: a process of its own, forked from h5i-host before any plugin is mapped. It takes plans from the host
// process, and tells the core what it saw on a channel that no plugin holds.
#pragma once
#include <sys/types.h>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::spawn {

struct SpawnerFds {
  int host = -1;        // SEQPACKET to the host process: plans in, results out
  int core = -1;        // SEQPACKET to the core: stdio and kill in, events out
  int init_exe = -1;    // libexec/h5i/h5i-init, opened for reading
  int canary_exe = -1;  // libexec/h5i/h5i-canary, opened for reading
  int net_exe = -1;     // libexec/h5i/h5i-net, opened for reading; no regular file when it is not installed
  pid_t host_pid = 0;   // the process that forked us, to see whether it still lives
};

// Takes the calling process over and never returns: closes every other descriptor, becomes a session leader and a
// subreaper, not dumpable. Ends when `host` or `core` is closed or its parent dies; then no process of a box is left.
// Exit status 0 after an orderly end, 1 when it could not set itself up.
[[noreturn]] void spawner_main(SpawnerFds fds);

// Forks the caller (which must be single-threaded) into spawner_main. In the child nothing else runs.
Result<pid_t> fork_spawner(const SpawnerFds& fds);

}  // namespace h5i::spawn
