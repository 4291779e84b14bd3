// What is made from the tables besides help: manual pages and completions; and progress, which only a terminal sees.
#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>

#include <set>

#include "core/cli/parse.hpp"
#include "core/cli/progress.hpp"
#include "tests/cli/program.hpp"
#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::cli;
using namespace h5i::test;

namespace {

bool installed(const char* program) { return access((std::string("/usr/bin/") + program).c_str(), X_OK) == 0; }

// What `act` writes to a terminal that is its standard error.
template <class Act>
std::string on_terminal(Act act) {
  int master = -1;
  pid_t pid = forkpty(&master, nullptr, nullptr, nullptr);
  if (pid == 0) {
    act();
    _exit(0);
  }
  std::string out;
  char buffer[4096];
  ssize_t n;
  while ((n = read(master, buffer, sizeof buffer)) > 0) out.append(buffer, static_cast<size_t>(n));
  close(master);
  waitpid(pid, nullptr, 0);
  return out;
}

}  // namespace

TEST_CASE("every verb and option of the tables is in its manual page") {
  Scratch s;
  Ended e = run(Program{.argv = {"h5i", "--generate-man", s.path()}});
  REQUIRE(e.status == 0);
  std::string overview = read_file(s / "h5i.1");
  auto plain = [](std::string text) {
    std::string out;
    for (size_t i = 0; i < text.size(); i++)
      if (text[i] != '\\' || i + 1 == text.size() || text[i + 1] != '-') out += text[i];
    return out;
  };
  for (const Command& c : all_commands()) {
    CAPTURE(c.noun, c.verb);
    std::string page = plain(read_file(s / ("h5i-" + c.noun + (c.verb.empty() ? "" : "-" + c.verb) + ".1")));
    if (c.executable == "h5i" && page.empty()) continue;  // checked by name in the test of what exists
    REQUIRE_FALSE(page.empty());
    CHECK(plain(overview).find("\\fB" + c.full_name() + "\\fR") != std::string::npos);
    for (const Option& o : c.options) CHECK(page.find("\\fB" + o.name + "\\fR") != std::string::npos);
    for (const Option& o : common_options()) CHECK(page.find("\\fB" + o.name + "\\fR") != std::string::npos);
  }
  if (installed("groff")) {
    Ended roff = run(Program{.argv = {"/bin/sh", "-c", "groff -man -Tutf8 -ww " + s.path() + "/*.1 2>&1 >/dev/null"}});
    CHECK(roff.out.empty());
  }
  CHECK(run(Program{.argv = {"h5i", "--generate-man", s / "absent"}}).status == 1);
}

TEST_CASE("completions hold every verb and option, and their shells read them") {
  Scratch s;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    Ended e = run(Program{.argv = {"h5i", "--generate-completion", shell}});
    REQUIRE(e.status == 0);
    for (const Command& c : all_commands()) {
      if (e.out.find(c.full_name()) == std::string::npos && c.executable == "h5i") continue;
      CAPTURE(shell, c.noun, c.verb);
      CHECK(e.out.find(c.verb) != std::string::npos);
      for (const Option& o : c.options) CHECK(e.out.find(std::string(shell) == "fish" ? "-l " + o.name.substr(2) : o.name) != std::string::npos);
    }
    write_file(s / shell, e.out);
    if (installed(shell)) {
      Ended syntax = run(Program{.argv = {std::string("/usr/bin/") + shell, "-n", s / shell}});
      CAPTURE(syntax.err);
      CHECK(syntax.status == 0);
    }
  }
  Ended bash = run(Program{.argv = {"/bin/bash", "-c", ". " + (s / "bash") + "; COMP_WORDS=(h5i box ru); COMP_CWORD=2; _h5i; echo ${COMPREPLY[@]}; "
                                    "COMP_WORDS=(h5i env run --st); COMP_CWORD=3; _h5i; echo ${COMPREPLY[@]}"}});
  CHECK(bash.out == "run\n--status-fd\n");
  CHECK(run(Program{.argv = {"h5i", "--generate-completion", "csh"}}).status == 2);
  CHECK(run(Program{.argv = {"h5i", "--generate-completion"}}).status == 2);
}

TEST_CASE("progress is drawn on a terminal only, after half a second only, and wiped") {
  Context ctx;
  std::string quick = on_terminal([&] {
    Progress p(ctx);
    for (int i = 0; i < 100; i++) p.say("step");
  });
  CHECK(quick.empty());
  std::string slow = on_terminal([&] {
    Progress p(ctx);
    usleep(600000);
    p.say("step \x1b[31m one");
  });
  CHECK(slow.find("step \\x1b[31m one") != std::string::npos);
  CHECK(slow.find('\x1b') == std::string::npos);
  CHECK(slow.back() == '\r');
  std::string no_terminal = on_terminal([&] {
    int file = open("/dev/null", O_WRONLY);
    dup2(file, 2);
    Progress p(ctx);
    usleep(600000);
    p.say("step");
  });
  CHECK(no_terminal.empty());
  Context quiet;
  quiet.quiet = true;
  CHECK(on_terminal([&] {
          Progress p(quiet);
          usleep(600000);
          p.say("step");
        }).empty());
}

TEST_CASE("nothing is coloured, with NO_COLOR or without, on a terminal or not") {
  for (const char* words : {"--help", "box --help", "box run --help", "box ls", "box status none", "bxo"}) {
    std::string out = on_terminal([&] {
      setenv("HOME", "/nonexistent", 1);
      execl("/bin/sh", "sh", "-c", (h5i_path() + " " + words).c_str(), nullptr);
      _exit(127);
    });
    CAPTURE(words);
    CHECK_FALSE(out.empty());
    CHECK(out.find('\x1b') == std::string::npos);
  }
}
