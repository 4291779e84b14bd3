// The gate's rules on names, link targets and modes. Pure: each takes values and returns the id of the rule that is broken.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/gate/ignore.hpp"
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
// The name as any of those would compare it: lower case, ignored characters gone, cut at ':' and of trailing dots and spaces;
// the letters outside ASCII that fold to one inside it (a long s, a Kelvin sign, ligatures) are spelled out.
std::string folded_name(std::string_view name);
// The same for another name of git's own, such as ".gitmodules".
bool disguised(std::string_view name, std::string_view dot_name, std::string_view ntfs_short);

constexpr size_t kMaxName = 255, kMaxPath = 4096;

// One component of a path. `base_had`: the reviewed base holds the path already, so bytes that are no UTF-8, and characters
// that hide or reorder text, may stay.
std::optional<Violation> check_name(std::string_view name, const std::string& path, bool base_had);
// A whole relative path, as it comes from a tree object: absolute, "..", ".", empty components, length, and every name.
std::optional<Violation> check_path(const std::string& path, bool base_had);
// All paths of a tree that is about to be checked out.
std::vector<Violation> check_tree(const git::Tree& tree);

// Where a symbolic link leads. `TargetOf` returns the target of the link at a path of the tree, nothing for what is no
// link. Follows links as the kernel would: `d/..` is the parent of what d points to.
using TargetOf = std::function<std::optional<std::string>(const std::string& path)>;
enum class LinkLeads { INSIDE, OUTSIDE, GIT, LOOP };
struct LinkEnd {
  LinkLeads leads = LinkLeads::LOOP;
  std::string path;                  // of INSIDE: where it ends, with no link on the way; "" is the top
  std::vector<std::string> through;  // the other links on the way
};
// Components that all links of one tree may make us walk: a link may lead through forty others of two thousand each.
constexpr uint64_t kMaxLinkSteps = 10'000'000;
// `steps` counts down; at 0 the answer is LOOP.
LinkEnd follow_link(const std::string& link_path, const std::string& target, const TargetOf& target_of, uint64_t& steps);
LinkLeads resolve_link(const std::string& link_path, const std::string& target, const TargetOf& target_of);
std::optional<Violation> check_link(const std::string& path, const std::string& target, bool keep_links, const TargetOf& target_of, uint64_t& steps);
std::optional<Violation> check_link(const std::string& path, const std::string& target, bool keep_links, const TargetOf& target_of);

// Kind and mode bits of something found in the tree.
std::optional<Violation> check_mode(unsigned st_mode, const std::string& path);

struct Limits {
  uint64_t files = 500'000;            // paths in the result
  uint64_t bytes = 4ull << 30;         // content that is read
  uint64_t file_bytes = 512ull << 20;  // one file
  uint64_t depth = 128;                // directories
  // Work that patterns and links of the tree itself may cause; no setting, because no tree that people made comes near.
  uint64_t ignore_steps = kMaxIgnoreSteps, link_steps = kMaxLinkSteps;
};

}  // namespace h5i::gate
