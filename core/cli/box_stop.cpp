#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>

#include "core/cli/open_box.hpp"
#include "core/cli/verbs.hpp"
#include "core/session/cleanup.hpp"

namespace h5i::cli {
namespace {

constexpr int kDefaultGrace = 10, kMostGrace = 3600;
constexpr int kAfterKillMs = 5000;  // for the kernel to take a killed process apart

Result<int> grace_seconds(const Parsed& words) {
  if (!words.has("--grace")) return kDefaultGrace;
  std::string text = words.get("--grace");
  int seconds = -1;
  auto r = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || seconds < 0 || seconds > kMostGrace)
    return make_error(Errc::USAGE, "not a number of seconds: " + text, "0 to " + std::to_string(kMostGrace), "h5i box stop --help");
  return seconds;
}

void send(const UniqueFd& process, int signal) { ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0); }

bool ended_within(const UniqueFd& process, int64_t ms) {
  int64_t deadline = monotonic_ns() + ms * 1000000;
  for (;;) {
    int64_t left = (deadline - monotonic_ns()) / 1000000;
    pollfd wait{process.get(), POLLIN, 0};
    int n = ::poll(&wait, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (n > 0) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

struct Stopped {
  session::BoxEntry box;
  SessionId session;
  bool killed = false;
};

Error not_running(const session::BoxEntry& box) {
  return make_error(Errc::BOX_NOT_RUNNING, "nothing runs in " + box.name.str(), "no running command is recorded");
}

Result<Stopped> stop(Context& ctx, const std::string& name, int grace) {
  auto dirs = H5I_TRY(session::UserDirs::from_environment());
  std::string cwd = H5I_TRY(current_directory());
  session::BoxEntry box = H5I_TRY(session::find_box(name, cwd, dirs));
  // What a dead run left is ended here too: the person asked that nothing runs any more.
  auto swept = H5I_TRY(session::sweep_box(box, session::cleanup_tier));
  if (swept && !swept->killed.empty()) return Stopped{box, swept->session, true};
  H5I_TRY(session::load_manifest(box.paths));  // a folder that is not ours names no processes to end
  auto live = H5I_TRY(session::read_live(box.paths));
  if (!live) return not_running(box);
  Stopped out{box, live->session, false};
  for (const session::LiveProcess& p : live->processes) {
    if (p.role != "core") continue;
    auto core = session::open_process(p);
    if (!core) break;  // died since; the sweep below ends the rest
    send(*core, SIGTERM);
    if (ended_within(*core, int64_t{1000} * grace)) break;
    ctx.note("it did not end within " + std::to_string(grace) + " seconds; killed");
    out.killed = true;
    send(*core, SIGKILL);
    ended_within(*core, kAfterKillMs);
  }
  auto rest = H5I_TRY(session::sweep_box(box, session::cleanup_tier));
  if (rest && !rest->killed.empty()) out.killed = true;
  auto still = H5I_TRY(session::read_live(box.paths));
  if (still && still->session == out.session)
    return make_error(Errc::BOX_BUSY, "the command in " + box.name.str() + " could not be ended", "session " + still->session.value + " still runs");
  return out;
}

}  // namespace

int box_stop(Context& ctx, const Parsed& words) {
  auto grace = grace_seconds(words);
  if (!grace) return ctx.refuse(grace.error());
  auto stopped = stop(ctx, words.arguments[0], *grace);
  if (!stopped) return ctx.refuse(stopped.error());
  ctx.result(json::Object{{"schema", "h5i.box-stop/1"},
                          {"box", stopped->box.name.str()},
                          {"session", stopped->session.value},
                          {"how", stopped->killed ? "killed" : "cancelled"}});
  if (!ctx.json) ctx.line(stopped->box.name.str() + ": " + (stopped->killed ? "killed" : "stopped"));
  return 0;
}

}  // namespace h5i::cli
