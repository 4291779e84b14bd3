// Object ids and flat trees: the values that the git and gate rooms exchange. Nothing of libgit2 shows here.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace h5i::git {

struct Oid {
  std::array<unsigned char, 20> raw{};
  auto operator<=>(const Oid&) const = default;
  std::string hex() const;  // 40 lower-case digits
  static std::optional<Oid> from_hex(std::string_view text);
};

constexpr uint32_t kFile = 0100644, kExecutable = 0100755, kLink = 0120000, kGitlink = 0160000, kDirectory = 040000;

struct Entry {
  std::string path;  // relative, '/' between components
  uint32_t mode = 0;  // as the tree object has it; old repositories hold 0100664 and the like
  Oid oid;
  auto operator<=>(const Entry&) const = default;
};
// kFile, kExecutable, kLink or kGitlink.
uint32_t plain_mode(uint32_t mode);

// All files, links and gitlinks below one tree, sorted by the bytes of their paths, each path once.
using Tree = std::vector<Entry>;
const Entry* find_entry(const Tree& tree, std::string_view path);
// True when some entry lies below `directory` (without a slash at its end).
bool has_below(const Tree& tree, std::string_view directory);

enum class ChangeKind { ADDED, MODIFIED, DELETED, MODE, TYPE };
std::string_view change_name(ChangeKind kind);  // "added" ...
struct Change {
  ChangeKind kind = ChangeKind::MODIFIED;
  std::string path;
  uint32_t old_mode = 0, new_mode = 0;  // plain modes; 0: absent
  Oid old_oid, new_oid;
};
std::vector<Change> changes_between(const Tree& before, const Tree& after);

}  // namespace h5i::git
