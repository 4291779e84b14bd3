#include "core/os/landlock.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace h5i::os::landlock {

static_assert(sizeof(RulesetAttr) == 24 && sizeof(PathBeneath) == 12 && sizeof(NetPort) == 16);

int abi() {
  constexpr unsigned kVersion = 1;
  long v = syscall(SYS_landlock_create_ruleset, nullptr, 0, kVersion);
  return v < 0 ? 0 : static_cast<int>(v);
}

}  // namespace h5i::os::landlock
