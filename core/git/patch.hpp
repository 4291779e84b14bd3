// Unified patches that `git apply --index` takes: full object ids, modes, binary files. Renames are a removal and an
// addition. Built from bytes, so that no attribute or configuration decides what is text.
#pragma once
#include <functional>
#include <string>

#include "core/git/repository.hpp"

namespace h5i::git {

struct FilePatch {
  std::string text;   // header and hunks, or a binary patch
  uint64_t added = 0, removed = 0;  // lines; 0 for binary
  bool binary = false;
};
// Content of one side. A gitlink's is "Subproject commit <id>\n", absent is "".
using ReadContent = std::function<Result<std::string>(uint32_t mode, const Oid& id, const std::string& path)>;

// `full_binary`: with the compressed bytes of both sides, so that it can be applied; else "Binary files differ".
Result<FilePatch> patch_of(const Change& change, const std::string& before, const std::string& after, bool full_binary);
// A path as git writes it: in double quotes with C escapes when it holds control characters, quotes, backslashes or
// bytes beyond ASCII.
std::string quoted_path(const std::string& path);
std::string base85(std::string_view bytes);

}  // namespace h5i::git
