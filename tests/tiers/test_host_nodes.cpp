#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "host_nodes.hpp"
#include "tests/tiers/sample_request.hpp"

using namespace h5i;
using confined::Placeholders;

namespace {

struct Scratch {
  Scratch() { REQUIRE(mkdtemp(name) != nullptr); }
  ~Scratch() { confined::remove_tree(name); }
  std::string at(const std::string& path) const { return std::string(name) + "/" + path; }
  void dir(const std::string& path, mode_t mode = 0755) const { REQUIRE(mkdir(at(path).c_str(), mode) == 0); }
  void file(const std::string& path, const std::string& text = "x") const { std::ofstream(at(path)) << text; }
  bool exists(const std::string& path) const {
    struct stat s;
    return lstat(at(path).c_str(), &s) == 0;
  }
  char name[32] = "/tmp/h5i-nodes-XXXXXX";
};

}  // namespace

TEST_CASE("remove_tree takes a link for a name, never for a way") {
  Scratch s;
  s.dir("kept");
  s.file("kept/file");
  s.dir("gone");
  s.dir("gone/sub");
  s.file("gone/sub/f");
  REQUIRE(symlink(s.at("kept").c_str(), s.at("gone/link").c_str()) == 0);
  REQUIRE(symlink(s.at("kept").c_str(), s.at("link").c_str()) == 0);
  CHECK(confined::remove_tree(s.at("gone")) == 0);
  CHECK_FALSE(s.exists("gone"));
  CHECK(confined::remove_tree(s.at("link")) == 0);
  CHECK_FALSE(s.exists("link"));
  CHECK(s.exists("kept/file"));
  CHECK(confined::remove_tree(s.at("never")) == 0);
}

TEST_CASE("remove_tree removes what took its own permissions away") {
  Scratch s;
  s.dir("locked");
  s.dir("locked/in");
  s.file("locked/in/f");
  chmod(s.at("locked/in").c_str(), 0);
  chmod(s.at("locked").c_str(), 0);
  CHECK(confined::remove_tree(s.at("locked")) == 0);
  CHECK_FALSE(s.exists("locked"));
}

TEST_CASE("placeholders are there for a time, and only what is still empty goes") {
  Scratch s;
  s.dir("w");
  {
    auto held = Placeholders::make(
        {{s.at("w"), "a", true}, {s.at("w"), "a/key", false}, {s.at("w"), "b", true}, {s.at("w"), "c", false}});
    REQUIRE(held.ok());
    CHECK(s.exists("w/a/key"));
    CHECK(s.exists("w/b"));
    s.file("w/b/used");
    s.file("w/c", "content");
  }
  CHECK_FALSE(s.exists("w/a"));
  CHECK(s.exists("w/b/used"));
  CHECK(s.exists("w/c"));
}

TEST_CASE("a placeholder that was there before stays") {
  Scratch s;
  s.dir("w");
  s.file("w/key", "");
  { REQUIRE(Placeholders::make({{s.at("w"), "key", false}}).ok()); }
  CHECK(s.exists("w/key"));
}

TEST_CASE("a placeholder is never made through a link") {
  Scratch s;
  s.dir("w");
  s.dir("outside");
  REQUIRE(symlink(s.at("outside").c_str(), s.at("w/a").c_str()) == 0);
  CHECK_FALSE(Placeholders::make({{s.at("w"), "a/key", false}}).ok());
  CHECK_FALSE(s.exists("outside/key"));
}

TEST_CASE("a scratch directory is emptied, a cache is kept") {
  Scratch s;
  confined::Request r;
  r.private_root = s.at("private");
  r.private_dirs = {{"node_modules", false}, {"a/.venv", true}};
  REQUIRE(confined::prepare_private_dirs(r).ok());
  s.file("private/cache/node_modules/f");
  s.file("private/scratch/a%2f.venv/f");
  REQUIRE(confined::prepare_private_dirs(r).ok());
  CHECK(s.exists("private/cache/node_modules/f"));
  CHECK(s.exists("private/scratch/a%2f.venv"));
  CHECK_FALSE(s.exists("private/scratch/a%2f.venv/f"));
  struct stat st;
  REQUIRE(stat(s.at("private").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0700);
}
