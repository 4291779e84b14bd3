// The known word that a mistyped one most likely means.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace h5i::policy {

// By edit distance (one insertion, deletion, change or swap of neighbours each cost one); empty when nothing is near:
// more than two edits, or more than half of the word.
std::string nearest(std::string_view word, const std::vector<std::string_view>& known);

// "a, b, c"
std::string joined(const std::vector<std::string_view>& words);

}  // namespace h5i::policy
