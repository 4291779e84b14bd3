// The gate's rules on names, link targets and modes. Pure: each takes values and returns the id of the rule that is broken.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/git/object.hpp"

namespace h5i::gate {

// One path that may not leave, and why.
struct Violation {
  Errc rule = Errc::GATE_PATH;
  std::string path;    // relative to $WORK, raw bytes
  std::string detail;  // for a person, printable
};

// True for every name that some file system or program takes for `.git`: any case; trailing dots and spaces and alternate
// data streams (NTFS); git~1 (its short name); characters that HFS+ ignores; and any of these as a part of a name with
// backslashes, which Windows reads as a path.
bool disguised_git(std::string_view name);
// The same for another name of git's own, such as ".gitmodules".
bool disguised(std::string_view name, std::string_view dot_name, std::string_view ntfs_short);

constexpr size_t kMaxName = 255, kMaxPath = 4096;

// One component of a path. `base_had`: the reviewed base holds the path already, so bytes that are no UTF-8 may stay.
std::optional<Violation> check_name(std::string_view name, const std::string& path, bool base_had);
// A whole relative path, as it comes from a tree object: absolute, "..", ".", empty components, length, and every name.
std::optional<Violation> check_path(const std::string& path, bool base_had);
// All paths of a tree that is about to be checked out.
std::vector<Violation> check_tree(const git::Tree& tree);

// Where a symbolic link leads. `target_of` returns the target of the link at a path of the tree, nothing for what is no
// link. Follows links as the kernel would: `d/..` is the parent of what d points to.
enum class LinkLeads { INSIDE, OUTSIDE, GIT, LOOP };
LinkLeads resolve_link(const std::string& link_path, const std::string& target,
                       const std::function<std::optional<std::string>(const std::string& path)>& target_of);
std::optional<Violation> check_link(const std::string& path, const std::string& target, bool keep_links,
                                    const std::function<std::optional<std::string>(const std::string& path)>& target_of);

// Kind and mode bits of something found in the tree.
std::optional<Violation> check_mode(unsigned st_mode, const std::string& path);

struct Limits {
  uint64_t files = 500'000;            // paths in the result
  uint64_t bytes = 4ull << 30;         // content that is read
  uint64_t file_bytes = 512ull << 20;  // one file
  uint64_t depth = 128;                // directories
};

}  // namespace h5i::gate
