// Terminals of interactive runs. The box gets a pty of its own, never the person's: TIOCSTI or TIOCLINUX there type
// into a terminal that ends with the box. The person's terminal is in raw mode meanwhile, and is put back on every way
// out.
#pragma once
#include <termios.h>

#include <cstdint>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::spawn {

struct Pty {
  UniqueFd master;  // the core's; reading it fails with EIO when the last slave is closed, which is its end
  UniqueFd slave;   // the box's stdio: SpawnWatch::give_stdio(slave, slave, slave, true), then close it
};
// With the window size of `like` when that is a terminal, else 24 by 80.
Result<Pty> open_pty(int like);
// After SIGWINCH: the size of the terminal `from` becomes the pty's; the box's foreground group gets SIGWINCH.
Result<void> copy_window_size(int from, int master);

// What the person's terminal is sent afterwards: ends unfinished control strings, leaves the alternate screen, mouse,
// paste and keypad modes, shows the cursor, resets colours, character sets and scrolling. Moves no text.
std::string_view hygiene();

// Raw mode from construction until destruction, restore(), exit() or a deadly signal (HUP, INT, QUIT, TERM, ABRT, SEGV,
// BUS, FPE, ILL), whichever comes first; the signal then takes its course. Typed-ahead input is dropped at the end,
// since a box can make a terminal answer (device status reports) what a shell would take for a command.
// One at a time in a process.
class RawTerminal {
 public:
  // INVALID when `tty` is no terminal, BUSY when there is one already.
  static Result<RawTerminal> enter(int tty);
  RawTerminal(RawTerminal&& o) noexcept;
  RawTerminal& operator=(RawTerminal&&) = delete;
  RawTerminal(const RawTerminal&) = delete;
  ~RawTerminal() { restore(); }
  void restore();

 private:
  RawTerminal() = default;
  bool active_ = true;
};

}  // namespace h5i::spawn
