// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104) on OpenSSL's static archive, so that the run path loads no libcrypto.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.hpp"

namespace h5i {

using Digest = std::array<unsigned char, 32>;

class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  Digest finish();  // once

 private:
  alignas(8) unsigned char ctx_[128];
};

Digest sha256(std::string_view bytes);
std::string sha256_hex(std::string_view bytes);
Digest hmac_sha256(std::string_view key, std::string_view bytes);
// Hashes the whole file behind `fd` with pread from offset 0; the file offset is not moved. Size in bytes to `size`.
Result<std::string> sha256_fd_hex(int fd, uint64_t* size = nullptr);

}  // namespace h5i
