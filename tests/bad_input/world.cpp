#include "tests/bad_input/world.hpp"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "core/base/sha256.hpp"
#include "tests/support/catch.hpp"

namespace h5i::test {
namespace fs = std::filesystem;

std::vector<uid_t> people() { return geteuid() == 0 ? std::vector<uid_t>{0, kOrdinary} : std::vector<uid_t>{0}; }

bool may_mount() {
  static const bool may = geteuid() == 0 && unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return may;
}

namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// A large file is read again only when its inode says that it changed: there are some that no verb touches.
std::string digest_of(const fs::path& path, const struct stat& st) {
  constexpr off_t kLarge = 64 << 10;
  using Key = std::tuple<dev_t, ino_t, off_t, time_t, long, time_t, long>;
  static std::map<Key, std::string> known;
  Key key{st.st_dev, st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_ctim.tv_sec, st.st_ctim.tv_nsec};
  if (auto it = known.find(key); st.st_size >= kLarge && it != known.end()) return it->second;
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  auto digest = sha256_fd_hex(fd);
  close(fd);
  if (!digest) return "cannot be read";
  if (st.st_size >= kLarge) known[key] = *digest;
  return *digest;
}

std::string described(const fs::path& path) {
  struct stat st{};
  if (lstat(path.c_str(), &st) != 0) return "gone";
  char head[64];
  snprintf(head, sizeof head, "%o %u:%u ", st.st_mode, st.st_uid, st.st_gid);
  if (S_ISLNK(st.st_mode)) return head + fs::read_symlink(path).string();
  return S_ISREG(st.st_mode) ? head + digest_of(path, st) : std::string(head);
}

// Root's boxes need id-mapped mounts, which tmpfs has since 6.3.
bool in_memory() {
  struct utsname u{};
  int major = 0, minor = 0;
  return uname(&u) == 0 && sscanf(u.release, "%d.%d", &major, &minor) == 2 && (major > 6 || (major == 6 && minor >= 3));
}

void run_or_end(const std::vector<std::string>& argv) {
  Ended e = run(Program{.argv = argv});
  CAPTURE(argv, e.err);
  REQUIRE(e.status == 0);
}

}  // namespace

Listing list_tree(const std::string& top) {
  Listing out;
  std::error_code error;
  for (fs::recursive_directory_iterator it(top, error), end; it != end; it.increment(error)) out[it->path().string().substr(top.size() + 1)] = described(it->path());
  REQUIRE_FALSE(error);
  return out;
}

std::vector<std::string> differences(const Listing& before, const Listing& after) {
  std::vector<std::string> out;
  for (const auto& [path, was] : before) {
    auto now = after.find(path);
    if (now == after.end()) out.push_back("-" + path);
    else if (now->second != was) out.push_back("~" + path);
  }
  for (const auto& [path, is] : after)
    if (!before.count(path)) out.push_back("+" + path);
  if (out.size() > 20) out.resize(20);
  return out;
}

