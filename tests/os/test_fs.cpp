#include "core/os/fs.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/os/landlock.hpp"
#include "core/os/namespace.hpp"
#include "core/os/pidfd.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/kernel_test.hpp"

using namespace h5i;
using namespace h5i::test;

KERNEL_TEST("a path is opened through no symbolic link and not out of its directory", "[os][fs]") {
  std::string d = k.dir() + "/d";
  mkdir(d.c_str(), 0755);
  mkdir((d + "/sub").c_str(), 0755);
  KREQUIRE(symlink("/etc", (d + "/out").c_str()) == 0 && symlink("sub", (d + "/in").c_str()) == 0);
  close(open((d + "/sub/f").c_str(), O_CREAT | O_WRONLY, 0644));
  auto dir = os::open_dir(d);
  KREQUIRE(dir);
  KCHECK(os::open_beneath(dir->get(), "sub/f", O_RDONLY));  // the control
  for (const char* bad : {"out/hostname", "in/f", "in", "../d/sub/f", "/etc/hostname", "sub/../../x"}) {
    auto r = os::open_beneath(dir->get(), bad, O_RDONLY);
    KCHECK_SAYS(!r && r.error().code == Errc::PATH_ESCAPE, bad);
  }
  KCHECK(!os::open_no_links(d + "/in/f", O_RDONLY));
  KCHECK(os::open_no_links(d + "/sub/f", O_RDONLY));
  KCHECK(!os::open_no_links("relative", O_RDONLY));
}

KERNEL_TEST("reading stops at its limit and does not wait for a fifo", "[os][fs]") {
  std::string f = k.dir() + "/f";
  UniqueFd fd(open(f.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  KREQUIRE(os::write_all(fd.get(), std::string(5000, 'x')));
  auto whole = os::read_file(f, 5000);
  KCHECK(whole && whole->size() == 5000);
  auto cut = os::read_file(f, 4999);
  KCHECK(!cut && cut.error().code == Errc::TOO_LARGE);
  auto dir = os::open_dir(k.dir());
  KREQUIRE(dir && mkfifo((k.dir() + "/p").c_str(), 0644) == 0);
  KCHECK(!os::read_beneath(dir->get(), "p", 100));
}

KERNEL_TEST("a sealed memfd cannot be changed, and an executable one cannot be read by its program", "[os][fs]") {
  auto m = os::sealed_memfd("t", "text");
  KREQUIRE(m);
  KCHECK(os::is_sealed(m->get()));
  KCHECK(write(m->get(), "y", 1) < 0 && errno == EPERM);
  KCHECK(ftruncate(m->get(), 0) < 0);
  KCHECK(mmap(nullptr, 4, PROT_READ | PROT_WRITE, MAP_SHARED, m->get(), 0) == MAP_FAILED);
  UniqueFd open_memfd(memfd_create("u", MFD_CLOEXEC));
  KCHECK(!os::is_sealed(open_memfd.get()));
  UniqueFd source(open("/usr/bin/true", O_RDONLY | O_CLOEXEC));
  KCHECK(!os::sealed_copy(source.get(), "x", 10, true));
  auto program = os::sealed_copy(source.get(), "x", 1 << 24, true);
  KREQUIRE(program);
  pid_t pid = fork();
  if (pid == 0) {
    char* argv[] = {const_cast<char*>("true"), nullptr};
    fexecve(program->get(), argv, environ);
    _exit(9);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  KCHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

KERNEL_TEST("a pidfd speaks of one process only", "[os][pidfd]") {
  pid_t pid = fork();
  if (pid == 0)
    for (;;) pause();
  auto fd = os::pidfd_open(pid);
  KREQUIRE(fd);
  KCHECK(os::parent_of(pid) == getpid());
  auto running = os::pidfd_ended(fd->get(), 0);
  KCHECK(running && !*running);
  KCHECK(os::pidfd_signal(fd->get(), SIGKILL));
  auto ended = os::pidfd_ended(fd->get(), 2000);
  KCHECK(ended && *ended);
  waitpid(pid, nullptr, 0);
  KCHECK(os::pidfd_signal(fd->get(), SIGKILL));  // gone: what was asked for is so
}

KERNEL_TEST("the depth of a user namespace below ours is counted, and a stranger has none", "[os][namespace]") {
  auto depth_inside = [&](int levels, bool look_up) {
    pid_t pid = fork();
    if (pid == 0) {
      UniqueFd above(open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC));
      int ready[2], done[2];
      if (pipe(ready) != 0 || pipe(done) != 0) _exit(9);
      pid_t child = fork();
      if (child == 0) {
        for (int i = 0; i < levels; i++)
          if (unshare(CLONE_NEWUSER) != 0) _exit(9);
        // From inside, what is above is no descendant.
        if (look_up) _exit(os::user_namespace_depth(above.get()) ? 7 : 0);
        (void)!write(ready[1], "x", 1);
        char c;
        (void)!read(done[0], &c, 1);
        _exit(0);
      }
      char c;
      int result = 8;
      if (!look_up && read(ready[0], &c, 1) == 1) {
        UniqueFd ns(open(("/proc/" + std::to_string(child) + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
        auto depth = os::user_namespace_depth(ns.get());
        result = depth ? *depth : 9;
        (void)!write(done[1], "x", 1);
      }
      int status = 0;
      waitpid(child, &status, 0);
      _exit(look_up ? WEXITSTATUS(status) : result);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  KCHECK(depth_inside(0, false) == 0);
  KCHECK(depth_inside(1, false) == 1);
  KCHECK(depth_inside(1, true) == 0);
}

KERNEL_TEST("namespaces are told apart by number", "[os][namespace]") {
  auto mine = os::namespace_id(0, "uts");
  KREQUIRE(mine);
  pid_t pid = fork();
  if (pid == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWUTS) != 0) _exit(9);
    auto other = os::namespace_id(0, "uts");
    _exit(other && *other != *mine ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  KCHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  KCHECK(!os::namespace_id(0, "time"));
  KCHECK(*os::namespace_flag("mnt") == CLONE_NEWNS);
}

TEST_CASE("an identity map keeps the ids that exist here and no others", "[os][namespace]") {
  CHECK(os::identity_lines("         0          0 4294967295\n") == "0 0 4294967295\n");
  CHECK(os::identity_lines("0 1000 1\n1 100000 65536\n") == "0 0 1\n1 1 65536\n");
  CHECK(os::identity_lines("").empty());
}

TEST_CASE("landlock's attribute has the size and rights of its ABI", "[os][landlock]") {
  namespace ll = os::landlock;
  CHECK(ll::attr_size(1) == 8);
  CHECK(ll::attr_size(3) == 8);
  CHECK(ll::attr_size(4) == 16);
  CHECK(ll::attr_size(6) == 24);
  CHECK(ll::attr_size(99) == 24);
  CHECK(ll::all_fs(0) == 0);
  CHECK((ll::all_fs(1) & ll::kRefer) == 0);
  CHECK((ll::all_fs(2) & ll::kRefer) != 0);
  CHECK((ll::all_fs(3) & ll::kTruncate) != 0);
  CHECK((ll::all_fs(4) & ll::kIoctlDev) == 0);
  CHECK((ll::all_fs(5) & ll::kIoctlDev) != 0);
  CHECK(ll::all_net(3) == 0);
  CHECK(ll::all_scopes(5) == 0);
  CHECK(ll::abi() >= 0);
}
