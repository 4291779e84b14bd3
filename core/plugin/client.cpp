#include "core/plugin/client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/base/text.hpp"
#include "h5i/tier.h"

namespace h5i::plugin {
namespace {

std::string_view verb_name(FrameType t) {
  switch (t) {
    case FrameType::LOAD: return "load";
    case FrameType::CALL_PROBE: return "probe";
    case FrameType::CALL_VERIFY: return "verify_exec";
    case FrameType::CALL_PLAN: return "plan";
    case FrameType::CALL_RUN: return "run";
    case FrameType::CALL_CLEANUP: return "cleanup";
    default: return "shutdown";
  }
}

// Descriptors are first moved above every target number, so that no dup2 in the child can overwrite a source.
Result<UniqueFd> high(const UniqueFd& fd) {
  UniqueFd out(fcntl(fd.get(), F_DUPFD_CLOEXEC, 32));
  if (!out) return sys_error("dup");
  return out;
}

// What a plugin prints when it dies is worth having, but must not reach the terminal raw (I7): its standard error is a file
// in memory of fixed size, read only when it died.
constexpr size_t kStderrBytes = 16u << 10;
Result<UniqueFd> stderr_file() {
  UniqueFd fd(memfd_create("h5i-host-stderr", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return sys_error("memfd_create");
  if (ftruncate(fd.get(), kStderrBytes) < 0) return sys_error("ftruncate");
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0) return sys_error("seal a memfd");
  return fd;
}

Result<UniqueFd> null_device() {
  UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return sys_error("open /dev/null");
  return null;
}

struct SpawnAttributes {
  posix_spawnattr_t attr;
  posix_spawn_file_actions_t actions;
  SpawnAttributes() {
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_init(&actions);
  }
  ~SpawnAttributes() {
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
  }
};

constexpr int kOrphanTimeoutMs = 1000;
constexpr int kOrphanRounds = 64;

// Hosts of this process that live: they are children of ours and no orphans.
std::vector<pid_t>& live_hosts() {
  static std::vector<pid_t> hosts;
  return hosts;
}

std::vector<pid_t> our_children() {
  std::string path = "/proc/self/task/" + std::to_string(syscall(SYS_gettid)) + "/children";
  std::vector<pid_t> out;
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return out;  // without CONFIG_PROC_CHILDREN the box's pid namespace and PDEATHSIG have to do
  std::string text;
  char buf[4096];
  for (ssize_t n; (n = read(fd.get(), buf, sizeof buf)) > 0;) text.append(buf, static_cast<size_t>(n));
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find(' ', at);
    if (end == std::string::npos) end = text.size();
    if (int pid = atoi(text.substr(at, end - at).c_str()); pid > 0) out.push_back(pid);
    at = end + 1;
  }
  return out;
}

// True when the child ended within the time, or is none of ours any more; it is reaped then.
bool reap_within(pid_t pid, int timeout_ms) {
  siginfo_t info{};
  auto reaped = [&] { return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) < 0 || info.si_pid != 0; };
  if (reaped()) return true;
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return reaped();
  pollfd p{pidfd.get(), POLLIN, 0};
  while (poll(&p, 1, timeout_ms) < 0 && errno == EINTR) {
  }
  return reaped();
}

// For a child that was not reaped yet, so that its number is its own.
void end_child(pid_t pid) {
  siginfo_t info{};
  ::kill(pid, SIGKILL);
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) < 0 && errno == EINTR) {
  }
}

// "exit status 3" or "signal 11 (Segmentation fault)".
std::string how_it_ended(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return "exit status " + std::to_string(info.si_status);
  return "signal " + std::to_string(info.si_status) + " (" + strsignal(info.si_status) + ")";
}

}  // namespace

Result<HostHelpers> HostHelpers::open(const std::string& prefix) {
  HostHelpers h;
  h.host = H5I_TRY(open_helper(prefix, "libexec/h5i/h5i-host"));
  h.init = H5I_TRY(open_helper(prefix, "libexec/h5i/h5i-init"));
  h.canary = H5I_TRY(open_helper(prefix, "libexec/h5i/h5i-canary"));
  if (auto net = open_helper(prefix, "libexec/h5i/h5i-net")) h.net = std::move(*net);
  else if (net.error().sys_errno != ENOENT) return std::move(net).error();
  return h;
}

