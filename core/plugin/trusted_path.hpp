// Opening files that only root or the invoking user can have written: every directory from / on is looked at through
// its own descriptor, so what was checked is what is opened.
#pragma once
#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::plugin {

// Whose files are believed: root's, and the invoking user's when that is not root.
struct Believed {
  uid_t euid = 0;
  bool owner(uid_t uid) const { return uid == 0 || uid == euid; }
};

// Opens an absolute directory (O_RDONLY). Every component belongs to a believed owner and nobody else may write it; a
// sticky one that others may write is accepted on the way (never as the last) when the next component is a believed
// owner's. A symbolic link in such a directory is followed when it is a believed owner's too.
// NOT_FOUND when it does not exist, PLUGIN_OWNER naming the component otherwise.
Result<UniqueFd> open_trusted_directory(const std::string& path, Believed believed);

// Opens a regular file in such a directory for reading: no link, a believed owner, not writable by others.
// `path` is for the message. NOT_FOUND, PLUGIN_OWNER.
Result<UniqueFd> open_trusted_file(const UniqueFd& directory, const std::string& name, const std::string& path,
                                   Believed believed);

// At most `limit` bytes; one more is TOO_LARGE.
Result<std::string> read_all(const UniqueFd& fd, size_t limit, std::string_view what);

}  // namespace h5i::plugin
