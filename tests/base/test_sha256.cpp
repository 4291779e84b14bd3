#include "core/base/sha256.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/mman.h>

#include "core/base/text.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;

TEST_CASE("SHA-256 equals OpenSSL's EVP for every length around the block size") {
  std::string s;
  for (int n = 0; n < 300; n++) {
    unsigned char md[32];
    unsigned len = 0;
    EVP_Digest(s.data(), s.size(), md, &len, EVP_sha256(), nullptr);
    CHECK(sha256_hex(s) == hex(md, 32));
    Sha256 h;
    for (char c : s) h.update({&c, 1});
    Digest d = h.finish();
    CHECK(hex(d.data(), 32) == hex(md, 32));
    s += static_cast<char>(n * 7);
  }
}

TEST_CASE("HMAC equals OpenSSL's for short, block-sized and long keys") {
  for (size_t n : {0u, 1u, 63u, 64u, 65u, 200u}) {
    std::string key(n, 'k');
    unsigned char md[32];
    unsigned len = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(n), reinterpret_cast<const unsigned char*>("message"), 7, md, &len);
    Digest d = hmac_sha256(key, "message");
    CHECK(hex(d.data(), 32) == hex(md, 32));
  }
}

TEST_CASE("a file is hashed from its start whatever its offset") {
  int fd = memfd_create("t", MFD_CLOEXEC);
  REQUIRE(write(fd, "hello", 5) == 5);
  uint64_t size = 0;
  auto h = sha256_fd_hex(fd, &size);
  REQUIRE(h);
  CHECK(*h == sha256_hex("hello"));
  CHECK(size == 5);
  close(fd);
  CHECK_FALSE(sha256_fd_hex(fd));
}