Result<HostProcess> HostProcess::start(const HostHelpers& helpers, HostEvents events) {
  HostProcess h = H5I_TRY(fresh(std::move(events)));
  auto spawner = H5I_TRY(frame_socketpair());
  h.spawner_ = std::move(spawner.first);
  UniqueFd null = H5I_TRY(null_device());
  H5I_TRY(h.exec(helpers.host, "h5i-host",
                 {{&spawner.second, kHostSpawnerFd}, {&helpers.init, kHostInitFd}, {&helpers.canary, kHostCanaryFd}, {helpers.net ? &helpers.net : &null, kHostNetFd}}));
  return h;
}

Result<HostProcess> HostProcess::start_engine(const UniqueFd& engine, const UniqueFd& session, HostEvents events, const UniqueFd& channel) {
  HostProcess h = H5I_TRY(fresh(std::move(events)));
  UniqueFd null = H5I_TRY(null_device());
  H5I_TRY(h.exec(engine, "h5i-engine", {{session ? &session : &null, kEngineSessionFd}, {channel ? &channel : &null, kEngineChannelFd}}));
  return h;
}

Result<HostProcess> HostProcess::fresh(HostEvents events) {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) return sys_error("prctl PR_SET_CHILD_SUBREAPER");
  HostProcess h;
  h.earlier_children_ = our_children();
  h.events_ = std::move(events);
  h.cancel_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!h.cancel_) return sys_error("eventfd");
  h.stderr_ = H5I_TRY(stderr_file());
  return h;
}

// On an error the object's end kills what was started.
Result<void> HostProcess::exec(const UniqueFd& executable, const char* called, Places places) {
  auto control = H5I_TRY(frame_socketpair());
  control_ = std::move(control.first);
  UniqueFd program = H5I_TRY(high(executable)), null = H5I_TRY(null_device());
  places.insert(places.end(), {{&null, 0}, {&null, 1}, {&stderr_, 2}, {&control.second, kHostControlFd}, {&cancel_, kHostCancelFd}});

  SpawnAttributes s;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&s.attr, &none);
  posix_spawnattr_setsigdefault(&s.attr, &all);
  // A session of its own: the terminal's signals reach h5i only, which decides what to forward.
  posix_spawnattr_setflags(&s.attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  std::vector<UniqueFd> sources;
  for (const auto& [fd, place] : places) {
    sources.push_back(H5I_TRY(high(*fd)));
    posix_spawn_file_actions_adddup2(&s.actions, sources.back().get(), place);
  }
  std::string path = "/proc/self/fd/" + std::to_string(program.get()), name = called;
  char* argv[] = {name.data(), nullptr};
  char* envp[] = {nullptr};
  pid_t pid = -1;
  int err = posix_spawn(&pid, path.c_str(), &s.actions, &s.attr, argv, envp);
  if (err != 0) return sys_error("start " + name, err);
  pid_ = pid;
  live_hosts().push_back(pid);
  // The child cannot be reaped by anybody else, so its number cannot have been reused.
  pidfd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd_) return sys_error("pidfd_open");
  return {};
}

HostProcess::HostProcess(HostProcess&& o) noexcept
    : control_(std::move(o.control_)),
      pidfd_(std::move(o.pidfd_)),
      spawner_(std::move(o.spawner_)),
      cancel_(std::move(o.cancel_)),
      stderr_(std::move(o.stderr_)),
      pid_(std::exchange(o.pid_, -1)),
      spawner_pid_(std::exchange(o.spawner_pid_, -1)),
      earlier_children_(std::move(o.earlier_children_)),
      asked_to_end_(o.asked_to_end_),
      interrupted_(o.interrupted_),
      timeouts_(o.timeouts_),
      limit_ns_(o.limit_ns_),
      interrupt_fd_(o.interrupt_fd_),
      request_(o.request_),
      verb_(o.verb_),
      evidence_records_(o.evidence_records_),
      evidence_bytes_(o.evidence_bytes_),
      run_error_(std::move(o.run_error_)),
      events_(std::move(o.events_)) {}

