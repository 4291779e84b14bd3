#include <fcntl.h>
#include <sys/stat.h>

#include "core/plugin/trusted_path.hpp"
#include "tests/plugin/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::plugin;
using test::Scratch;

namespace {
const Believed kMe{geteuid()};
// Somebody who does not own what this test makes; root's files stay believed.
const Believed kOther{geteuid() + 4242};

Errc code(const Result<UniqueFd>& r) { return r ? Errc::OK : r.error().code; }
}  // namespace

TEST_CASE("a directory below a sticky world-writable one is trusted when it is the user's") {
  Scratch s;
  CHECK(code(open_trusted_directory(s.plugins(), kMe)) == Errc::OK);
  CHECK(code(open_trusted_directory(s.plugins() + "/../1/./", kMe)) == Errc::OK);
}

TEST_CASE("a directory that others may write is refused, at the end and on the way") {
  Scratch s;
  std::string middle = s.path() + "/lib/h5i";
  for (mode_t mode : {0777, 0775, 0772}) {
    chmod(s.plugins().c_str(), mode);
    auto last = open_trusted_directory(s.plugins(), kMe);
    REQUIRE(code(last) == Errc::PLUGIN_OWNER);
    CHECK(last.error().what.find(s.plugins()) == 0);
    chmod(s.plugins().c_str(), 0755);
    chmod(middle.c_str(), mode);
    auto way = open_trusted_directory(s.plugins(), kMe);
    REQUIRE(code(way) == Errc::PLUGIN_OWNER);
    CHECK(way.error().what.find(middle + " ") == 0);
    chmod(middle.c_str(), 0755);
  }
  CHECK(code(open_trusted_directory(s.plugins(), kMe)) == Errc::OK);
}

TEST_CASE("a sticky directory that others may write is no place for plugins itself") {
  Scratch s;
  chmod(s.plugins().c_str(), 01777);
  CHECK(code(open_trusted_directory(s.plugins(), kMe)) == Errc::PLUGIN_OWNER);
}

TEST_CASE("a directory of somebody else is refused, and the component is named") {
  Scratch s;
  auto r = open_trusted_directory(s.plugins(), kOther);
  if (geteuid() == 0) {  // root's are everybody's to believe
    CHECK(code(r) == Errc::OK);
    REQUIRE(chown((s.path() + "/lib").c_str(), 4242, 4242) == 0);
    r = open_trusted_directory(s.plugins(), kMe);
    REQUIRE(code(r) == Errc::PLUGIN_OWNER);
    CHECK(r.error().what.find(s.path() + "/lib ") == 0);
  } else {
    REQUIRE(code(r) == Errc::PLUGIN_OWNER);
    CHECK(r.error().what.find(s.path()) == 0);
  }
}

TEST_CASE("a link in a trusted directory is followed, one below a directory that others may write is not") {
  Scratch s;
  std::string link = s.path() + "/here";
  REQUIRE(symlink("lib/h5i", link.c_str()) == 0);
  CHECK(code(open_trusted_directory(link + "/plugins/1", kMe)) == Errc::OK);
  std::string open_dir = s.path() + "/open";
  REQUIRE(mkdir(open_dir.c_str(), 0755) == 0);
  chmod(open_dir.c_str(), 0777);
  REQUIRE(symlink("../lib/h5i", (open_dir + "/there").c_str()) == 0);
  CHECK(code(open_trusted_directory(open_dir + "/there/plugins/1", kMe)) == Errc::PLUGIN_OWNER);
  REQUIRE(symlink("loop", (s.path() + "/loop").c_str()) == 0);
  CHECK(code(open_trusted_directory(s.path() + "/loop", kMe)) == Errc::PLUGIN_OWNER);
}

TEST_CASE("relative, missing and plain-file paths are told apart") {
  Scratch s;
  CHECK(code(open_trusted_directory("lib", kMe)) == Errc::PLUGIN_OWNER);
  CHECK(code(open_trusted_directory(s.path() + "/absent", kMe)) == Errc::NOT_FOUND);
  test::write_file(s.path() + "/file", "x");
  CHECK(code(open_trusted_directory(s.path() + "/file", kMe)) == Errc::PLUGIN_OWNER);
}

TEST_CASE("a file is opened only when it is plain, the user's, and nobody else's to write") {
  Scratch s;
  auto dir = open_trusted_directory(s.plugins(), kMe);
  REQUIRE(dir);
  auto open_it = [&](const char* name, Believed who = kMe) {
    return open_trusted_file(*dir, name, s.plugins() + "/" + name, who);
  };
  std::string file = s.plugins() + "/a";
  test::write_file(file, "bytes");
  chmod(file.c_str(), 0644);
  auto good = open_it("a");
  REQUIRE(code(good) == Errc::OK);
  CHECK(*read_all(*good, 5, "a") == "bytes");
  CHECK(read_all(*good, 4, "a").error().code == Errc::TOO_LARGE);
  for (mode_t mode : {0664, 0646, 0666}) {
    chmod(file.c_str(), mode);
    CHECK(code(open_it("a")) == Errc::PLUGIN_OWNER);
  }
  chmod(file.c_str(), 0644);
  REQUIRE(symlink("a", (s.plugins() + "/link").c_str()) == 0);
  CHECK(code(open_it("link")) == Errc::PLUGIN_OWNER);
  REQUIRE(mkfifo((s.plugins() + "/fifo").c_str(), 0644) == 0);
  CHECK(code(open_it("fifo")) == Errc::PLUGIN_OWNER);
  CHECK(code(open_it("absent")) == Errc::NOT_FOUND);
  if (geteuid() != 0) CHECK(code(open_it("a", kOther)) == Errc::PLUGIN_OWNER);
  if (geteuid() == 0) {
    REQUIRE(chown(file.c_str(), 4242, 4242) == 0);
    CHECK(code(open_it("a")) == Errc::PLUGIN_OWNER);
  }
}
