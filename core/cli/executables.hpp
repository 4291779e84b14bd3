// The executables of one installation, found from where this one lies and from nothing else (never $PATH).
#pragma once
#include <string>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::cli {

// The folder above bin/ or libexec/h5i/ of the running executable; works alike for a build tree, a prefix and /usr.
Result<std::string> install_prefix();
// PREFIX/bin/h5i for "h5i", else PREFIX/libexec/h5i/<name>.
Result<std::string> executable_path(const std::string& name);
bool executable_present(const std::string& name);
// Opened and checked: a regular file, executable, of root or of this executable's owner, writable by nobody else.
Result<UniqueFd> open_executable(const std::string& name);
// Replaces this process; argv and environment unchanged. Returns only when it failed.
Error exec_executable(const std::string& name, char** argv);

}  // namespace h5i::cli
