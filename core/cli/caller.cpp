#include "core/cli/caller.hpp"

#include <unistd.h>

#include <climits>
#include <cstdlib>

namespace h5i::cli {

std::string environment(const char* name) {
  const char* value = ::getenv(name);
  return value ? value : "";
}

Result<std::string> current_directory() {
  char buffer[PATH_MAX];
  if (!::getcwd(buffer, sizeof buffer))
    return make_error(Errc::NOT_FOUND, "the current directory cannot be named", "it was removed, or its path is too long", "cd somewhere else");
  return std::string(buffer);
}

}  // namespace h5i::cli
