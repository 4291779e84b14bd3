// Paths of a profile: expansion of ~, $REPO and $WORK, one lexical form, and which may be granted at all.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace h5i::policy {

struct PathRoots {
  std::string home;  // absolute; empty: unset
  std::string repo;
  std::vector<std::string> own;  // h5i's directories as this user has them: never granted
};

// Absolute and normal (no "//", ".", trailing "/"), or "$WORK" or "$WORK/...": $WORK stays until the run. Refuses
// (POLICY_PATH) "..", relative paths, other variables, other users' homes, globs, control characters, unset roots.
Result<std::string> expand_path(std::string_view written, const PathRoots& roots);

// A path relative to $WORK for fs.private: normal, not ".git", no "..", not absolute. POLICY_PATH.
Result<std::string> private_path(std::string_view written);

// `path` is `parent` or lies beneath it; both expanded.
bool beneath(std::string_view path, std::string_view parent);

// What the box has of its own at every confining tier (/proc, /tmp, /dev and its ordinary nodes): never bound from the host.
bool box_has_its_own(std::string_view path);

// Why `path` may never be granted ("/", /sys, parts of /proc and /dev, h5i's own directories); empty when it may.
std::string never_granted(std::string_view path, const PathRoots& roots);

// Where people keep credentials, relative to the home directory: granted only by name of the host's owner, and denied
// when a grant of a repository's profile lies above.
extern const std::vector<std::string_view> kCredentialPaths;

}  // namespace h5i::policy
