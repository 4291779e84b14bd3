// The file in which git packs refs. The library would leave its lock behind when we are killed over it, and nobody could tell
// whose it was; so refs are taken out of it here, under a lock that says that it is ours and shows whether its owner lives.
#pragma once
#include <string>

#include "core/base/result.hpp"

namespace h5i::git {

// Every other byte of the file stays. Fine when `ref` is not in it. BUSY: another program held the lock for a second.
Result<void> remove_packed_ref(const std::string& common_dir, const std::string& ref);
// The lock, and a new file under another name, of an h5i that was killed.
void clear_dead_packed_lock(const std::string& common_dir);

}  // namespace h5i::git
