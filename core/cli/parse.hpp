// The pure half of the command line: words against a table, and the texts that are made from the same table.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/cli/command.hpp"

namespace h5i::cli {

// The switches that every verb has.
const std::vector<Option>& common_options();
// `words` are those after the verb. USAGE names the word, the nearest known option and the verb's --help.
Result<Parsed> parse_words(const Command& command, const std::vector<std::string>& words);
// The nearest of `known` to `word` by edit distance, "" when none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

std::string help_of(const Command& command);
std::string help_of_noun(const std::string& noun, const std::vector<const Command*>& verbs);
std::string help_of_all(const std::vector<const Command*>& verbs);

}  // namespace h5i::cli
