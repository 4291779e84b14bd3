// Standard input: what a box reads reaches it, and nothing of the caller's is in its hands.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "tests/cli/made_box.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

// A script of the caller's; `h5i` in it is ours.
Program outside(const RunWorld& w, const std::string& script) {
  Program p = w.h5i({});
  p.argv = {"/bin/sh", "-c", "h5i() { " + h5i_path() + " \"$@\"; }; " + script};
  return p;
}

// Writes into its standard input, by every name that opens again for writing. A pipe that is full would make it wait.
const char* kInject = "read x; echo got $x; for f in /proc/self/fd/0 /dev/stdin /proc/$$/fd/0 /proc/1/fd/0; do { timeout 0.2 sh -c \"echo INJECTED > $f\"; } 2>/dev/null; done; exit 0";

}  // namespace

TEST_CASE("what a box writes into its standard input comes out nowhere") {
  everywhere([](RunWorld& w, const MadeBox& b) {
    w.box(b);
    std::string lines = "printf 'one\\ntwo\\nthree\\n' | { ", rest = "; cat; }";
    Ended e = run(outside(w, lines + "h5i box run fix -- sh -c '" + kInject + "'" + rest));
    CAPTURE(e.err);
    CHECK(e.out.find("got one\n") == 0);
    CHECK(e.out.find("INJECTED") == std::string::npos);
    // The control: without a box the same script reaches whoever reads next.
    Ended open = run(outside(w, lines + "sh -c '" + kInject + "'" + rest));
    CHECK(open.out.find("INJECTED") != std::string::npos);
    // And a shell that reads its script from there runs nothing of the box's.
    e = run(outside(w, "{ echo \"" + h5i_path() + " box run fix -- sh -c 'echo echo INJECTED > /proc/self/fd/0 & sleep 0.2'\"; echo 'echo host goes on'; } | sh"));
    CHECK(e.out == "host goes on\n");
  });
}

TEST_CASE("of a pipe a box takes what it reads and leaves the rest to the next") {
  everywhere([](RunWorld& w, const MadeBox& b) {
    w.box(b);
    CHECK(run(outside(w, "printf 'one\\ntwo\\nthree\\n' | { h5i box run fix -- true; cat; }")).out == "one\ntwo\nthree\n");
    CHECK(run(outside(w, "printf 'one\\ntwo\\nthree\\n' | { h5i box run fix -- sh -c 'read x; echo got $x'; cat; }")).out == "got one\ntwo\nthree\n");
    CHECK(run(outside(w, "printf 'a\\nb\\n' | while read x; do h5i box run fix -- echo $x; done")).out == "a\nb\n");
    CHECK(run(outside(w, "{ echo a; sleep 0.3; echo b; } | h5i box run fix -- cat")).out == "a\nb\n");
    CHECK(run(outside(w, "{ head -c 3000000 /dev/zero; echo end; } | h5i box run fix -- wc -c")).out == "3000004\n");
    CHECK(run(outside(w, "head -c 100000 /dev/zero | { h5i box run fix -- head -c 50000 | wc -c; cat >/dev/null; }")).out == "50000\n");
    CHECK(run(outside(w, "h5i box run fix -- cat < /dev/null")).out == "");
    Program closed = w.sh("fix", "cat; echo end");
    closed.closed = {0};
    CHECK(run(closed).out == "end\n");
  });
}

TEST_CASE("a box that makes its pipe larger or closes it gets what it reads all the same") {
  everywhere([](RunWorld& w, const MadeBox& b) {
    w.box(b);
    const char* larger = "perl -MFcntl -e \"fcntl(STDIN,1031,1<<20); while(read(STDIN,\\$b,65536)){\\$n+=length\\$b} print \\\"\\$n\\n\\\"\"";
    CHECK(run(outside(w, std::string("{ head -c 3000000 /dev/zero; echo end; } | h5i box run fix -- ") + larger)).out == "3000004\n");
    CHECK(run(outside(w, "{ head -c 300000 /dev/zero; echo end; } | { h5i box run fix -- sh -c 'exec <&-; sleep 0.2; echo closed'; cat | wc -c; }")).out == "closed\n300004\n");
  });
}

TEST_CASE("the flags and the owner of the caller's standard input stay as they were") {
  everywhere([](RunWorld& w, const MadeBox& b) {
    w.box(b);
    // Non-blocking in the box would be non-blocking for `cat`, which gives up then.
    Ended e = run(outside(w, "{ sleep 0.5; echo late; } | { h5i box run fix -- perl -MFcntl -e 'fcntl(STDIN, F_SETFL, O_NONBLOCK|O_APPEND)'; cat; }"));
    CAPTURE(e.err);
    CHECK(e.out == "late\n");
    std::string fifo = w / "fifo";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    if (w.uid() != 0) REQUIRE(chown(fifo.c_str(), w.uid(), w.uid()) == 0);
    struct stat before{}, after{};
    REQUIRE(stat(fifo.c_str(), &before) == 0);
    CHECK(run(outside(w, "{ echo x > " + fifo + "; } & h5i box run fix -- cat < " + fifo)).out == "x\n");
    REQUIRE(stat(fifo.c_str(), &after) == 0);
    CHECK((before.st_uid == after.st_uid && before.st_gid == after.st_gid && before.st_mode == after.st_mode));
  });
}

TEST_CASE("a box that fills its own standard input makes h5i wait for room, not ask for it again and again") {
  everywhere([](RunWorld& w, const MadeBox& b) {
    w.box(b);
    std::string fifo = w / "fifo", out = w / "out";
    REQUIRE(mkfifo(fifo.c_str(), 0666) == 0);
    REQUIRE(chmod(fifo.c_str(), 0666) == 0);
    int held = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(held >= 0);
    Program p = w.h5i({"box", "run", "fix", "--", "perl", "-MFcntl", "-e",
                       "$| = 1; sysopen(F, '/proc/self/fd/0', O_WRONLY | O_NONBLOCK) or die; 1 while syswrite(F, 'x' x 4096); print \"full\\n\"; sleep 60"});
    p.before_exec = [&] { dup2(open(fifo.c_str(), O_RDONLY), 0); };
    pid_t pid = start(p, out, w / "err");
    CHECK(soon([&] { return read_file(out) == "full\n"; }));
    CHECK(write(held, "line\n", 5) == 5);
    auto used = [&] {  // ticks of the processor, of h5i alone
      std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
      std::istringstream rest(stat.substr(stat.rfind(')') + 2));
      std::vector<std::string> fields{std::istream_iterator<std::string>(rest), {}};
      return std::stol(fields.at(11)) + std::stol(fields.at(12));
    };
    usleep(300'000);
    long before = used();
    usleep(1'500'000);
    CHECK(used() - before < sysconf(_SC_CLK_TCK) / 3);
    kill(pid, SIGTERM);
    CHECK(wait_for(pid, 30) >= 128);
    close(held);
  });
}
