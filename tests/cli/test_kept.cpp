// What a box does to keep its run from being told: the receipt is written all the same, and says no more than was seen.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/session/spool.hpp"
#include "tests/cli/made_box.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

bool tells(const Json& receipt, const std::string& what) {
  for (const Json& u : receipt["unobserved"].array())
    if (u["what"].string() == what) return true;
  return false;
}

size_t records(const session::BoxPaths& paths, const std::string& kind) {
  size_t n = 0;
  CHECK(evidence::read_log(paths.log(), [&](uint64_t, const Json& r) {
    if (r["kind"].string() == kind) n++;
    return true;
  }));
  return n;
}

// A file system of 8 MiB for everything that a RunWorld makes, in a mount namespace of this process's own.
class SmallDisk {
 public:
  SmallDisk() : before_(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)), path_("/tmp/h5i-kept-" + std::to_string(getpid())) {
    REQUIRE(unshare(CLONE_NEWNS) == 0);
    REQUIRE(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
    std::filesystem::create_directories(path_);
    REQUIRE(mount("small", path_.c_str(), "tmpfs", 0, "mode=0755,size=8m") == 0);
    setenv("TMPDIR", path_.c_str(), 1);
  }
  ~SmallDisk() {
    unsetenv("TMPDIR");
    umount2(path_.c_str(), MNT_DETACH);
    setns(before_, CLONE_NEWNS);
    close(before_);
    rmdir(path_.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;

 private:
  int before_;
  std::string path_;
};

}  // namespace

TEST_CASE("a box that fills the disk is told of in a receipt with what could not be kept") {
  if (geteuid() != 0) {
    printf("SKIP: endurance-disk-full: only root mounts a small file system\n");
    return;
  }
  for (uid_t uid : users())
    for (const char* tier : {"workspace", "process"}) {
      CAPTURE(uid, tier);
      SmallDisk disk;
      RunWorld w(uid);
      auto paths = w.box(MadeBox{.tier = tier});
      REQUIRE(run(w.sh("fix", "true")).status == 0);
      Ended e = run(w.sh("fix", "echo '{\"a\":1}' > $H5I_SPOOL/claim; cat /dev/zero > filler 2>/dev/null; head -c 100000 /dev/zero | tr '\\0' A; exit 9"));
      CAPTURE(e.err);
      Json receipt = w.last(paths, "receipt");
      CHECK(receipt["outcome"]["status"].string() == "exited");
      CHECK(receipt["exit_status"].integer() == 9);
      CHECK(receipt["output"]["stdout"]["bytes"].integer() == 100000);
      CHECK(receipt["output"]["stdout"]["truncated"].boolean());
      CHECK(tells(receipt, "standard output"));
      CHECK(e.status == 9);
      CHECK(records(paths, "receipt") == 2);
      CHECK(evidence::verify_chain(paths.log()));
      // Its claim is its own or nobody's, never the next run's.
      size_t claims = records(paths, "box-claimed");
      std::filesystem::remove(paths.work() + "/filler");
      REQUIRE(run(w.sh("fix", "true")).status == 0);
      CHECK(records(paths, "box-claimed") == claims);
    }
}

TEST_CASE("without room for a receipt nothing is started") {
  if (geteuid() != 0) return;
  SmallDisk disk;
  RunWorld w(0);
  auto paths = w.box(MadeBox{.tier = "workspace"});
  REQUIRE(run(w.sh("fix", "true")).status == 0);
  // Another file of the same disk takes everything, the log's own room too.
  std::filesystem::copy_file(paths.log(), paths.log() + ".new");
  std::filesystem::rename(paths.log() + ".new", paths.log());
  std::string filler = w / "filler", block(4096, 'x');
  int fd = open(filler.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  while (write(fd, block.data(), block.size()) > 0) {
  }
  close(fd);
  Ended e = run(w.sh("fix", "touch ran"));
  CHECK(e.status == 125);
  CHECK(is_refusal(e.err, "log.write"));
  CHECK_FALSE(std::filesystem::exists(paths.work() + "/ran"));
  std::filesystem::remove(filler);
  CHECK(run(w.sh("fix", "exit 4")).status == 4);
}

TEST_CASE("what is left in a spool is nobody's, however much it is") {
  for (uid_t uid : users())
    for (const char* tier : {"workspace", "process"}) {
      CAPTURE(uid, tier);
      RunWorld w(uid);
      auto paths = w.box(MadeBox{.tier = tier});
      // As a run that was killed leaves it: by hand, before the first.
      write_file(paths.spool() + "/old", "{\"old\":1}");
      give(paths.spool(), uid);
      REQUIRE(run(w.sh("fix", "true")).status == 0);
      CHECK(records(paths, "box-claimed") == 0);
      REQUIRE(run(w.sh("fix", "cd $H5I_SPOOL; mkdir -p d/e/f; seq 1 10300 | sed 's/.*/{\"n\":&}/' | split -l 1 -a 4 - x")).status == 0);
      CHECK(records(paths, "box-claimed") <= session::kSpoolEntries);
      CHECK(records(paths, "box-claimed") > 0);
      CHECK(std::filesystem::is_empty(paths.spool()));
      size_t claims = records(paths, "box-claimed");
      REQUIRE(run(w.sh("fix", "true")).status == 0);
      CHECK(records(paths, "box-claimed") == claims);
    }
}

TEST_CASE("a signal that a box sends itself is no limit that was reached and no filter that struck") {
  for (uid_t uid : users()) {
    CAPTURE(uid);
    RunWorld w(uid);
    auto paths = w.box(MadeBox{.cpu = 1});
    Ended e = run(w.sh("fix", "kill -XCPU $$"));
    CHECK(e.status == 128 + SIGXCPU);
    CHECK(w.last(paths, "receipt")["outcome"]["status"].string() == "signaled");
    // The control: one that did use its time.
    e = run(w.sh("fix", "while :; do :; done"));
    CHECK(e.status == 124);
    CHECK(w.last(paths, "receipt")["outcome"]["detail"].string() == "resources.cpu");
    CHECK(e.err.find("raise resources.cpu") != std::string::npos);
    e = run(w.sh("fix", "kill -SYS $$"));
    CHECK(e.status == 128 + SIGSYS);
    CHECK(w.last(paths, "receipt")["outcome"]["detail"].string().find("or by a signal") != std::string::npos);
    CHECK(tells(w.last(paths, "receipt"), "usage of processes that nobody in the box waited for"));
  }
}

TEST_CASE("a run whose receipt was never written is not a box in which nothing ran") {
  RunWorld w(0);
  auto paths = w.box(MadeBox{});
  std::string out = w / "out", err = w / "err";
  pid_t core = start(w.sh("fix", "echo began; sleep 30"), out, err);
  for (int i = 0; i < 200 && read_file(out) != "began\n"; i++) usleep(50000);
  REQUIRE(read_file(out) == "began\n");
  kill(core, SIGKILL);
  wait_for(core, 10);
  Ended e = run(w.h5i({"box", "status", "fix"}));
  CHECK(e.status == 0);
  CHECK(e.out.find("unfinished") != std::string::npos);
}

TEST_CASE("a file size limit of the caller's ends h5i in words") {
  RunWorld w(0);
  w.box(MadeBox{});
  for (rlim_t limit : {0, 512, 1024, 4096, 8192}) {
#ifdef __SANITIZE_THREAD__
    if (limit == 0) continue;  // its runtime writes a file before main(), and dies of that
#endif
    Program p = w.sh("fix", "exit 4");
    p.before_exec = [limit] {
      rlimit l{limit, limit};
      setrlimit(RLIMIT_FSIZE, &l);
    };
    Ended e = run(p);
    CAPTURE(limit, e.err);
    CHECK((e.status == 125 || e.status == 4));
  }
}
