#include "core/spawn/running.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/base/text.hpp"
#include "core/os/pidfd.hpp"
#include "core/os/seccomp.hpp"
#include "core/os/socket.hpp"
#include "core/os/syscall_name.hpp"
#include "core/spawn/program.hpp"
#include "h5i/host.h"
#include "h5i/tier.h"

namespace h5i::spawn {
namespace {

uint64_t micros(const timeval& t) {
  return static_cast<uint64_t>(t.tv_sec) * 1000000 + static_cast<uint64_t>(t.tv_usec);
}

}  // namespace

std::optional<uint64_t> Running::cpu_limit() const {
  if (cgroup && kind == H5I_SPAWN_WORKLOAD)
    for (const RlimitSpec& r : plan.rlimits)
      if (r.name == "cpu" && r.soft < UINT64_MAX / 1000000) return r.soft;
  return std::nullopt;
}

void Running::on_report() {
  while (report) {
    auto packet = os::receive_packet(report.get(), true);
    if (!packet && packet.error().code == Errc::BUSY) return;
    if (!packet || !*packet) {
      report.reset();  // closed by the exec, or by the end
      return;
    }
    ChildReport r{};
    if ((*packet)->bytes.size() != sizeof r) continue;
    memcpy(&r, (*packet)->bytes.data(), sizeof r);
    if (r.what == ChildReport::kListener && (*packet)->fds.size() == 1 && !listener) {
      listener = std::move((*packet)->fds[0]);
      fcntl(listener.get(), F_SETFL, O_NONBLOCK);
    } else if (r.what == ChildReport::kSetupFailed && result.setup_errno == 0) {
      result.setup_errno = r.err ? r.err : EINVAL;
      result.setup_step = static_cast<uint32_t>(r.stage) << 16 | r.index;
      result.setup_text = step_text(plan, r.stage, r.index, r.err);
    } else if (r.what == ChildReport::kExecFailed && result.exec_errno == 0) {
      result.exec_errno = r.err;
    }
  }
}

void Running::on_control() {
  while (control) {
    auto packet = os::receive_packet(control.get(), true);
    if (!packet && packet.error().code == Errc::BUSY) return;
    if (!packet || !*packet) {
      control.reset();
      return;
    }
    InitReport r{};
    if ((*packet)->bytes.size() != sizeof r) continue;
    memcpy(&r, (*packet)->bytes.data(), sizeof r);
    if (r.magic == InitReport::kMagic && !init_report) init_report = r;
  }
}

void Running::on_output() {
  char buf[16384];
  while (output) {
    ssize_t n = read(output.get(), buf, sizeof buf);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      output.reset();
      return;
    }
    size_t room = kMaxCanaryOutput - text.size();
    text.append(buf, std::min(room, static_cast<size_t>(n)));  // what is beyond is read and dropped
  }
}

// The arguments are numbers in registers: nothing that the box could change meanwhile. A kind beyond those that have a row is
// counted with the others of its system call only.
void Running::count_socket(const unsigned long long* args) {
  constexpr uint32_t kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;
  SocketKind asked{static_cast<uint32_t>(args[0]), static_cast<uint32_t>(args[1]) & ~kFlags, static_cast<uint32_t>(args[2])};
  if (sockets.size() < kMaxSocketKinds || sockets.count(asked)) sockets[asked]++;
}

// A call that the filter notified is refused, always: it is never continued, so nothing that the box could change in
// its memory meanwhile matters. What is allowed was decided in the filter.
std::optional<Denial> Running::on_listener() {
  auto n = os::seccomp::receive(listener.get());
  if (!n) {
    listener.reset();
    return std::nullopt;
  }
  if (!*n) return std::nullopt;
  auto nr = static_cast<uint32_t>((*n)->data.nr);
  auto at = plan.seccomp->answers.find(nr);
  int err = at == plan.seccomp->answers.end() ? plan.seccomp->default_answer : at->second;
  (void)os::seccomp::answer_errno(listener.get(), (*n)->id, err);
  // Counted also when it vanished before the answer: it was tried.
  if (nr >= kTableNumbers && denials.count(nr) == 0) {
    if (strange_numbers < kMaxStrangeNumbers)
      strange_numbers++;
    else
      nr = os::kOtherNumbers;
  }
  if (nr == SYS_socket) count_socket((*n)->data.args);
  bool first = denials.count(nr) == 0;
  Denial& d = denials[nr];
  d.syscall = nr;
  d.err = err;
  d.count++;
  return first ? std::optional<Denial>(d) : std::nullopt;
}

