// A repository that is only folders, and boxes in it that the test wrote itself: runs can be tried without the git library
// and without a policy file. Owned by the user that runs them.
#pragma once
#include <dirent.h>
#include <unistd.h>

#include <functional>

#include "core/evidence/log.hpp"
#include "tests/cli/program.hpp"
#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"

namespace h5i::test {

constexpr uid_t kOther = 65533;  // an ordinary user without an account

// The users that this test can be: itself, and when it is root an ordinary one.
inline std::vector<uid_t> users() { return geteuid() == 0 ? std::vector<uid_t>{0, kOther} : std::vector<uid_t>{0}; }

inline void give(const std::string& path, uid_t uid) {
  if (uid == 0) return;
  for (const auto& e : std::filesystem::recursive_directory_iterator(path))
    if (lchown(e.path().c_str(), uid, uid) != 0) abort();
  if (lchown(path.c_str(), uid, uid) != 0) abort();
}

struct MadeBox {
  std::string tier = "process", slug = "fix";
  int wall = 60;                 // seconds
  std::string capture = "all";
  std::vector<std::string> tools;  // empty: any
  int cpu = 0;                   // seconds; 0: no limit
  std::vector<std::string> write, deny;  // besides the work tree
};

class RunWorld {
 public:
  explicit RunWorld(uid_t uid) : uid_(uid) {
    make_git_directory(s_ / "r/.git");
    std::filesystem::create_directories(s_ / "home");
    chmod(s_.path().c_str(), 0755);
    give(s_.path(), uid_);
  }
  uid_t uid() const { return uid_; }
  std::string operator/(const std::string& below) const { return s_ / below; }

  Program h5i(std::vector<std::string> words) const {
    words.insert(words.begin(), "h5i");
    return Program{.argv = std::move(words), .env = {{"HOME", s_ / "home"}}, .cwd = s_ / "r", .uid = uid_};
  }
  // h5i box run SLUG -- sh -c SCRIPT
  Program sh(const std::string& slug, const std::string& script) const { return h5i({"box", "run", slug, "--", "sh", "-c", script}); }

  session::BoxPaths box(const MadeBox& b) const {
    bool confined = b.tier != "workspace";
    std::vector<std::string> written = b.write;
    if (confined) written.insert(written.begin(), "$WORK");
    auto words = [](std::vector<std::string> list) {
      Json out = json::Array{};
      for (std::string& w : list) out.push(std::move(w));
      return out;
    };
    Json profile = json::Object{
        {"name", confined ? "default" : "workspace"},
        {"fs", json::Object{{"read", words(confined ? std::vector<std::string>{"/usr", "/bin", "/lib", "/lib64", "/etc"} : std::vector<std::string>{})},
                            {"write", words(written)},
                            {"deny", words(b.deny)},
                            {"private", json::Object{}},
                            {"optional", words({"/bin", "/lib", "/lib64"})}}},
        {"net", json::Object{{"mode", confined ? "deny" : "host"}, {"unix", !confined}}},
        {"resources", json::Object{{"mem", 4ll << 30}, {"procs", 256}, {"wall", b.wall}, {"output", 64 << 20}, {"explicit", json::Array{}}}},
        {"env", json::Object{{"pass", words({"PATH", "HOME", "LANG", "TERM"})}, {"set", json::Object{}}}}};
    if (!b.tools.empty()) profile["tools"] = words(b.tools);
    if (b.cpu > 0) profile["resources"]["cpu"] = b.cpu;
    Json policy = json::Object{{"schema", "h5i.policy/1"}, {"tier", b.tier}, {"audit", json::Object{{"capture", b.capture}}}, {"profile", profile}};
    session::Manifest m = some_manifest("human", b.slug);
    m.repo_git_dir = s_ / "r/.git";
    m.base_commit.clear();
    m.object_dirs.clear();
    m.placeholders.clear();
    m.profile = profile["name"].string();
    m.tier = b.tier;
    m.policy_digest = PolicyDigest(canonical_digest(policy));
    bool root = uid_ == 0 && geteuid() == 0;
    m.host_uid = m.host_gid = root ? 231072 : uid_ != 0 ? uid_ : geteuid();
    session::BoxPaths paths = make_box(s_ / "r/.git/h5i/boxes", m);
    write_file(paths.policy(), json::canonical(policy));
    for (const std::string& folder : {paths.work(), paths.spool(), paths.priv(), paths.blobs()}) {
      std::filesystem::create_directories(folder);
      chmod(folder.c_str(), 0700);
    }
    give(s_ / "r/.git/h5i", uid_);
    return paths;
  }

  std::vector<Json> records(const session::BoxPaths& paths, const std::string& kind) const {
    std::vector<Json> out;
    auto read = evidence::read_log(paths.log(), [&](uint64_t, const Json& r) {
      if (r["kind"].string() == kind) out.push_back(r);
      return true;
    });
    CHECK(read);
    return out;
  }

  // The body of the newest record of a kind; null when there is none.
  Json last(const session::BoxPaths& paths, const std::string& kind) const {
    auto all = records(paths, kind);
    CHECK_FALSE(all.empty());
    return all.empty() ? Json() : all.back()["body"];
  }

 private:
  Scratch s_;
  uid_t uid_;
};

// each(world, box): at both tiers, as every user that this test can be. The box is not made yet.
template <class Each>
void everywhere(Each each) {
  for (uid_t uid : users())
    for (const char* tier : {"workspace", "process"}) {
      CAPTURE(uid, tier);
      RunWorld w(uid);
      each(w, MadeBox{.tier = tier});
    }
}

// Processes whose command line holds `mark`, other than this one.
inline std::vector<pid_t> processes_with(const std::string& mark) {
  std::vector<pid_t> out;
  for (const auto& e : std::filesystem::directory_iterator("/proc")) {
    std::string name = e.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos || name == std::to_string(getpid())) continue;
    if (read_file("/proc/" + name + "/cmdline").find(mark) != std::string::npos) out.push_back(std::stoi(name));
  }
  return out;
}

inline bool soon(const std::function<bool()>& condition, int seconds = 20) {
  for (int i = 0; i < seconds * 100; i++) {
    if (condition()) return true;
    usleep(10000);
  }
  return condition();
}

inline Json one_json(const std::string& text) {
  auto v = json::parse(text);
  CAPTURE(text);
  REQUIRE(v);
  return *v;
}

}  // namespace h5i::test
