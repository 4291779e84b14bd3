// The filters of this build, compiled once at build time: libseccomp needs about three milliseconds for one, as long as
// everything else of a start together. The unit tests compile them again and compare.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "filter.hpp"

namespace h5i::confined {

struct BakedErrno {
  uint32_t number;
  int value;
};
struct BakedFilter {
  Arch arch;
  bool unix_sockets;
  std::string_view program_base64;
  std::string_view sha256;
  const BakedErrno* errnos;
  uint32_t errno_count;
};

// Every combination exists.
const BakedFilter& baked_filter(Arch arch, bool unix_sockets);

}  // namespace h5i::confined
