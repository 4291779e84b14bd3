#include "core/session/run_steps.hpp"

#include <time.h>
#include <unistd.h>

#include "core/os/beneath.hpp"
#include "core/os/cgroup.hpp"
#include "core/os/fs.hpp"
#include "core/os/pidfd.hpp"
#include "core/session/placeholders.hpp"
#include "core/session/request.hpp"

namespace h5i::session {
namespace {

constexpr uint64_t kReceiptRoom = 256u << 10;  // of the disk, set aside before anything runs
constexpr int kLetGo = 200;                     // milliseconds for the kernel to take down a process that was killed

}  // namespace

void nap() {
  timespec pause{0, 1'000'000};
  nanosleep(&pause, nullptr);
}

Json json_of(const std::vector<std::string>& list) {
  Json out = json::Array{};
  for (const std::string& s : list) out.push(s);
  return out;
}

Result<RunReport> OneRun::go() {
  session_ = H5I_TRY(new_session_id());
  log_ = H5I_TRY(open_log());
  auto prepared = prepare();
  if (!prepared) return refuse(with_missing(prepared.error()));
  auto supervised = execute();
  if (!supervised) return refuse(supervised.error());
  return finish(*supervised);
}

Result<std::unique_ptr<evidence::Log>> OneRun::open_log() {
  auto log = evidence::Log::open(box_.paths.log());
  if (!log && log.error().code == Errc::NOT_FOUND && access(box_.paths.dir.c_str(), F_OK) != 0)
    return make_error(Errc::BOX_NOT_FOUND, "there is no box " + box_.name.str(), box_.paths.dir);
  if (!log) return make_error(Errc::LOG_WRITE, "the box's log cannot be written", log.error().what + ": " + log.error().evidence);
  return std::make_unique<evidence::Log>(std::move(*log));
}

// What is recorded on the way leaves room for the receipt: a box that fills the disk cannot keep it from being written.
Result<evidence::Head> OneRun::record(std::string kind, Json body, Observer observer, Boundary boundary) {
  if (kind != "receipt" && kind != "run-refused") H5I_TRY(log_->reserve(receipt_room()));
  Record r;
  r.observer = std::move(observer);
  r.boundary = boundary;
  r.kind = std::move(kind);
  r.session = session_;
  r.body = std::move(body);
  return log_->append(r);
}

uint64_t OneRun::receipt_room() const {
  uint64_t room = kReceiptRoom;
  for (const std::string& a : argv_) room += 2 * a.size();
  return room;
}

// Best effort: the error goes to the caller whatever becomes of the record.
Error OneRun::refuse(Error e) {
  (void)record("run-refused", json::Object{{"id", e.id()},
                                           {"what", printable(e.what)},
                                           {"evidence", printable(e.evidence)},
                                           {"exit_status", exit_status_of(e)}});
  (void)log_->flush();
  if (!absent_.empty() || !absent_outside_.empty()) {
    host_->shutdown();  // whoever would make them is gone
    remove_litter();
  }
  egress_live_.reset();
  if (!is_alive(spawner_)) clear_groups();
  if (live_written_) (void)clear_live(box_.paths);
  return e;
}

// A spawner that was killed has left its group, and lets go of it a moment later; one that lives removes it itself.
void OneRun::clear_groups() {
  const std::string base = groups();
  if (base.empty()) return;
  for (int i = 0; i < kLetGo && is_alive(spawner_); i++) nap();
  if (!is_alive(spawner_)) (void)os::clear_dead_groups(base);
}

// The tier removes its placeholders, unless it was killed, or given up.
void OneRun::remove_litter() {
  if (absent_.empty() && absent_outside_.empty()) return;
  if (auto work = os::open_directory(box_.paths.work())) (void)remove_placeholders(*work, absent_);
  (void)remove_placeholders_outside(absent_outside_);
}

Result<void> OneRun::write_live_record(const Ready* ready) {
  Live live;
  live.session = session_;
  live.verb = options_.verb();
  live.started = rfc3339(started_ns_);
  live.boot = boot_id();
  live.tier = manifest_.tier;
  auto add = [&](const char* role, pid_t pid) {
    if (pid > 0) live.processes.push_back({role, pid, process_start(pid)});
  };
  add("core", getpid());
  add("host", host_->pid());
  add("spawner", ready ? os::parent_of(ready->init_pid) : host_->spawner_pid());
  if (ready && ready->has_init) add("init", ready->init_pid);
  if (ready) add("workload", ready->workload);
  live.groups = groups();
  live.placeholders = absent_outside_;
  live_written_ = true;
  return write_live(box_.paths, live);
}

Result<RunReport> run_in_box(const BoxEntry& box, const RunOptions& options) {
  return OneRun(box, options, plugin::install_prefix()).go();
}

}  // namespace h5i::session
