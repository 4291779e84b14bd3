#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/base/text.hpp"
#include "core/evidence/log.hpp"
#include "core/evidence/record.hpp"
#include "tests/evidence/children.hpp"
#include "tests/evidence/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::evidence;
using namespace h5i::test;

namespace {

Record note(const std::string& text) {
  Record r;
  r.kind = "note";
  r.body = json::Object{{"text", text}};
  return r;
}

uint64_t count_records(const std::string& path) {
  uint64_t n = 0;
  REQUIRE(read_log(path, [&](uint64_t, const Json&) {
            n++;
            return true;
          }).ok());
  return n;
}

// Runs `body` in a child; its exit status, or -signal.
int in_child(const std::function<int()>& body) {
  pid_t p = fork();
  REQUIRE(p >= 0);
  if (p == 0) _exit(body());
  int st = 0;
  REQUIRE(waitpid(p, &st, 0) == p);
  return WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
}

}  // namespace

TEST_CASE("a record is canonical JSON with exactly the documented members") {
  Scratch s;
  auto log = Log::open(s.path("log.jsonl"));
  REQUIRE(log.ok());
  Record r = note("one");
  r.boundary = Boundary::NET;
  r.session = SessionId("01abc");
  r.observer = Observer::plugin("process", PluginDigest("ff"));
  REQUIRE(log->append(r).ok());
  std::string line = lines_of(read_file(s.path("log.jsonl")))[0];
  auto v = parse_json(line, "line");
  REQUIRE(v.ok());
  CHECK(json::canonical(*v) == line);
  CHECK(v->object().size() == 11);
  CHECK((*v)["lane"].string() == "host-observed");
  CHECK((*v)["observer"].string() == "process@ff");
  CHECK((*v)["boundary"].string() == "NET");
  CHECK((*v)["session"].string() == "01abc");
  CHECK((*v)["seq"].integer() == 0);
  CHECK((*v)["prev"].string() == sha256_hex((*v)["log"].string()));
  CHECK(log->head().digest == sha256_hex(line));
  CHECK(log->head().count == 1);
}

TEST_CASE("the log is private to its owner") {
  Scratch s;
  mode_t old = umask(0);
  auto log = Log::open(s.path("log.jsonl"));
  umask(old);
  REQUIRE(log.ok());
  struct stat st {};
  REQUIRE(stat(s.path("log.jsonl").c_str(), &st) == 0);
  CHECK((st.st_mode & 07777) == 0600);
}

TEST_CASE("64 appends from 8 processes are 64 records and one chain") {
  Scratch s;
  std::string path = s.path("log.jsonl");
  in_children(8, [&](int c) {
    auto log = Log::open(path);
    if (!log) return 1;
    for (int i = 0; i < 8; i++)
      if (!log->append(note(std::to_string(c) + "/" + std::to_string(i) + std::string(static_cast<size_t>(c * 700), 'x'))))
        return 2;
    return 0;
  });
  auto v = verify_chain(path);
  REQUIRE(v.ok());
  CHECK(v->records == 64);
}

TEST_CASE("two that open an empty log agree on its id") {
  Scratch s;
  auto a = Log::open(s.path("log.jsonl"));
  auto b = Log::open(s.path("log.jsonl"));
  REQUIRE((a.ok() && b.ok()));
  REQUIRE(a->append(note("a")).ok());
  REQUIRE(b->append(note("b")).ok());
  REQUIRE(a->append(note("c")).ok());
  auto v = verify_chain(s.path("log.jsonl"));
  REQUIRE(v.ok());
  CHECK(v->records == 3);
  CHECK(a->head().log_id == b->head().log_id);
}