HostProcess& HostProcess::operator=(HostProcess&& o) noexcept {
  if (this != &o) {
    kill();
    this->~HostProcess();
    new (this) HostProcess(std::move(o));
  }
  return *this;
}

HostProcess::~HostProcess() { kill(); }

std::string HostProcess::verb_text() const { return std::string(verb_name(verb_)); }

std::string HostProcess::last_words() const {
  char buf[400];
  // The file's offset is shared with the host, so it tells where its text ends.
  off_t end = lseek(stderr_.get(), 0, SEEK_CUR);
  off_t from = std::max<off_t>(0, end - static_cast<off_t>(sizeof buf));
  ssize_t n = end > 0 ? pread(stderr_.get(), buf, static_cast<size_t>(end - from), from) : 0;
  if (n <= 0) return {};
  std::string_view text(buf, static_cast<size_t>(n));
  while (text.ends_with('\n')) text.remove_suffix(1);
  return "; it said: " + printable(text);
}

void HostProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  siginfo_t info{};
  // WNOWAIT keeps the number reserved until its process group, which has the same number, was signalled too.
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  ::kill(-pid_, SIGKILL);
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) < 0 && errno == EINTR) {
  }
  std::erase(live_hosts(), std::exchange(pid_, -1));
  control_.reset();
  end_orphans();
}

