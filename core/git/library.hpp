// libgit2, set up once for this process: nothing is searched outside what it is given, objects are checked.
#pragma once
#include "core/base/result.hpp"

namespace h5i::git {

// Every entry of this room calls it; cheap after the first time.
Result<void> ready();
// The library's last message as evidence.
Error library_error(Errc code, std::string what);

}  // namespace h5i::git
