#include "core/git/object.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "core/base/text.hpp"

namespace h5i::git {

std::string Oid::hex() const { return h5i::hex(raw.data(), raw.size()); }

std::optional<Oid> Oid::from_hex(std::string_view text) {
  std::string bytes;
  if (text.size() != 40 || !unhex(text, &bytes)) return std::nullopt;
  Oid out;
  std::copy(bytes.begin(), bytes.end(), out.raw.begin());
  return out;
}

uint32_t plain_mode(uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return mode & 0100 ? kExecutable : kFile;
    case S_IFLNK: return kLink;
    case 0160000: return kGitlink;
    default: return mode;
  }
}

const Entry* find_entry(const Tree& tree, std::string_view path) {
  auto it = std::lower_bound(tree.begin(), tree.end(), path, [](const Entry& e, std::string_view p) { return e.path < p; });
  return it != tree.end() && it->path == path ? &*it : nullptr;
}

bool has_below(const Tree& tree, std::string_view directory) {
  std::string prefix = std::string(directory) + "/";
  auto it = std::lower_bound(tree.begin(), tree.end(), prefix, [](const Entry& e, const std::string& p) { return e.path < p; });
  return it != tree.end() && it->path.compare(0, prefix.size(), prefix) == 0;
}

std::string_view change_name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::ADDED: return "added";
    case ChangeKind::MODIFIED: return "modified";
    case ChangeKind::DELETED: return "deleted";
    case ChangeKind::MODE: return "mode";
    case ChangeKind::TYPE: return "type";
  }
  return "modified";
}

std::vector<Change> changes_between(const Tree& before, const Tree& after) {
  std::vector<Change> out;
  auto a = before.begin(), b = after.begin();
  while (a != before.end() || b != after.end()) {
    if (b == after.end() || (a != before.end() && a->path < b->path)) {
      out.push_back({ChangeKind::DELETED, a->path, plain_mode(a->mode), 0, a->oid, {}});
      ++a;
    } else if (a == before.end() || b->path < a->path) {
      out.push_back({ChangeKind::ADDED, b->path, 0, plain_mode(b->mode), {}, b->oid});
      ++b;
    } else {
      uint32_t was = plain_mode(a->mode), is = plain_mode(b->mode);
      if (was != is || a->oid != b->oid) {
        ChangeKind kind = (was & S_IFMT) != (is & S_IFMT) ? ChangeKind::TYPE
                          : a->oid != b->oid              ? ChangeKind::MODIFIED
                                                          : ChangeKind::MODE;
        out.push_back({kind, a->path, was, is, a->oid, b->oid});
      }
      ++a;
      ++b;
    }
  }
  return out;
}

}  // namespace h5i::git