// With its host gone the spawner kills what it spawned and ends; as a subreaper we are its parent now, and of whatever else
// a plugin left running.
void HostProcess::end_orphans() {
  siginfo_t info{};
  // Stopped, it would not end. A child that was not reaped yet, so its number is its own.
  if (spawner_pid_ > 0 && waitid(P_PID, static_cast<id_t>(spawner_pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0) ::kill(spawner_pid_, SIGCONT);
  if (spawner_pid_ > 0 && !reap_within(spawner_pid_, kSpawnerEndTimeoutMs)) end_child(spawner_pid_);
  spawner_pid_ = -1;
  // Killing one may hand us its children.
  for (int round = 0; round < kOrphanRounds; round++) {
    bool any = false;
    for (pid_t pid : our_children()) {
      if (std::find(earlier_children_.begin(), earlier_children_.end(), pid) != earlier_children_.end()) continue;
      if (std::find(live_hosts().begin(), live_hosts().end(), pid) != live_hosts().end()) continue;
      // Before hello a spawner is among them, without a box, and about to end.
      if (!reap_within(pid, kOrphanTimeoutMs)) end_child(pid);
      any = true;
    }
    if (!any) return;
  }
}

// The host closed its end or died: give its exit a moment to arrive, so that the evidence can name it.
Error HostProcess::lost(std::string why) {
  if (pid_ > 0) {
    pollfd p{pidfd_.get(), POLLIN, 0};
    siginfo_t info{};
    if (poll(&p, 1, 500) > 0 && waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) == 0)
      why = "h5i-host ended with " + how_it_ended(info) + last_words();
    else
      why = "h5i-host closed its connection";
  }
  kill();
  return make_error(Errc::PLUGIN_CRASHED, "the plugin's process died in " + verb_text(), std::move(why));
}

Error HostProcess::out_of_time(int timeout_ms) {
  kill();
  if (interrupted_) return make_error(Errc::CANCELLED, "cancelled in " + verb_text(), "a signal to h5i");
  if (monotonic_ns() >= limit_ns_) return make_error(Errc::RUN_DEADLINE, "the deadline passed in " + verb_text());
  return make_error(Errc::PLUGIN_HUNG, "the plugin did not answer in " + verb_text(),
                    "no answer within " + std::to_string(timeout_ms) + " ms; its process was killed");
}

Error HostProcess::protocol(std::string why) {
  kill();
  return make_error(Errc::PLUGIN_PROTOCOL, "h5i-host broke the frame protocol in " + verb_text(), std::move(why));
}

Result<std::optional<Frame>> HostProcess::take(Frame frame) {
  if (frame.request != request_)
    return protocol("answer to call " + std::to_string(frame.request) + " while " + std::to_string(request_) + " runs");
  if (static_cast<uint16_t>(frame.type) < static_cast<uint16_t>(FrameType::HELLO))
    return protocol("a frame that only the core may send");
  if (frame.type != FrameType::LOG && frame.type != FrameType::EVIDENCE) return std::optional<Frame>(std::move(frame));

  auto body = parse_json(frame.body, "frame", kMaxEvidenceBody + 4096);
  if (!body || !body->is_object()) return protocol("a log or evidence frame that is no JSON object");
  evidence_records_++;
  evidence_bytes_ += frame.body.size();
  if (evidence_records_ > kMaxEvidenceRecords || evidence_bytes_ > kMaxEvidenceBytes)
    return protocol("more than " + std::to_string(kMaxEvidenceRecords) + " records or " +
                    std::to_string(kMaxEvidenceBytes) + " bytes of log and evidence");
  if (frame.type == FrameType::LOG) {
    if (events_.log) events_.log(static_cast<int>((*body)["level"].integer(4)), (*body)["text"].string());
  } else {
    const Json& b = *body;
    if (!b["boundary"].is_string() || !b["kind"].is_string() || !b["body"].is_object())
      return protocol("an evidence frame without boundary, kind and body");
    if (events_.evidence) events_.evidence(b["boundary"].string(), b["kind"].string(), b["body"]);
  }
  return std::optional<Frame>();
}

Result<std::optional<Frame>> HostProcess::next(int64_t deadline_ns) {
  deadline_ns = std::min(deadline_ns, limit_ns_);
  for (;;) {
    int64_t left = deadline_ns - monotonic_ns();
    pollfd p[3] = {{control_.get(), POLLIN, 0}, {pidfd_.get(), POLLIN, 0}, {interrupt_fd_, POLLIN, 0}};
    int n = poll(p, 3, left <= 0 ? 0 : static_cast<int>(std::min<int64_t>(left / 1000000 + 1, 1 << 30)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("poll");
    if (n == 0) {
      if (left <= 0) return std::optional<Frame>();
      continue;
    }
    // Frames that it sent before it died count; only then its death.
    if (!(p[0].revents & POLLIN) && (p[0].revents || p[1].revents)) return lost("");
    if (p[2].revents) interrupted_ = true;
    if (!(p[0].revents & POLLIN)) return std::optional<Frame>();
    auto f = receive_frame(control_);
    if (!f && f.error().code == Errc::NOT_FOUND) return lost("");
    if (!f) return protocol(f.error().evidence.empty() ? f.error().what : f.error().evidence);
    auto taken = H5I_TRY(take(std::move(*f)));
    if (taken) return taken;
    if (left <= 0) return std::optional<Frame>();
  }
}

namespace {

// RESULT's body, checked: {"status":n,"errno":n,"text":t,"outcome":{...}?}.
struct ParsedResult {
  int status = 0;
  Error error;
  std::optional<Outcome> outcome;
};

std::optional<ParsedResult> parse_result(const std::string& body, const std::string& verb) {
  auto v = parse_json(body, "result frame", 64u << 10);
  if (!v) return std::nullopt;
  const Json& r = *v;
  if (!r["status"].is_int() || !r["errno"].is_int() || !r["text"].is_string()) return std::nullopt;
  ParsedResult p;
  p.status = static_cast<int>(r["status"].integer());
  p.error = make_error(errc_from_number(p.status), "the tier refused in " + verb, r["text"].string());
  p.error.sys_errno = static_cast<int>(r["errno"].integer());
  const Json& o = r["outcome"];
  if (!o.is_null()) {
    if (!o["status"].is_int() || !o["code"].is_int() || !o["reason"].is_int()) return std::nullopt;
    int64_t status = o["status"].integer();
    if (status < H5I_OUTCOME_EXITED || status > H5I_OUTCOME_HOST_LOST) return std::nullopt;
    int64_t reason = o["reason"].integer();
    Errc code = errc_from_number(static_cast<int>(reason));
    p.outcome = Outcome{static_cast<uint32_t>(status), static_cast<int32_t>(o["code"].integer()), code};
  }
  return p;
}

}  // namespace

Result<Json> HostProcess::call(FrameType verb, std::string_view request, int timeout_ms) {
  if (!alive()) return make_error(Errc::PLUGIN_CRASHED, "the plugin's process is gone", "an earlier call ended it");
  verb_ = verb;
  request_++;
  int64_t deadline = monotonic_ns() + timeout_ms * 1000000LL;
  auto sent = send_frame(control_, verb, request_, request);
  if (!sent && sent.error().sys_errno == EPIPE) return lost("");
  if (!sent) return sent.error();
  std::optional<Json> document;
  for (;;) {
    auto f = H5I_TRY(next(deadline));
    if (!f) return out_of_time(timeout_ms);
    if (f->type == FrameType::DOCUMENT) {
      if (document || verb == FrameType::CALL_CLEANUP) return protocol("a document too many");
      auto v = parse_json(f->body, "document", kMaxDocument);
      if (!v) return protocol("a document that is not strict JSON: " + v.error().evidence);
      document = std::move(*v);
      continue;
    }
    if (f->type != FrameType::RESULT) return protocol("a frame out of order");
    auto r = parse_result(f->body, verb_text());
    if (!r || r->outcome) return protocol("a result that is not h5i.result/1");
    if (r->status != 0) return r->error;
    if (verb == FrameType::CALL_CLEANUP) return Json();
    if (!document) return protocol("success without a document");
    return std::move(*document);
  }
}

Json load_document(const LoadSpec& spec) {
  Json services = json::Array{};
  for (const std::string& s : spec.services) services.push(s);
  return json::Object{{"schema", "h5i.load/1"},
                      {"id", spec.id},
                      {"version", spec.version},
                      {"digest", spec.digest.value},
                      {"kind", spec.kind},
                      {"session", spec.session},
                      {"writes", spec.writes},
                      {"network", spec.network},
                      {"services", std::move(services)}};
}

Result<void> check_hello(const Json& hello, const LoadSpec& spec) {
  if (hello["id"].string() != spec.id || hello["version"].string() != spec.version)
    return make_error(Errc::PLUGIN_ID, "plugin " + spec.id + " was refused",
                      "manifest says " + spec.id + " " + spec.version + ", library says " + hello["id"].string() + " " + hello["version"].string());
  if (hello["digest"].string() != spec.digest.value)
    return make_error(Errc::PLUGIN_DIGEST, "plugin " + spec.id + " was refused",
                      "verified as " + spec.digest.value + ", loaded as " + hello["digest"].string());
  return {};
}

Result<void> HostProcess::load(const LoadSpec& spec) {
  verb_ = FrameType::LOAD;
  request_++;
  auto sent = send_frame(control_, FrameType::LOAD, request_, json::canonical(load_document(spec)), {spec.library});
  if (!sent && sent.error().sys_errno == EPIPE) return lost("");
  if (!sent) return sent.error();
  auto f = H5I_TRY(next(monotonic_ns() + timeouts_.hello * 1000000LL));
  if (!f) return out_of_time(timeouts_.hello);
  if (f->type == FrameType::RESULT) {
    auto r = parse_result(f->body, "load");
    if (!r || r->status == 0 || r->outcome) return protocol("a result instead of hello");
    kill();
    r->error.what = "plugin " + spec.id + " was refused";
    return r->error;
  }
  if (f->type != FrameType::HELLO) return protocol("a frame before hello");
  auto hello = parse_json(f->body, "hello frame", 4096);
  if (!hello) return protocol("a hello that is not strict JSON");
  auto said = check_hello(*hello, spec);
  if (!said) kill();
  return said;
}

Result<Json> HostProcess::probe() { return call(FrameType::CALL_PROBE, {}, timeouts_.probe); }
Result<Json> HostProcess::verify_exec(const Json& request) {
  return call(FrameType::CALL_VERIFY, json::canonical(request), timeouts_.verify);
}
Result<Json> HostProcess::plan(const Json& request) {
  return call(FrameType::CALL_PLAN, json::canonical(request), timeouts_.plan);
}
Result<void> HostProcess::cleanup(const SessionId& session) {
  Json body = json::Object{{"session", session.value}};
  H5I_TRY(call(FrameType::CALL_CLEANUP, json::canonical(body), timeouts_.cleanup));
  return {};
}

Result<void> HostProcess::begin_run(const Json& request) {
  if (!alive()) return make_error(Errc::PLUGIN_CRASHED, "the plugin's process is gone", "an earlier call ended it");
  verb_ = FrameType::CALL_RUN;
  request_++;
  evidence_records_ = evidence_bytes_ = 0;
  auto sent = send_frame(control_, FrameType::CALL_RUN, request_, json::canonical(request));
  if (!sent && sent.error().sys_errno == EPIPE) return lost("");
  return sent;
}

Result<HostProcess::Answer> HostProcess::act(const Json& request, int64_t timeout_ms) {
  H5I_TRY(begin_run(request));
  const int64_t deadline = timeout_ms < 0 ? INT64_MAX : monotonic_ns() + timeout_ms * 1'000'000;
  Answer out;
  for (;;) {
    auto f = H5I_TRY(next(deadline));
    if (!f) return out_of_time(static_cast<int>(timeout_ms));
    if (f->type == FrameType::DOCUMENT) {
      auto v = parse_json(f->body, "document", kMaxDocument);
      if (!v || !out.document.is_null()) return protocol("a document that is not strict JSON, or one too many");
      out.document = std::move(*v);
      continue;
    }
    auto r = f->type == FrameType::RESULT ? parse_result(f->body, "run") : std::nullopt;
    if (!r || !r->outcome) return protocol("a result of run that is not h5i.result/1");
    if (r->status != 0) run_error_ = r->error;
    else if (out.document.is_null()) return protocol("success without a document");
    out.outcome = *r->outcome;
    return out;
  }
}

Result<std::optional<Outcome>> HostProcess::on_ready() {
  auto f = H5I_TRY(next(0));
  if (!f) return std::optional<Outcome>();
  if (f->type != FrameType::RESULT) return protocol("a frame out of order");
  auto r = parse_result(f->body, "run");
  if (!r || !r->outcome) return protocol("a result of run that is not h5i.result/1");
  if (r->status != 0) run_error_ = r->error;
  return r->outcome;
}

Result<void> HostProcess::cancel() {
  uint64_t one = 1;
  if (write(cancel_.get(), &one, sizeof one) < 0 && errno != EAGAIN) return sys_error("write to the cancel eventfd");
  return {};
}

void HostProcess::begin_shutdown() {
  if (!alive() || asked_to_end_) return;
  verb_ = FrameType::SHUTDOWN;
  request_++;
  asked_to_end_ = send_frame(control_, FrameType::SHUTDOWN, request_, {}).ok();
}

void HostProcess::shutdown() {
  if (!alive()) return;
  begin_shutdown();
  pollfd p{pidfd_.get(), POLLIN, 0};
  while (asked_to_end_ && poll(&p, 1, kShutdownTimeoutMs) < 0 && errno == EINTR) {
  }
  kill();
}

std::string install_prefix() {
  char buf[4096];
  ssize_t n = readlink("/proc/self/exe", buf, sizeof buf - 1);
  if (n <= 0) return {};
  std::string_view path(buf, static_cast<size_t>(n));
  auto up = [](std::string_view p) { return p.substr(0, p.rfind('/') == std::string_view::npos ? 0 : p.rfind('/')); };
  std::string_view dir = up(path);
  if (dir.ends_with("/libexec/h5i")) return std::string(up(up(dir)));
  if (dir.ends_with("/bin")) return std::string(up(dir));
  return {};
}

Result<UniqueFd> open_helper(const std::string& prefix, std::string_view relative) {
  std::string path = prefix + "/" + std::string(relative);
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return sys_error("open " + path);
  struct stat st {};
  if (fstat(fd.get(), &st) < 0) return sys_error("fstat " + path);
  std::string why;
  if (!S_ISREG(st.st_mode)) why = "it is no regular file";
  else if (st.st_uid != 0 && st.st_uid != geteuid()) why = "it belongs to user " + std::to_string(st.st_uid);
  else if (st.st_mode & (S_IWGRP | S_IWOTH)) why = "others may write it";
  if (!why.empty()) return make_error(Errc::DENIED, "refused to run " + path, why, "install h5i again");
  return fd;
}

}  // namespace h5i::plugin
