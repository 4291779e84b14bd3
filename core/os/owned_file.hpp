// Files of the host's owner: read only when nobody else could have written them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.hpp"

namespace h5i::os {

// nullopt when there is no such file. `refusal` unless it is a regular file of root or `uid`, not a symbolic link, not
// writable by group or others, in a directory of which the same holds, as of those above it (a sticky one may be writable).
Result<std::optional<std::string>> read_owned_file(const std::string& path, uint32_t uid, uint64_t limit, Errc refusal);

// The same of a directory. `refusal` as above; a missing one is a system error.
Result<void> check_owned_directory(const std::string& path, uint32_t uid, Errc refusal);

}  // namespace h5i::os
