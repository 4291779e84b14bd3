#include "core/session/sweep.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/text.hpp"
#include "core/evidence/log.hpp"
#include "core/os/beneath.hpp"
#include "core/os/cgroup.hpp"
#include "core/session/placeholders.hpp"
#include "core/session/proof_files.hpp"

namespace h5i::session {
namespace {

constexpr uint64_t kEnvironLimit = 4u << 20;
constexpr int kDeathTimeoutMs = 5000;  // SIGKILL takes effect at once unless the process sits in an uninterruptible call
constexpr int kRounds = 20;            // a process that forks faster than it is found is met again

std::vector<pid_t> all_processes() {
  std::vector<pid_t> out;
  auto proc = os::open_directory("/proc");
  if (!proc) return out;
  auto entries = os::list_directory(*proc);
  if (!entries) return out;
  for (const auto& e : *entries) {
    pid_t pid = 0;
    auto r = std::from_chars(e.name.data(), e.name.data() + e.name.size(), pid);
    if (r.ec == std::errc() && r.ptr == e.name.data() + e.name.size() && pid > 1) out.push_back(pid);
  }
  return out;
}

pid_t parent_of(pid_t pid) {
  UniqueFd fd(::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  auto text = fd ? os::read_all(fd, 8192) : Result<std::string>(std::string());
  size_t at = text ? text->rfind(')') : std::string::npos;
  if (at == std::string::npos || at + 4 >= text->size()) return 0;
  pid_t parent = 0;
  std::from_chars(text->data() + at + 4, text->data() + text->size(), parent);
  return parent;
}

// Recorded processes that live, and everything that descends from them.
std::vector<LiveProcess> family(const std::vector<LiveProcess>& recorded) {
  std::vector<LiveProcess> out;
  for (const LiveProcess& p : recorded)
    if (p.pid != ::getpid() && is_alive(p)) out.push_back(p);
  if (out.empty()) return out;
  std::multimap<pid_t, pid_t> children;
  for (pid_t pid : all_processes()) children.emplace(parent_of(pid), pid);
  for (size_t i = 0; i < out.size(); i++) {
    auto [from, to] = children.equal_range(out[i].pid);
    for (auto it = from; it != to; ++it) {
      LiveProcess child{"found", it->second, process_start(it->second)};
      bool known = std::any_of(out.begin(), out.end(), [&](const LiveProcess& p) { return p.pid == child.pid; });
      if (!known && child.start != 0 && child.pid != ::getpid()) out.push_back(child);
    }
  }
  return out;
}

bool end_process(const LiveProcess& p) {
  auto fd = open_process(p);
  if (!fd) return false;
  if (::syscall(SYS_pidfd_send_signal, fd->get(), SIGKILL, nullptr, 0) != 0) return false;
  pollfd wait{fd->get(), POLLIN, 0};
  while (::poll(&wait, 1, kDeathTimeoutMs) < 0 && errno == EINTR) {
  }
  return true;
}

void end_survivors(const std::vector<LiveProcess>& recorded, const SessionId& session, std::vector<LiveProcess>& killed) {
  for (int round = 0; round < kRounds; round++) {
    std::vector<LiveProcess> alive = family(recorded);
    for (LiveProcess& p : find_marked(session)) {
      bool known = std::any_of(alive.begin(), alive.end(), [&](const LiveProcess& q) { return q.pid == p.pid; });
      if (!known) alive.push_back(std::move(p));
    }
    bool any = false;
    for (const LiveProcess& p : alive)
      if (end_process(p)) {
        killed.push_back(p);
        any = true;
      }
    if (!any) return;
  }
}

std::vector<std::string> remove_stale_files(const UniqueFd& dir) {
  std::vector<std::string> removed;
  auto entries = os::list_directory(dir);
  if (!entries) return removed;
  for (const auto& e : *entries) {
    bool ours = e.name == kNewLive || e.name == "control" || e.name.compare(0, 15, ".manifest.json.") == 0 ||
                e.name.compare(0, 22, ".policy.resolved.json.") == 0;
    if (ours && ::unlinkat(dir.get(), e.name.c_str(), 0) == 0) removed.push_back(e.name);
  }
  std::sort(removed.begin(), removed.end());
  return removed;
}

Result<void> record(const BoxEntry& box, const Live& live, const Swept& swept) {
  Json killed = json::Array{}, removed = json::Array{};
  for (const LiveProcess& p : swept.killed)
    killed.push(json::Object{{"role", p.role}, {"pid", static_cast<int64_t>(p.pid)}, {"start", p.start}});
  for (const std::string& name : swept.removed) removed.push(name);
  evidence::Record r;
  r.boundary = evidence::Boundary::PROC;
  r.kind = "sweep";
  r.session = live.session;
  r.body = json::Object{{"verb", live.verb}, {"started", live.started}, {"killed", killed},
                        {"removed", removed}, {"cleanup", swept.cleanup.empty() ? std::string("done") : swept.cleanup}};
  auto log = H5I_TRY(evidence::Log::open(box.paths.log()));
  H5I_TRY(log.append(r));
  return log.flush();
}

}  // namespace

std::vector<LiveProcess> find_marked(const SessionId& session) {
  std::vector<LiveProcess> out;
  if (session.value.size() < 20) return out;  // a damaged record must not match by accident
  std::string mark = "H5I_SESSION=" + session.value + '\0';
  for (pid_t pid : all_processes()) {
    if (pid == ::getpid()) continue;
    uint64_t start = process_start(pid);
    std::string path = "/proc/" + std::to_string(pid);
    struct stat st{};
    if (start == 0 || ::stat(path.c_str(), &st) != 0 || (st.st_uid != ::geteuid() && ::geteuid() != 0)) continue;
    UniqueFd fd(::open((path + "/environ").c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) continue;
    auto text = os::read_all(fd, kEnvironLimit);
    if (!text) continue;
    size_t at = text->find(mark);
    while (at != std::string::npos && at != 0 && (*text)[at - 1] != '\0') at = text->find(mark, at + 1);
    if (at != std::string::npos) out.push_back({"found", pid, start});
  }
  return out;
}

Result<std::optional<Swept>> sweep_box(const BoxEntry& box, const TierCleanup& cleanup) {
  // Looked at without the lock first: a box that nothing died in is not touched, and nobody is told that it is busy.
  if (::access(box.paths.live().c_str(), F_OK) != 0 && ::access((box.paths.dir + "/" + kNewLive).c_str(), F_OK) != 0) return std::optional<Swept>{};
  auto lock = BoxLock::acquire(box.paths, "sweep");
  if (!lock) {
    if (lock.error().code == Errc::BOX_BUSY) return std::optional<Swept>{};
    return std::move(lock).error();
  }
  Manifest manifest = H5I_TRY(load_manifest(box.paths));  // refuses a folder that is not ours
  auto read = read_live(box.paths);
  if (read && !*read) {
    // Killed before its first record had its name: no box was started yet, only the file is there.
    UniqueFd dir = H5I_TRY(os::open_directory(box.paths.dir));
    (void)::unlinkat(dir.get(), kNewLive, 0);
    return std::optional<Swept>{};
  }
  Live live = read ? **read : Live{};
  Swept swept;
  swept.session = live.session;
  bool same_boot = !live.boot.empty() && live.boot == boot_id();
  if (same_boot) {
    std::vector<LiveProcess> recorded;
    for (const LiveProcess& p : live.processes)
      if (p.role != "core") recorded.push_back(p);  // an h5i that no longer holds the lock is on its way out
    end_survivors(recorded, live.session, swept.killed);
  }
  if (!read) {
    swept.cleanup = "what ran is not known: " + read.error().evidence;
  } else if (same_boot && cleanup && !live.tier.empty()) {
    auto cleaned = cleanup(live.tier, live.session);
    if (!cleaned) swept.cleanup = cleaned.error().what + ": " + cleaned.error().evidence;
  }
  UniqueFd dir = H5I_TRY(os::open_directory(box.paths.dir));
  swept.removed = remove_stale_files(dir);
  if (auto work = os::open_directory(box.paths.work()))
    for (const std::string& name : remove_placeholders(*work, manifest.placeholders)) swept.removed.push_back("work/" + name);
  for (std::string& name : remove_placeholders_outside(live.placeholders)) swept.removed.push_back(std::move(name));
  if (same_boot)
    for (const std::string& name : os::clear_dead_groups(live.groups)) swept.removed.push_back(live.groups + "/" + name);
  for (std::string& name : remove_proof_files(box.paths)) swept.removed.push_back(std::move(name));
  H5I_TRY(record(box, live, swept));
  if (manifest.state == BoxState::RUNNING) {
    manifest.state = BoxState::IDLE;
    H5I_TRY(save_manifest(box.paths, manifest));
  }
  H5I_TRY(clear_live(box.paths));
  return std::optional<Swept>(std::move(swept));
}

}  // namespace h5i::session
