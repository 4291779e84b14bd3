// What a box does not carry is refused in words: by the program itself, by a note at the end of the run, in the receipt.
#include "tests/cli/project.hpp"
#include "tests/corpus/corpus.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const char* const kProgram = R"sh(
set -eu
printf 'int main(void) { return 42; }\n' > a.c
gcc -g a.c -o a
)sh";

const char* const kThreads = R"sh(
python3 -c '
import threading
stop, n = threading.Event(), 0
try:
    for n in range(1000): threading.Thread(target=stop.wait).start()
    print("all of them")
except RuntimeError as e: print("refused after", n, e)
stop.set()'
)sh";

Ended outside(const Project& p, const std::string& script) {
  return run(Program{.argv = {"/bin/sh", "-c", script}, .env = {{"HOME", p / ""}}, .cwd = p / "r", .uid = p.uid()});
}
Ended inside(const Project& p, const std::string& script, const std::vector<std::string>& options = {}) {
  std::vector<std::string> words{"box", "run", "fix"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "sh", "-c", script});
  return run(p.h5i(words));
}

}  // namespace

TEST_CASE("gdb reads a program but may not run it, and the run says why and what to do instead") {
  if (!all_installed({"gdb", "gcc"})) return;
  for (uid_t uid : users()) {
    Project p(uid);
    p.create("fix");
    std::string run_it = std::string(kProgram) + "gdb -nx -batch -ex run ./a 2>&1 || true\n";
    Ended control = outside(p, run_it);
    CAPTURE(uid, control.out, control.err);
    if (!has(control.out, "exited with code 052")) {
      printf("SKIP: corpus-gdb-outside: this machine lets nobody trace a program\n");
      return;
    }
    Ended e = inside(p, run_it);
    CAPTURE(e.out, e.err);
    CHECK(e.status == 0);
    CHECK_FALSE(has(e.out, "exited with code 052"));
    CHECK(has(e.out, "Operation not permitted"));
    CHECK(has(e.err, "refused in the box: ptrace: debuggers and tracers"));
    CHECK(has(e.err, "run them outside"));
    CHECK(has(e.err, "see: h5i box inspect human/fix"));
    Ended receipt = p.ok({"box", "inspect", "fix"});
    CHECK(has(receipt.out, "ptrace: "));
    CHECK(has(receipt.out, "EPERM; debuggers and tracers"));
    CHECK_FALSE(has(inside(p, run_it, {"--quiet"}).err, "refused in the box"));
    CHECK(has(outside(p, "cd .git/h5i/boxes/human/fix/work && gdb -nx -batch -ex run ./a 2>&1").out, "exited with code 052"));

    Ended read = inside(p, "gdb -nx -batch -ex 'info line main' ./a && gdb -nx -batch -ex 'print sizeof(main)' ./a");
    CAPTURE(read.out, read.err);
    CHECK(read.status == 0);
    CHECK(has(read.out, "Line 1 of \"a.c\""));
    CHECK_FALSE(has(read.err, "refused in the box"));
  }
}

TEST_CASE("the leak check of a sanitizer traces its own program: it is refused, and the run says what to set") {
  if (!all_installed({"gcc"})) return;
  const char* leak = R"sh(
printf '#include <stdlib.h>\nint main(void) { volatile char* p = malloc(8); p = 0; return 0; }\n' > l.c
gcc -fsanitize=leak l.c -o l
./l 2>&1 | grep -o 'SUMMARY: LeakSanitizer: 8 byte\|LeakSanitizer does not work under ptrace'
LSAN_OPTIONS=detect_leaks=0 ./l && echo clean
)sh";
  for (uid_t uid : users()) {
    Project p(uid);
    p.create("fix");
    CHECK(outside(p, leak).out == "SUMMARY: LeakSanitizer: 8 byte\nclean\n");
    Ended e = inside(p, leak);
    CAPTURE(uid, e.out, e.err);
    CHECK(e.out == "LeakSanitizer does not work under ptrace\nclean\n");
    CHECK(has(e.err, "sanitizers work with detect_leaks=0"));
  }
}

TEST_CASE("what is refused without harm is not spoken of at the end of a run; a set-user-id bit is") {
  for (uid_t uid : users()) {
    Project p(uid);
    p.create("fix");
    Ended quiet = inside(p, "python3 -c 'import threading; t = threading.Thread(); t.start(); t.join()' && echo on");
    CAPTURE(uid, quiet.out, quiet.err);
    CHECK(quiet.out == "on\n");
    CHECK_FALSE(has(quiet.err, "refused in the box"));
    std::string script = "touch f && chmod 4755 f && ls -l f | cut -c1-10";
    CHECK(outside(p, script).out == "-rwsr-xr-x\n");
    Ended e = inside(p, script);
    CHECK(e.status != 0);
    CHECK(has(e.err, "chmod: changing permissions of 'f': Operation not permitted"));
    CHECK(has(e.err, "refused in the box: fchmodat: set-user-id and set-group-id bits"));
  }
}

TEST_CASE("1,000 threads are more than the built-in profile allows: the program hears of it, and the receipt names the limits") {
  for (uid_t uid : users()) {
    Project p(uid);
    p.create("fix");
    CHECK(outside(p, kThreads).out == "all of them\n");
    Ended e = inside(p, kThreads);
    CAPTURE(uid, e.out, e.err);
    CHECK(e.status == 0);
    CHECK(has(e.out, "refused after 25"));
    CHECK(has(e.out, "can't start new thread"));
    CHECK(has(p.ok({"box", "inspect", "fix"}).out, "limits that were reached: a task beyond resources.procs (256) or memory beyond resources.mem (4096 MiB)"));

    write_file(p / "r/.h5i/env.yaml", "profiles:\n  many:\n    resources: { procs: 1200, mem: 9G }\n");
    give(p / "r/.h5i", uid);
    p.ok({"box", "create", "--name", "many", "--isolation", "process", "--profile", "many"});
    Ended many = run(p.h5i({"box", "run", "many", "--", "sh", "-c", kThreads}));
    CAPTURE(many.out, many.err);
    CHECK(many.out == "all of them\n");
  }
}
