// Processes by descriptor: no signal and no wait can reach another process that was given the number meanwhile.
#pragma once
#include <sys/types.h>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::os {

Result<UniqueFd> pidfd_open(pid_t pid);
// ESRCH (already gone and reaped) is no error: what was asked for is so.
Result<void> pidfd_signal(int pidfd, int signal);
// True once the process has ended (a zombie counts as ended). Waits at most `timeout_ms`, negative: for ever.
Result<bool> pidfd_ended(int pidfd, int64_t timeout_ms);

// Parent's pid from /proc; 0 when unreadable.
pid_t parent_of(pid_t pid);

}  // namespace h5i::os
