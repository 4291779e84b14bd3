// What may be cloned from. Pure.
#pragma once
#include <string>

#include "core/base/result.hpp"

namespace h5i::git {

// Something that is meant as a URL: it has "://", the "::" of a remote helper, or the host:path form of ssh.
bool looks_like_url(const std::string& text);
// Allowed: https, ssh, git, file, and user@host:path. Refused with GIT_SOURCE: every remote helper (ext:: and its kind),
// other schemes, names that begin with '-' (also as host, user or path), control characters, an empty host or path.
Result<void> check_url(const std::string& url);
// A name for the box from the last component: "https://h/a/My.Repo.git" gives "my.repo". Empty when nothing is left.
std::string name_from(const std::string& url_or_path);

}  // namespace h5i::git