void Running::kill(uint32_t outcome) {
  if (ended) return;
  if (!killed_as) killed_as = outcome ? outcome : static_cast<uint32_t>(H5I_OUTCOME_CANCELLED);
  // pid 1's end is the end of everything in its namespace; the cgroup's kill reaches what was moved elsewhere.
  (void)os::pidfd_signal(pidfd.get(), SIGKILL);
  if (cgroup) (void)os::kill_cgroup(*cgroup);
}

void Running::add_orphan(const rusage& u) {
  orphans.ru_utime.tv_sec += u.ru_utime.tv_sec;
  orphans.ru_utime.tv_usec += u.ru_utime.tv_usec;
  orphans.ru_stime.tv_sec += u.ru_stime.tv_sec;
  orphans.ru_stime.tv_usec += u.ru_stime.tv_usec;
  orphans.ru_maxrss = std::max(orphans.ru_maxrss, u.ru_maxrss);
}

void Running::drop_group() {
  if (!cgroup) return;
  (void)os::kill_cgroup(*cgroup);
  (void)os::remove_cgroup(*cgroup);
}

void Running::take_group_usage() {
  if (!cgroup) return;
  (void)os::kill_cgroup(*cgroup);
  os::CgroupUsage u = os::cgroup_usage(*cgroup);
  result.oom_kills = u.oom_kills;
  result.tasks_refused = u.tasks_refused;
  if (u.user_us || u.system_us) {
    result.usage_cgroup = true;
    result.user_us = u.user_us;
    result.system_us = u.system_us;
    result.max_rss_kib = u.memory_peak / 1024;
  }
  (void)os::remove_cgroup(*cgroup);
}

void Running::compose() {
  SpawnResult& r = result;
  r.wall_us = static_cast<uint64_t>((monotonic_ns() - started_ns) / 1000);
  if (!r.usage_cgroup) {
    r.user_us = micros(usage.ru_utime) + micros(orphans.ru_utime);
    r.system_us = micros(usage.ru_stime) + micros(orphans.ru_stime);
    r.max_rss_kib = static_cast<uint64_t>(std::max(usage.ru_maxrss, orphans.ru_maxrss));
  }
  if (init_report) r.survivors = init_report->survivors;
  for (const auto& [nr, d] : denials) r.denials.push_back(d);
  for (const auto& [what, count] : sockets) r.sockets.push_back({what, count});
  // The first failure wins: set-up, then a kill that came before the workload's own end, then that end.
  if (r.setup_errno) {
    r.status = H5I_OUTCOME_SETUP_FAILED;
    r.code = kExitSetupFailed;
    return;
  }
  const bool own_end = plan.init ? init_report.has_value()
                                     : !(WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL);
  const int status = init_report ? init_report->wait_status : wait_status;
  if (!own_end && killed_as) {
    r.status = killed_as;
    r.code = SIGKILL;
  } else if (plan.init && !init_report) {
    // init died unasked: the kernel's out-of-memory killer, or somebody outside. One that left by itself saw the host end.
    r.status = WIFSIGNALED(wait_status) ? H5I_OUTCOME_SIGNALED : H5I_OUTCOME_HOST_LOST;
    r.code = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : SIGKILL;
    r.incomplete = true;
    r.setup_text = "h5i-init ended without a report";
  } else if (WIFSIGNALED(status)) {
    r.status = H5I_OUTCOME_SIGNALED;
    r.code = WTERMSIG(status);
  } else {
    r.status = H5I_OUTCOME_EXITED;
    r.code = WEXITSTATUS(status);
  }
}

}  // namespace h5i::spawn