World::World(uid_t uid) : uid_(uid) {
  char pattern[] = "/tmp/h5i-bad-XXXXXX";
  REQUIRE(mkdtemp(pattern) != nullptr);
  root_ = pattern;
  live_ = root_ + "/w";
  chmod(root_.c_str(), 0755);
  // In memory where that is possible: copying it back thousands of times is then cheap.
  if (may_mount() && in_memory()) REQUIRE(mount("none", root_.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") == 0);
  for (const char* d : {"", "/home", "/r", "/elsewhere"}) REQUIRE(mkdir((live_ + d).c_str(), 0755) == 0);
  uid_t owner = uid_ ? uid_ : geteuid();
  REQUIRE(chown(root_.c_str(), owner, owner) == 0);
  for (const char* d : {"", "/home", "/r", "/elsewhere"}) REQUIRE(chown((live_ + d).c_str(), owner, owner) == 0);
  write("home/.gitconfig", "[user]\n\tname = Tester\n\temail = t@example.org\n[core]\n\tfsync = none\n[safe]\n\tdirectory = *\n[protocol \"file\"]\n\tallow = always\n");
  write("r/a.txt", "one\ntwo\nthree\n");
  write("r/run.sh", "#!/bin/sh\necho hi\n", 0755);
  write("r/dir/b.txt", "b\n");
  sh("ln -s a.txt link; git init -q -b main --template= . && git add -A && git commit -qm first");
}

World::~World() {
  unmount();
  settle();
  if (may_mount()) umount2(root_.c_str(), MNT_DETACH);
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

Program World::h5i(std::vector<std::string> words) const {
  words.insert(words.begin(), "h5i");
  return Program{.argv = std::move(words), .env = {{"HOME", home()}, {"LC_ALL", "C.UTF-8"}}, .cwd = where(), .uid = uid_};
}

Json World::made(std::vector<std::string> words) const {
  words.push_back("--json");
  Ended e = run(h5i(words));
  CAPTURE(words, e.out, e.err);
  REQUIRE(e.status == 0);
  auto v = json::parse(e.out);
  REQUIRE(v);
  return *v;
}

Ended World::sh(const std::string& script, bool must) const {
  Ended e = run(Program{.argv = {"/bin/sh", "-c", script}, .env = {{"HOME", home()}, {"GIT_CONFIG_NOSYSTEM", "1"}}, .cwd = where(), .uid = uid_});
  CAPTURE(script, e.out, e.err);
  if (must) REQUIRE(e.status == 0);
  return e;
}

Ended World::git(std::vector<std::string> words, bool must) const {
  words.insert(words.begin(), {"/usr/bin/env", "git"});
  Ended e = run(Program{.argv = words, .env = {{"HOME", home()}, {"GIT_CONFIG_NOSYSTEM", "1"}}, .cwd = where(), .uid = uid_});
  CAPTURE(words, e.out, e.err);
  if (must) REQUIRE(e.status == 0);
  return e;
}

void World::write(const std::string& path, const std::string& bytes, unsigned mode) const {
  std::string whole = path[0] == '/' ? path : live_ + "/" + path;
  std::vector<std::string> fresh;
  for (fs::path p = fs::path(whole).parent_path(); !fs::exists(p); p = p.parent_path()) fresh.push_back(p.string());
  fs::create_directories(fs::path(whole).parent_path());
  fresh.push_back(whole);
  std::ofstream(whole, std::ios::binary | std::ios::trunc) << bytes;
  REQUIRE(chmod(whole.c_str(), mode) == 0);
  for (const std::string& p : fresh)
    if (uid_) REQUIRE(lchown(p.c_str(), uid_, uid_) == 0);
}

std::string World::box(const std::string& slug) const {
  for (const char* at : {"/.git", ""})
    if (fs::exists(where() + at + "/h5i/boxes/human/" + slug)) return where() + at + "/h5i/boxes/human/" + slug;
  return live_ + "/r/.git/h5i/boxes/human/" + slug;
}

void World::make_boxes() const {
  for (const char* name : {"fix", "other"}) made({"box", "create", "--name", name, "--isolation", tier});
  write(box("fix") + "/work/a.txt", "one\nTWO\nthree\n");
  write(box("fix") + "/work/new.txt", "new\n");
}

void World::keep(const std::string& name) {
  std::error_code ignored;
  fs::remove_all(root_ + "/" + name, ignored);
  run_or_end({"/bin/cp", "-a", live_, root_ + "/" + name});
}

void World::settle() const {
  // The helper that signs a log's head is started by the end of a run and not waited for; it has the log's path.
  auto works_here = [&] {
    for (const auto& e : fs::directory_iterator("/proc")) {
      std::string name = e.path().filename();
      if (name.find_first_not_of("0123456789") == std::string::npos && bytes_of(e.path().string() + "/cmdline").find(root_) != std::string::npos) return true;
    }
    return false;
  };
  for (int i = 0; i < 2000 && works_here(); i++) usleep(5000);
}

void World::restore(const std::string& name) {
  unmount();
  fs::remove_all(live_);
  run_or_end({"/bin/cp", "-a", root_ + "/" + name, live_});
}

Listing World::listing() const {
  Listing out = list_tree(live_);
  // Not state: what is proved of this host, kept so that it need not be proved again.
  std::erase_if(out, [](const auto& e) { return e.first.starts_with("home/.cache"); });
  return out;
}

void World::mount_read_only(const std::string& below) {
  unmount();
  mounted_ = live_ + below;
  REQUIRE(mount(mounted_.c_str(), mounted_.c_str(), nullptr, MS_BIND, nullptr) == 0);
  REQUIRE(mount(nullptr, mounted_.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0);
}

void World::mount_small(unsigned long bytes) {
  keep("small");
  std::string size = "mode=755,size=" + std::to_string(bytes);
  REQUIRE(mount("none", live_.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, size.c_str()) == 0);
  mounted_ = live_;
  run_or_end({"/bin/cp", "-a", root_ + "/small/.", live_});
}

void World::unmount() {
  if (!mounted_.empty()) umount2(mounted_.c_str(), MNT_DETACH);
  mounted_.clear();
}

}  // namespace h5i::test
