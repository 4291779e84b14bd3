// Page text for a reader that could take it for somebody's word: a person at a terminal, or a model.
#pragma once
#include <string>
#include <string_view>

#include "plugins/websec-http/text/show.hpp"

namespace h5i::websec {

struct Fence {
  std::string_view origin;  // whose text it is, shown too
  std::string_view key;     // letters and digits drawn for this one fence, which the page cannot have known
  bool for_model = false;
  size_t cap = 16 * 1024;   // bytes of page text
};

// Two lines around it, with the origin, how much is shown and what was changed; each line of the page begins with "| ".
std::string fenced(std::string_view page, const Fence& fence);

}  // namespace h5i::websec
