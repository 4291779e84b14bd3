#include "core/session/placement.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "core/base/text.hpp"
#include "core/evidence/log.hpp"
#include "core/os/fs.hpp"
#include "core/session/cleanup.hpp"
#include "core/session/run.hpp"
#include "core/session/sweep.hpp"

namespace h5i::session {
namespace {

constexpr size_t kMostProgram = 64u << 20;
constexpr size_t kMostReport = 4u << 20;
constexpr int64_t kStartMs = 60'000;   // a first run proves its tier before it starts anything
constexpr int64_t kEndMs = 15'000;     // from the end of the channel to the run's receipt
constexpr uint32_t kLoad = 1, kRun = 2;  // numbers of the two calls

// A tier has to keep the engine from everything else that may run as this user, and name the missing piece where it does not.
Result<void> confines(const Manifest& m) {
  if (m.tier == "process" || m.tier == "supervised") return {};
  if (m.tier == "workspace")
    return make_error(Errc::TIER_PROBE_MISSING, "no engine is put into " + m.name.str(),
                      "missing at tier workspace: a process namespace, a file view and a system call filter; any process of this user could take over what runs there", "a box of tier process or supervised");
  return make_error(Errc::TIER_PROBE_MISSING, "no engine is put into " + m.name.str(), "missing at tier " + printable(m.tier) + ": a channel from its program to the host that nothing else in the box has", "a box of tier process or supervised");
}

std::string network_of(const Json& policy, const Manifest& m) {
  if (policy["profile"]["net"]["mode"].string() == "host") return "host";
  return m.tier == "supervised" ? "rules" : "none";
}

Json error_json(const Error& e) {
  return json::Object{{"code", static_cast<int64_t>(e.code)}, {"what", printable(e.what)}, {"evidence", printable(e.evidence)}, {"next", printable(e.next)}};
}

[[noreturn]] void run(const BoxEntry& box, const RunOptions& options, const UniqueFd& tell) {
  auto ran = run_in_box(box, options);
  Json said = ran ? json::Object{{"run", ran->receipt["session"]}, {"receipt", ran->receipt_record}, {"status", ran->exit_status}, {"outcome", ran->receipt["outcome"]}, {"network", ran->receipt["network"]}}
                  : json::Object{{"error", error_json(ran.error())}};
  (void)os::write_all(tell.get(), json::canonical(said));
  _exit(0);
}

plugin::LoadSpec spec_of(const plugin::PluginInfo& engine, const plugin::VerifiedLibrary& library, const UniqueFd& copy) {
  plugin::LoadSpec spec;
  spec.library = &copy;
  spec.id = engine.id;
  spec.version = engine.version;
  spec.digest = library.digest;
  spec.kind = "websec";
  for (const Json& s : engine.manifest["host_services"].array()) spec.services.push_back(s.string());
  return spec;
}

}  // namespace

Json not_placed() { return json::Object{{"text", kNotContained}}; }

bool is_placed(const Json& manifest) { return manifest["placement"]["box"].is_string(); }

const std::string& placement_text(const Json& manifest) {
  static const std::string none = kNotContained;
  const Json& p = manifest["placement"];
  return p["text"].is_string() ? p["text"].string() : none;
}

Result<Json> placement_in(const BoxEntry& box) {
  Manifest m = H5I_TRY(load_manifest(box.paths));
  H5I_TRY(confines(m));
  if (m.state == BoxState::ABORTED) return make_error(Errc::BOX_STATE, "nothing runs in " + m.name.str(), "the box is aborted");
  Json policy = H5I_TRY(load_policy(box.paths, m));
  return Json(json::Object{{"text", "in box " + m.name.str() + " (" + m.tier + ")"},
                      {"box", m.name.str()},
                      {"tier", m.tier},
                      {"dir", box.paths.dir},
                      {"log", H5I_TRY(evidence::read_head(box.paths.log())).log_id},
                      {"policy_digest", m.policy_digest.value},
                      {"network", network_of(policy, m)}});
}

Result<BoxEntry> box_of(const Json& placement) {
  const std::string& name = placement["box"].string();
  auto over = [&](const std::string& why) { return make_error(Errc::CANCELLED, "the box of this session is no more what it was: " + name, why, "h5i websec open another"); };
  BoxEntry box{H5I_TRY(BoxName::parse(name, "human")), {placement["dir"].string()}};
  auto m = load_manifest(box.paths);
  if (!m && (m.error().code == Errc::NOT_FOUND || m.error().code == Errc::BOX_NOT_FOUND)) return over("it was removed");
  if (!m) return m.error();
  if (H5I_TRY(evidence::read_head(box.paths.log())).log_id != placement["log"].string()) return over("it was removed, and another one has its name");
  if (m->state == BoxState::ABORTED) return over("it is aborted");
  if (m->tier != placement["tier"].string() || m->policy_digest.value != placement["policy_digest"].string()) return over("its tier or its policy is another");
  return box;
}

EngineInBox::EngineInBox(EngineInBox&& other) noexcept : channel_(std::move(other.channel_)), told_(std::move(other.told_)), runner_(std::exchange(other.runner_, -1)) {}

EngineInBox::~EngineInBox() {
  channel_.reset();
  if (runner_ > 0) (void)report(kEndMs);
}

Result<EngineInBox> EngineInBox::start(const BoxEntry& box, const plugin::PluginInfo& engine) {
  (void)H5I_TRY(sweep_box(box, cleanup_tier));
  UniqueFd file = H5I_TRY(plugin::open_helper(plugin::install_prefix(), "libexec/h5i/h5i-engine"));
  UniqueFd program = H5I_TRY(os::sealed_copy(file.get(), "h5i-engine", kMostProgram, true));
  plugin::VerifiedLibrary library = H5I_TRY(plugin::open_verified(engine, geteuid()));
  // By descriptor, from below no path: the box's view holds neither file.
  UniqueFd copy = H5I_TRY(os::sealed_copy(library.fd.get(), "h5i-plugin", kMostProgram * 8, false));
  if (fchmod(copy.get(), 0444) != 0) return sys_error("fchmod of a copy");  // the box can be another user's
  auto pair = H5I_TRY(plugin::frame_socketpair());
  int told[2];
  if (pipe2(told, O_CLOEXEC) != 0) return sys_error("pipe2");
  EngineInBox out;
  out.told_ = UniqueFd(told[0]);
  UniqueFd tell(told[1]);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return sys_error("fork");
  if (child == 0) {
    // Its run is ended as by a person, so that there is a receipt, when the h5i that wants it is gone.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    pair.first.reset();
    RunOptions options;
    options.own = RunOptions::Own{program.get(), pair.second.get(), "h5i-engine", plugin::kEngineInBox};
    options.json = true;
    run(box, options, tell);
  }
  out.runner_ = child;
  out.channel_ = std::move(pair.first);
  pair.second.reset();
  tell.reset();

  const plugin::LoadSpec spec = spec_of(engine, library, copy);
  // A run that was refused at once has closed the other end: its own report says why.
  if (auto sent = plugin::send_frame(out.channel_, plugin::FrameType::LOAD, kLoad, json::canonical(plugin::load_document(spec)), {&copy}); !sent && sent.error().sys_errno != EPIPE) return sent.error();
  pollfd p[] = {{out.channel_.get(), POLLIN, 0}, {out.told_.get(), POLLIN, 0}};
  const int64_t until = monotonic_ns() + kStartMs * 1'000'000;
  int n;
  while ((n = poll(p, 2, static_cast<int>(std::max<int64_t>(0, (until - monotonic_ns()) / 1'000'000)))) < 0 && errno == EINTR) {
  }
  // What the run says of itself comes first: its program cannot have been heard by anybody else.
  if (n > 0 && (p[0].revents & POLLIN)) {
    auto hello = plugin::receive_frame(out.channel_);
    if (hello && hello->type == plugin::FrameType::HELLO) {
      Json said = H5I_TRY(parse_json(hello->body, "hello frame", 4096));
      H5I_TRY(plugin::check_hello(said, spec));
      Json begin = json::Object{{"schema", "h5i.websec-run/1"}, {"act", "in-box"}, {"channel", plugin::kEngineInBoxFd}};
      H5I_TRY(plugin::send_frame(out.channel_, plugin::FrameType::CALL_RUN, kRun, json::canonical(begin)));
      return out;
    }
    if (hello && hello->type == plugin::FrameType::RESULT) {
      auto why = parse_json(hello->body, "result frame", plugin::kMaxInline);
      out.channel_.reset();
      (void)out.report(kEndMs);
      return make_error(Errc::TIER_SETUP, "the engine does not start in " + box.name.str(), why ? printable((*why)["text"].string()) : std::string("it says nothing that can be read"), "h5i policy explain");
    }
  }
  out.channel_.reset();
  Json report = H5I_TRY(out.report(kEndMs));
  return make_error(Errc::TIER_SETUP, "the engine does not start in " + box.name.str(), "its run ended: " + printable(json::canonical(report["outcome"])) + ", receipt " + report["receipt"].string(), "h5i box log " + box.name.str());
}

Result<Json> EngineInBox::finish() {
  channel_.reset();
  return report(kEndMs);
}

Result<Json> EngineInBox::report(int64_t patience_ms) {
  if (runner_ <= 0) return make_error(Errc::INTERNAL, "a run in a box is over already");
  std::string text;
  int64_t until = monotonic_ns() + patience_ms * 1'000'000;
  for (bool asked = false;;) {
    pollfd p{told_.get(), POLLIN, 0};
    const int64_t left = (until - monotonic_ns()) / 1'000'000;
    if (left <= 0) {
      ::kill(runner_, asked ? SIGKILL : SIGTERM);
      if (asked) break;
      asked = true;
      until = monotonic_ns() + patience_ms * 1'000'000;
      continue;
    }
    if (poll(&p, 1, static_cast<int>(left)) <= 0) continue;
    char piece[65536];
    ssize_t n = read(told_.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || text.size() > kMostReport) break;
    text.append(piece, static_cast<size_t>(n));
  }
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(runner_), &info, WEXITED) < 0 && errno == EINTR) {
  }
  runner_ = -1;
  auto said = parse_json(text, "the report of a run", kMostReport);
  if (!said) return make_error(Errc::PLUGIN_CRASHED, "the run in the box was lost", "the process that ran it ended without a word; the next command on the box finds what it left", "h5i box status");
  const Json& e = (*said)["error"];
  if (!e.is_object()) return std::move(*said);
  Error error = make_error(errc_from_number(static_cast<int32_t>(e["code"].integer())), e["what"].string(), e["evidence"].string(), e["next"].string());
  return error;
}

}  // namespace h5i::session