TEST_CASE("a log that a killed writer leaves opens, and every whole record is still there") {
  Scratch s;
  std::string path = s.path("log.jsonl");
  for (int round = 0; round < 20; round++) {
    pid_t p = fork();
    REQUIRE(p >= 0);
    if (p == 0) {
      auto log = Log::open(path);
      if (!log) _exit(1);
      for (;;)
        if (!log->append(note(std::string(200'000, 'k')))) _exit(2);
    }
    usleep(static_cast<useconds_t>(3000 + round * 331));
    kill(p, SIGKILL);
    int st = 0;
    REQUIRE(waitpid(p, &st, 0) == p);
    REQUIRE(WIFSIGNALED(st));
    auto log = Log::open(path);
    REQUIRE(log.ok());
    REQUIRE(log->append(note("after")).ok());
    REQUIRE(verify_chain(path).ok());
  }
}

TEST_CASE("a torn last line is cut, and a record says so with its digest") {
  Scratch s;
  std::string path = s.path("log.jsonl");
  {
    auto log = Log::open(path);
    REQUIRE(log.ok());
    for (int i = 0; i < 3; i++) REQUIRE(log->append(note("n" + std::to_string(i))).ok());
  }
  std::string whole = read_file(path);
  // The torn part of a record, of a line longer than one read, and zeros as a power cut leaves them.
  for (std::string torn : {lines_of(whole)[2].substr(0, 40), std::string(100'000, 'z'), std::string(4096, '\0')}) {
    spill(path, whole + torn);
    CHECK_FALSE(verify_chain(path).ok());
    auto log = Log::open(path);
    REQUIRE(log.ok());
    CHECK(log->head().count == 4);
    auto lines = lines_of(read_file(path));
    REQUIRE(lines.size() == 4);
    auto v = parse_json(lines[3], "line");
    REQUIRE(v.ok());
    CHECK((*v)["kind"].string() == "torn");
    CHECK((*v)["body"]["bytes"].integer() == static_cast<int64_t>(torn.size()));
    CHECK((*v)["body"]["sha256"].string() == sha256_hex(torn));
    CHECK(verify_chain(path).ok());
  }
}

TEST_CASE("a log that is nothing but a torn line begins anew") {
  Scratch s;
  spill(s.path("log.jsonl"), "{\"body\":{");
  auto log = Log::open(s.path("log.jsonl"));
  REQUIRE(log.ok());
  REQUIRE(log->append(note("x")).ok());
  auto v = verify_chain(s.path("log.jsonl"));
  REQUIRE(v.ok());
  CHECK(v->records == 2);
}

TEST_CASE("a file size limit refuses the record as log.write, kills nobody and leaves the log whole") {
  Scratch s;
  std::string path = s.path("log.jsonl");
  int status = in_child([&] {
    rlimit l{4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &l) != 0) return 1;
    auto log = Log::open(path);
    if (!log) return 2;
    if (!log->append(note("fits"))) return 3;
    auto r = log->append(note(std::string(8000, 'x')));
    if (r.ok()) return 4;
    if (r.error().code != Errc::LOG_WRITE) return 5;
    return log->append(note("fits too")).ok() ? 0 : 6;
  });
  CHECK(status == 0);
  auto v = verify_chain(path);
  REQUIRE(v.ok());
  CHECK(v->records == 2);
}

TEST_CASE("a full disk refuses the record as log.write, and the log goes on when there is room again") {
  Scratch s;
  std::string dir = s.path("small");
  REQUIRE(mkdir(dir.c_str(), 0700) == 0);
  int status = in_child([&] {
    // A file system of our own, 64 KiB large, in a mount namespace of our own.
    std::string map = "0 " + std::to_string(getuid()) + " 1\n";
    if (unshare(CLONE_NEWNS) != 0) {
      if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 77;
      spill("/proc/self/uid_map", map);
    }
    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (mount("tmpfs", dir.c_str(), "tmpfs", 0, "size=64k") != 0) return 77;
    auto log = Log::open(dir + "/log.jsonl");
    if (!log) return 1;
    int written = 0;
    for (;; written++) {
      auto r = log->append(note(std::string(5000, 'x')));
      if (r.ok()) continue;
      if (r.error().code != Errc::LOG_WRITE || r.error().sys_errno != ENOSPC) return 2;
      break;
    }
    if (written < 5 || written > 13) return 3;
    auto v = verify_chain(dir + "/log.jsonl");
    if (!v || v->records != static_cast<uint64_t>(written)) return 4;
    if (mount(nullptr, dir.c_str(), nullptr, MS_REMOUNT, "size=1m") != 0) return 5;
    if (!log->append(note("room again"))) return 6;
    auto after = verify_chain(dir + "/log.jsonl");
    return after && after->records == static_cast<uint64_t>(written) + 1 ? 0 : 7;
  });
  if (status == 77) {
    printf("SKIP: evidence-disk-full: no mount namespace here\n");
    return;
  }
  CHECK(status == 0);
}

TEST_CASE("a log that cannot be written says log.write") {
  Scratch s;
  CHECK(Log::open(s.path("missing/log.jsonl")).error().code == Errc::LOG_WRITE);
  mkdir(s.path("dir").c_str(), 0700);
  CHECK(Log::open(s.path("dir")).error().code == Errc::LOG_WRITE);
  REQUIRE(symlink("elsewhere", s.path("link").c_str()) == 0);
  CHECK(Log::open(s.path("link")).error().code == Errc::LOG_WRITE);
  REQUIRE(mkfifo(s.path("fifo").c_str(), 0600) == 0);
  CHECK(Log::open(s.path("fifo")).error().code == Errc::LOG_WRITE);
  auto log = Log::open(s.path("log.jsonl"));
  REQUIRE(log.ok());
  REQUIRE(log->append(note("x")).ok());
  REQUIRE(unlink(s.path("log.jsonl").c_str()) == 0);
  CHECK(log->append(note("y")).error().code == Errc::LOG_WRITE);
}

TEST_CASE("a log that became shorter is not continued") {
  Scratch s;
  auto log = Log::open(s.path("log.jsonl"));
  REQUIRE(log.ok());
  REQUIRE(log->append(note("a")).ok());
  std::string one = read_file(s.path("log.jsonl"));
  REQUIRE(log->append(note("b")).ok());
  REQUIRE(truncate(s.path("log.jsonl").c_str(), static_cast<off_t>(one.size())) == 0);
  CHECK(log->append(note("c")).error().code == Errc::LOG_TRUNCATED);
}

TEST_CASE("a log whose last line is no record is not continued") {
  Scratch s;
  for (std::string bad :
       {std::string("hello\n"), std::string("{}\n"), std::string(kMaxLine + 100, 'x') + "\n", std::string("\n")}) {
    spill(s.path("log.jsonl"), bad);
    auto log = Log::open(s.path("log.jsonl"));
    REQUIRE_FALSE(log.ok());
    CHECK(log.error().code == Errc::CORRUPT);
    CHECK(read_file(s.path("log.jsonl")) == bad);
  }
}

TEST_CASE("nothing that is appended can make the log unreadable") {
  Scratch s;
  auto log = Log::open(s.path("log.jsonl"));
  REQUIRE(log.ok());
  Record r = note(std::string("a\xff\xc0\0b\n\x1b[2J", 9));
  r.kind = "k\xfe";
  REQUIRE(log->append(r).ok());

  Json deep = 1;
  for (int i = 0; i < json::Parser::kMaxDepth; i++) {
    json::Object o;
    o["d"] = std::move(deep);
    deep = std::move(o);
  }
  Record d;
  d.kind = "deep";
  d.body = deep;
  CHECK(log->append(d).error().code == Errc::INVALID);
  d.body = deep["d"];
  CHECK(log->append(d).ok());
  CHECK(log->append(note(std::string(kMaxLine, 'x'))).error().code == Errc::TOO_LARGE);
  REQUIRE(log->append(note("end")).ok());

  CHECK(count_records(s.path("log.jsonl")) == 3);
  auto v = parse_json(lines_of(read_file(s.path("log.jsonl")))[0], "line");
  REQUIRE(v.ok());
  CHECK((*v)["kind"].string() == "k\\xfe");
}

TEST_CASE("an append costs little while nobody else writes") {
  Scratch s;
  auto log = Log::open(s.path("log.jsonl"));
  REQUIRE(log.ok());
  Record r = note("a fact of ordinary length, as a denial or an egress decision has");
  std::vector<int64_t> took;
  for (int i = 0; i < 2000; i++) {
    int64_t t = monotonic_ns();
    REQUIRE(log->append(r).ok());
    took.push_back(monotonic_ns() - t);
  }
  std::nth_element(took.begin(), took.begin() + 1000, took.end());
  printf("append: median %.1f us a record, without sync\n", static_cast<double>(took[1000]) / 1000);
  CHECK(took[1000] < 200'000);  // the figure is for tests/bench; this only catches a re-read of the file
}
