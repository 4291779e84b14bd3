// The walker where a device number does not say what is mounted: on overlayfs, whose layers have numbers of their own.
#include <sched.h>
#include <sys/mount.h>

#include <fstream>

#include "core/gate/scan.hpp"
#include "core/os/beneath.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/kernel_test.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

void put(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// One id, inside as outside.
void map_ids(const Checks& k) {
  put("/proc/self/setgroups", "deny");
  put("/proc/self/uid_map", std::to_string(k.who().uid) + " " + std::to_string(k.who().uid) + " 1");
  put("/proc/self/gid_map", std::to_string(k.who().gid) + " " + std::to_string(k.who().gid) + " 1");
}

std::string said(const gate::Scanned& s) {
  std::string out;
  for (const gate::Violation& v : s.violations) out += std::string(errc_id(v.rule)) + " " + v.path + ": " + v.detail + "; ";
  for (const git::Entry& e : s.tree) out += e.path + " ";
  return out;
}

}  // namespace

KERNEL_TEST("files of overlayfs are no mount points, and what is mounted there is one", "[gate]") {
  KREQUIRE(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
  map_ids(k);
  for (const char* name : {"/low", "/up", "/w"}) KREQUIRE(mkdir((k.dir() + name).c_str(), 0755) == 0);
  KREQUIRE(mount("low", (k.dir() + "/low").c_str(), "tmpfs", 0, "size=1m") == 0 && mount("up", (k.dir() + "/up").c_str(), "tmpfs", 0, "size=1m") == 0);
  for (const char* name : {"/up/upper", "/up/work", "/low/folder"}) KREQUIRE(mkdir((k.dir() + name).c_str(), 0755) == 0);
  put(k.dir() + "/low/folder/below", "x");
  std::string layers = "lowerdir=" + k.dir() + "/low,upperdir=" + k.dir() + "/up/upper,workdir=" + k.dir() + "/up/work", w = k.dir() + "/w";
  if (mount("overlay", w.c_str(), "overlay", 0, layers.c_str()) != 0) {
    printf("SKIP: kernel.overlay: %s may not mount overlayfs here\n", k.who().name.c_str());
    fflush(stdout);
    return;
  }
  put(w + "/file", "x");
  KREQUIRE(symlink("file", (w + "/link").c_str()) == 0);
  struct stat top {
  }, file{};
  KREQUIRE(stat(w.c_str(), &top) == 0 && stat((w + "/file").c_str(), &file) == 0);
  KCHECK(top.st_dev != file.st_dev);  // the control: this is such a file system
  gate::ScanOptions o;
  o.root_git = gate::RootGit::SKIP;
  auto scanned = [&] {
    auto dir = os::open_directory(w);
    return dir ? gate::scan(*dir, o) : Result<gate::Scanned>(dir.error());
  };
  auto s = scanned();
  KREQUIRE(s);
  KCHECK_SAYS(s->violations.empty() && s->tree.size() == 3, said(*s));

  KREQUIRE(mkdir((w + "/mounted").c_str(), 0755) == 0);
  KREQUIRE(mount("x", (w + "/mounted").c_str(), "tmpfs", 0, "size=64k") == 0);
  KREQUIRE(mount((w + "/file").c_str(), (w + "/folder/below").c_str(), nullptr, MS_BIND, nullptr) == 0);
  s = scanned();
  KREQUIRE(s);
  KCHECK_SAYS(s->violations.size() == 2, said(*s));
  for (const gate::Violation& v : s->violations)
    KCHECK_SAYS(v.rule == Errc::GATE_SPECIAL && v.detail == "a mount point" && (v.path == "mounted" || v.path == "folder/below"), said(*s));
}
