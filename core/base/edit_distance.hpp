// How far two words are from each other.
#pragma once
#include <cstddef>
#include <string_view>

namespace h5i {

// Restricted Damerau-Levenshtein: an insertion, a deletion, a change and a swap of neighbours, the commonest slip, each
// count once. Quadratic: bound what a stranger wrote first.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace h5i
