#include "core/spawn/pty.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>

namespace h5i::spawn {
namespace {

constexpr int kDeadly[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr size_t kDeadlyCount = sizeof kDeadly / sizeof kDeadly[0];

// For the signal handler: plain data, written before the handler is installed.
int g_tty = -1;
termios g_saved;
struct sigaction g_before[kDeadlyCount];
std::atomic<bool> g_raw{false};  // lock-free: whoever clears it puts the terminal back

void put_back() {
  if (!g_raw.exchange(false)) return;
  std::string_view clean = hygiene();
  ssize_t ignored = write(g_tty, clean.data(), clean.size());
  (void)ignored;
  // FLUSH drops what was typed or answered meanwhile. A background process would be stopped by SIGTTOU here, which is
  // blocked or ignored by then.
  tcsetattr(g_tty, TCSAFLUSH, &g_saved);
}

// Every call in here is on the list of signal-safety(7).
void on_deadly(int number) {
  put_back();
  for (size_t i = 0; i < kDeadlyCount; i++)
    if (kDeadly[i] == number) sigaction(number, &g_before[i], nullptr);
  raise(number);  // delivered when this handler returns, with what was in place before
}

void at_exit() {
  if (!g_raw) return;
  signal(SIGTTOU, SIG_IGN);
  put_back();
}

}  // namespace

Result<Pty> open_pty(int like) {
  Pty p;
  p.master.reset(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!p.master) return sys_error("open a pty");
  if (grantpt(p.master.get()) != 0 || unlockpt(p.master.get()) != 0) return sys_error("unlock a pty");
  // By ioctl and not by name: no path through /dev/pts that could be another mount by now (4.13).
  int slave = ioctl(p.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) return sys_error("open a pty's other side");
  p.slave.reset(slave);
  winsize size{24, 80, 0, 0};
  winsize theirs{};
  if (ioctl(like, TIOCGWINSZ, &theirs) == 0 && theirs.ws_row && theirs.ws_col) size = theirs;
  if (ioctl(p.master.get(), TIOCSWINSZ, &size) != 0) return sys_error("set a pty's size");
  return p;
}

Result<void> copy_window_size(int from, int master) {
  winsize size{};
  if (ioctl(from, TIOCGWINSZ, &size) != 0) return sys_error("read the window size");
  if (ioctl(master, TIOCSWINSZ, &size) != 0) return sys_error("set a pty's size");
  return {};
}

std::string_view hygiene() {
  // CAN and ST end an unfinished sequence or string; then modes, each by its own reset (a full reset would clear the
  // screen). Leaving the alternate screen restores a saved cursor even where there is nothing to leave, and giving the
  // scrolling region back sends the cursor home: ESC 7 and ESC 8 keep it in place. Origin mode and insertion are left
  // to the soft reset, because switching origin mode off by itself sends the cursor home too.
  return "\x18\x1b\\"
         "\x1b"
         "7\x1b[?1049l\x1b[?47l"
         "\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l"
         "\x1b[?2004l\x1b[?1l\x1b>\x1b[<u\x1b[>4m"
         "\x1b[!p\x1b"
         "7\x1b[r\x1b"
         "8\x1b[?7h\x1b[4l\x1b[20l\x1b[?5l"
         "\x1b(B\x1b)B\x0f\x1b[0m\x1b[?25h";
}

RawTerminal::RawTerminal(RawTerminal&& o) noexcept : active_(o.active_) { o.active_ = false; }

Result<RawTerminal> RawTerminal::enter(int tty) {
  if (g_raw) return make_error(Errc::BUSY, "a terminal is in raw mode already");
  termios now{};
  if (tcgetattr(tty, &now) != 0) return make_error(Errc::INVALID, "not a terminal");
  static const bool registered = atexit(at_exit) == 0;
  if (!registered) return make_error(Errc::SYSTEM, "atexit failed");
  g_tty = tty;
  g_saved = now;
  g_raw = true;
  struct sigaction handler {};
  handler.sa_handler = on_deadly;
  sigfillset(&handler.sa_mask);
  for (size_t i = 0; i < kDeadlyCount; i++) sigaction(kDeadly[i], &handler, &g_before[i]);
  termios raw = now;
  cfmakeraw(&raw);
  RawTerminal out;
  if (tcsetattr(tty, TCSADRAIN, &raw) != 0) {
    Error e = sys_error("raw mode of the terminal");
    out.restore();
    return e;
  }
  return out;
}

void RawTerminal::restore() {
  if (!active_) return;
  active_ = false;
  put_back();
  for (size_t i = 0; i < kDeadlyCount; i++) {
    struct sigaction now {};
    if (sigaction(kDeadly[i], nullptr, &now) == 0 && now.sa_handler == on_deadly)
      sigaction(kDeadly[i], &g_before[i], nullptr);
  }
}

}  // namespace h5i::spawn
