// The host's own egress list, ~/.config/h5i/egress-allow: one rule a line, `#` begins a comment.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/policy/egress.hpp"

namespace h5i::policy {

// POLICY_EGRESS names file and line.
Result<std::vector<EgressRule>> parse_allow_list(std::string_view bytes, const std::string& name);
// The file's canonical text: a comment, then sorted rules. A rule into private ranges by name is written `NAME private`.
std::string allow_list_text(std::vector<EgressRule> rules);
// One line of the file, without its newline: RULE, or RULE and the word `private`.
Result<EgressRule> parse_allow_entry(std::string_view line);
std::string allow_entry_text(const EgressRule& rule);

// What a run may reach: the profile's rules, and the host's when the profile has at least one itself. A profile that
// denies all (no rule) is never widened.
struct MergedEgress {
  std::vector<EgressRule> rules;   // sorted
  std::vector<EgressRule> added;   // the host's that the profile did not cover; for receipt and effective digest
  bool ignored = false;            // there were host rules and the profile has none
};
MergedEgress merge_allow_list(const std::vector<EgressRule>& profile, const std::vector<EgressRule>& host);

// A missing file is an empty list. Must be a regular file of root or `uid`, not writable by others (POLICY_HOST_FILE).
Result<std::vector<EgressRule>> load_allow_list(const std::string& file, uint32_t uid);
// Makes the list's directory (0700), and the one above, when they are missing.
Result<void> make_allow_directory(const std::string& file);
// Writes a temporary file beside it (0600), flushes, renames.
Result<void> save_allow_list(const std::string& file, const std::vector<EgressRule>& rules);

}  // namespace h5i::policy
