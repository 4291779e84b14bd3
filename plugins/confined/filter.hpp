// The system-call filter: an allow-list compiled by libseccomp, behind a short hand-written head for the tests that
// libseccomp cannot express. Pure: the same options give the same bytes on every machine, so both architectures are
// generated and evaluated by the unit tests wherever they run. It runs when h5i is built; see baked.hpp.
#pragma once
#include <linux/filter.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "h5i/plugin.hpp"

namespace h5i::confined {

enum class Arch { X86_64, AARCH64 };
constexpr Arch native_arch() {
#if defined(__x86_64__)
  return Arch::X86_64;
#elif defined(__aarch64__)
  return Arch::AARCH64;
#else
#error "the process tier knows x86_64 and aarch64"
#endif
}
// As uname(2) says it.
constexpr std::string_view arch_name(Arch arch) { return arch == Arch::X86_64 ? "x86_64" : "aarch64"; }

struct FilterOptions {
  Arch arch = native_arch();
  bool unix_sockets = false;  // net.unix: socket(AF_UNIX); socketpair is always there
};

struct Filter {
  std::vector<sock_filter> program;
  // What a refused call answers, by number. A number that is not here is newer than the table, or an interface that
  // programs probe for: kDefaultErrno.
  std::map<uint32_t, int> errnos;

  std::string bytes() const;
};

inline constexpr int kDefaultErrno = 38;  // ENOSYS

sdk::Result<Filter> build_filter(const FilterOptions& options);

// For the tests: how a name is treated, and every name of the allow-list.
enum class Treatment { ALLOWED, BY_ARGUMENT, REFUSED };
Treatment treatment_of(std::string_view name);
std::vector<std::string_view> listed_names();

}  // namespace h5i::confined
