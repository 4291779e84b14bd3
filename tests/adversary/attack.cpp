// h5i-attack: each try is done in a child of its own and answered by one line on standard output:
//
//   TRY ARG...: did            it succeeded
//   TRY ARG...: EPERM          it was refused, with this errno
//   TRY ARG...: killed 31      a signal ended it
//   TRY ARG...: blocked        it did not return in time, and was ended
//
// Usage: h5i-attack TRY [ARG...] [, TRY [ARG...]]...   or: h5i-attack itself TRY [ARG...]   Static, like h5i-canary: it needs nothing of the view it runs in.
// Details for people go to standard error. Nothing here judges: what an answer is worth, the table says.
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "attack.hpp"

namespace attack {

long number(const char* s) { return static_cast<long>(strtoull(s, nullptr, 0)); }
long signed_number(const char* s) { return s[0] == '-' ? strtol(s, nullptr, 0) : number(s); }
bool is(const char* a, const char* b) { return strcmp(a, b) == 0; }

void say(const char* format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line - 1, format, args);
  va_end(args);
  if (n < 0) return;
  n = n < static_cast<int>(sizeof line) - 2 ? n : static_cast<int>(sizeof line) - 2;
  line[n] = '\n';
  (void)!write(2, line, static_cast<size_t>(n) + 1);
}

void nap(int ms) {
  timespec t{ms / 1000, (ms % 1000) * 1000000L};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) {
  }
}

namespace {

Act act_of(const char* name) {
  for (auto tries : {call_tries(), socket_tries(), process_tries(), limit_tries(), file_tries(), view_tries()})
    for (const Try& t : tries)
      if (is(t.name, name)) return t.act;
  return nullptr;
}

// Tries that wait on purpose are given as long as they ask for; the others must come back.
bool waits(const char* name) {
  for (const char* w : {"sleep", "bomb", "mood", "output", "memory", "files", "orphans", "fork", "turn", "scan", "crowd", "listen"})
    if (is(w, name)) return true;
  return false;
}
constexpr int kReturnsMs = 20000, kNumberMs = 3000;

void answer(const char* name, const Words& w, int status, bool blocked) {
  char line[1024];
  int n = snprintf(line, sizeof line, "%s", name);
  for (int i = 0; i < w.count && n < 900; i++) n += snprintf(line + n, sizeof line - static_cast<size_t>(n), " %.200s", w.at[i]);
  n = n < 950 ? n : 950;
  char* to = line + n;
  size_t room = sizeof line - static_cast<size_t>(n);
  if (blocked)
    n += snprintf(to, room, ": blocked\n");
  else if (WIFSIGNALED(status))
    n += snprintf(to, room, ": killed %d\n", WTERMSIG(status));
  else if (WEXITSTATUS(status) == 0)
    n += snprintf(to, room, ": did\n");
  else if (WEXITSTATUS(status) >= kUnknown)
    n += snprintf(to, room, ": unknown\n");
  else if (const char* err = strerrorname_np(WEXITSTATUS(status)))
    n += snprintf(to, room, ": %s\n", err);
  else
    n += snprintf(to, room, ": error %d\n", WEXITSTATUS(status));
  for (const char* p = line; n > 0;) {
    ssize_t written = write(1, p, static_cast<size_t>(n));
    if (written <= 0) _exit(1);
    p += written;
    n -= static_cast<int>(written);
  }
}

void attempt(const char* name, const Words& w) {
  Act act = act_of(name);
  pid_t child = fork();
  if (child < 0) return answer(name, w, errno << 8, false);
  if (child == 0) {
    errno = 0;
    _exit(!act ? kUnknown : act(w) >= 0 ? 0 : errno < kUnknown ? errno : 1);
  }
  int status = 0, limit = is(name, "number") ? kNumberMs : kReturnsMs;
  bool blocked = false;
  int pidfd = waits(name) ? -1 : static_cast<int>(syscall(SYS_pidfd_open, child, 0L));
  if (pidfd >= 0) {
    pollfd p{pidfd, POLLIN, 0};
    blocked = poll(&p, 1, limit) == 0;
    if (blocked) kill(child, SIGKILL);
    close(pidfd);
  }
  while (waitpid(child, &status, WUNTRACED) < 0 && errno == EINTR) {
  }
  if (WIFSTOPPED(status))
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  answer(name, w, status, blocked);
}

}  // namespace
}  // namespace attack

int main(int argc, char** argv) {
  using namespace attack;
  signal(SIGPIPE, SIG_IGN);
  if (argc > 2 && is(argv[1], "itself")) {  // no child in between: what ends the try ends this program
    Words w{};
    for (int i = 3; i < argc && w.count < kMaxArgs; i++) w.at[w.count++] = argv[i];
    Act act = act_of(argv[2]);
    return act && act(w) >= 0 ? 0 : 1;
  }
  for (int i = 1; i < argc; i++) {
    const char* name = argv[i];
    Words w{};
    for (i++; i < argc && !is(argv[i], ","); i++)
      if (w.count < kMaxArgs) w.at[w.count++] = argv[i];
    attempt(name, w);
  }
  return 0;
}