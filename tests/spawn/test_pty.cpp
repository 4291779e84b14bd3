// Terminals: the box's own, and the person's put back on every way out. The "person's terminal" here is a pty too.
#include <sys/ioctl.h>
#include <termios.h>

#include "core/spawn/pty.hpp"
#include "tests/spawn/acts.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

bool is_raw(int fd) {
  termios t{};
  return tcgetattr(fd, &t) == 0 && !(t.c_lflag & (ICANON | ECHO | ISIG));
}

std::string drain(int master) {
  std::string out;
  char buf[4096];
  fcntl(master, F_SETFL, O_NONBLOCK);
  for (ssize_t n; (n = read(master, buf, sizeof buf)) > 0;) out.append(buf, static_cast<size_t>(n));
  return out;
}

}  // namespace

KERNEL_TEST("raw mode ends on return, exit and every deadly signal, with the terminal clean and input dropped",
            "[spawn][pty]") {
  enum How { returns, exits, restores };
  struct Case {
    int signal;
    How how;
  };
  for (Case c : {Case{0, returns}, Case{0, exits}, Case{0, restores}, Case{SIGTERM, returns}, Case{SIGHUP, returns},
                 Case{SIGINT, returns}, Case{SIGSEGV, returns}, Case{SIGABRT, returns}}) {
    auto person = spawn::open_pty(-1);
    KREQUIRE(person);
    KCHECK(!is_raw(person->slave.get()));
    int ready[2];
    KREQUIRE(pipe2(ready, O_CLOEXEC) == 0);
    pid_t child = fork();
    if (child == 0) {
      {
        auto raw = spawn::RawTerminal::enter(person->slave.get());
        bool ok = raw && is_raw(person->slave.get());
        if (!spawn::RawTerminal::enter(person->slave.get()))
          ok = ok && true;
        else
          ok = false;
        if (write(ready[1], ok ? "y" : "n", 1) != 1) _exit(9);
        char c2;
        if (read(person->slave.get(), &c2, 1) != 1) _exit(9);  // raw: one byte, no newline needed
        if (c.signal) {
          raise(c.signal);
          _exit(8);
        }
        if (c.how == exits) exit(0);
        if (c.how == restores) raw->restore();
      }
      _exit(0);
    }
    char ok = 0;
    KCHECK(read(ready[0], &ok, 1) == 1 && ok == 'y');
    KCHECK(write(person->master.get(), "k", 1) == 1);
    KCHECK(write(person->master.get(), "\x1b[1;1Rrm -rf", 11) == 11);  // the answer that a box provoked
    int status = 0;
    waitpid(child, &status, 0);
    if (c.signal)
      KCHECK(WIFSIGNALED(status) && WTERMSIG(status) == c.signal);
    else
      KCHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    KCHECK(!is_raw(person->slave.get()));
    std::string seen = drain(person->master.get());
    KCHECK(seen.find(spawn::hygiene()) != std::string::npos);
    int waiting = -1;
    KCHECK(ioctl(person->slave.get(), FIONREAD, &waiting) == 0 && waiting == 0);
    close(ready[0]);
    close(ready[1]);
  }
}

KERNEL_TEST("an interactive box has its own controlling terminal of the right size", "[spawn][pty]") {
  auto person = spawn::open_pty(-1);
  KREQUIRE(person);
  winsize big{50, 132, 0, 0};
  KREQUIRE(ioctl(person->master.get(), TIOCSWINSZ, &big) == 0);
  for (bool confined : {true, false}) {
    Session s;
    auto pty = spawn::open_pty(person->slave.get());
    KREQUIRE(pty);
    KREQUIRE(s.watch->give_stdio(pty->slave.get(), pty->slave.get(), pty->slave.get(), true));
    pty->slave.reset();
    Json p = confined ? confined_plan(k) : plain_plan(k);
    if (confined) {
      Json& tty = add_mount(p, "bind", "/dev/tty");
      tty["source"] = "/dev/tty";
      for (const char* f : {"nosuid", "noexec"}) tty["flags"].push(f);
    }
    set_shell(p,
              "stty size; echo to-tty > /dev/tty; read line; echo got-$line; trap 'echo hup' INT; kill -INT $$; tty "
              ">/dev/null; exit 5");
    auto handle = s.client->start(json::canonical(p), H5I_SPAWN_WORKLOAD);
    KREQUIRE(handle);
    auto event = s.watch->next(5000);
    KREQUIRE(event);
    spawn::Gate gate(std::move(event->gate));
    KREQUIRE(gate.wait_ready(5000) && gate.go());
    KCHECK(write(pty->master.get(), "hello\n", 6) == 6);
    std::string out;
    char buf[1024];
    for (ssize_t n; (n = read(pty->master.get(), buf, sizeof buf)) > 0;) out.append(buf, static_cast<size_t>(n));
    KCHECK_SAYS(errno == EIO, strerror(errno));
    auto end = s.watch->next(5000);
    KCHECK(end && end->result.code == 5);
    for (const char* part : {"50 132", "to-tty", "got-hello", "hup"})
      KCHECK_SAYS(out.find(part) != std::string::npos, std::string(part) + " in " + out);
    KCHECK(drain(person->master.get()).empty());  // nothing of it reached the person's terminal by itself
    KCHECK(s.client->wait(*handle, 5000));
  }
}

KERNEL_TEST("without a pty the box has no terminal at all", "[spawn][pty]") {
  Json p = confined_plan(k);
  Json& tty = add_mount(p, "bind", "/dev/tty");
  tty["source"] = "/dev/tty";
  for (const char* f : {"nosuid", "noexec"}) tty["flags"].push(f);
  auto a = act(p, {{"tty"}, {"syscall", "16", "0", "0x5412", "0"}});
  KCHECK_SAYS(a[0] == "ENXIO", a[0]);
  KCHECK(a[1] != "ok");
}
