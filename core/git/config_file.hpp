// A repository's own configuration, read without following what it includes: the file is content of whoever made the
// repository, and `include.path` may name any file, or a fifo.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace h5i::git {

struct Setting {
  std::string name;   // "section.key" or "section.subsection.key"; section and key in lower case
  std::string value;  // "true" for a key without '='
};

constexpr uint64_t kMaxConfigFile = 1u << 20;

// git-config(1), "Syntax". `file` names it in the error: GIT_FAILED with the line.
Result<std::vector<Setting>> parse_config(std::string_view text, const std::string& file);
// <common_dir>/config; none when it is missing. GIT_UNSUPPORTED when it is a link or no regular file.
Result<std::vector<Setting>> read_config(const std::string& common_dir);
// The value that counts: the last one. Null when there is none.
const std::string* last_value(const std::vector<Setting>& settings, std::string_view name);

}  // namespace h5i::git
