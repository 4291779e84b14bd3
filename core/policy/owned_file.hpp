// Files of the host's owner: read only when nobody else could have written them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.hpp"

namespace h5i::policy {

// nullopt when there is no such file. POLICY_HOST_FILE unless it is a regular file of root or `uid`, not a symbolic link,
// not writable by group or others, in a directory of which the same holds, as of those above it (a sticky one may be writable).
Result<std::optional<std::string>> read_owned_file(const std::string& path, uint32_t uid, uint64_t limit);

}  // namespace h5i::policy
