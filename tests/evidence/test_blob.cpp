#include <sys/stat.h>

#include "core/base/sha256.hpp"
#include "core/evidence/log.hpp"
#include "tests/evidence/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::evidence;
using namespace h5i::test;

TEST_CASE("a payload is stored once, privately, and read back by its digest") {
  Scratch s;
  std::string bytes("binary\0payload\xff", 15);
  auto ref = put_blob(s.path("blobs"), bytes);
  REQUIRE(ref.ok());
  CHECK(ref->sha256 == sha256_hex(bytes));
  CHECK(ref->size == 15);
  std::string file = s.path("blobs/" + ref->sha256.substr(0, 2) + "/" + ref->sha256.substr(2));
  struct stat st {};
  REQUIRE(stat(file.c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  ino_t first = st.st_ino;
  REQUIRE(put_blob(s.path("blobs"), bytes).ok());
  REQUIRE(stat(file.c_str(), &st) == 0);
  CHECK(st.st_ino == first);
  CHECK(*get_blob(s.path("blobs"), ref->sha256, 15) == bytes);
  CHECK(get_blob(s.path("blobs"), ref->sha256, 14).error().code == Errc::TOO_LARGE);
  CHECK(get_blob(s.path("blobs"), sha256_hex("other"), 100).error().code == Errc::NOT_FOUND);
  CHECK(put_blob(s.path("blobs"), "")->size == 0);
}

TEST_CASE("a payload that was changed is not handed out") {
  Scratch s;
  auto ref = put_blob(s.path("blobs"), "what was seen");
  REQUIRE(ref.ok());
  std::string file = s.path("blobs/" + ref->sha256.substr(0, 2) + "/" + ref->sha256.substr(2));
  spill(file, "what was faked");
  CHECK(get_blob(s.path("blobs"), ref->sha256, 100).error().code == Errc::CORRUPT);
  REQUIRE(put_blob(s.path("blobs"), "what was seen").ok());
  CHECK(get_blob(s.path("blobs"), ref->sha256, 100).ok());
}

TEST_CASE("only a digest names a payload") {
  Scratch s;
  REQUIRE(put_blob(s.path("blobs"), "x").ok());
  spill(s.path("secret"), "x");
  for (std::string name : {std::string("../secret"), std::string(""), std::string(64, 'Z'), std::string(63, 'a'),
                           std::string(64, 'A'), "aa/" + std::string(61, 'a')})
    CHECK(get_blob(s.path("blobs"), name, 100).error().code == Errc::INVALID);
  std::string d = sha256_hex("x");
  std::filesystem::remove(s.path("blobs/" + d.substr(0, 2) + "/" + d.substr(2)));
  std::filesystem::create_symlink(s.path("secret"), s.path("blobs/" + d.substr(0, 2) + "/" + d.substr(2)));
  CHECK_FALSE(get_blob(s.path("blobs"), d, 100).ok());
}
