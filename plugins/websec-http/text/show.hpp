// Bytes that an origin wrote, for a person to look at.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace h5i::websec {

// What may not be shown as it is: controls (C0, C1, DEL), characters that change direction, have no shape or carry hidden text (tags,
// variation selectors), private ones and those that are none.
bool deceptive_character(uint32_t c);
bool combining_mark(uint32_t c);

struct ShowRules {
  bool lines = false;          // LF ends a line and a tab is spaces; otherwise both are escapes too
  bool drop_invisible = false; // for a model: what has no shape is left out rather than spelled, since it can read the spelling
  bool html = false;           // & < > " ' as entities
  size_t cap = 4096;           // bytes of output; what does not fit is left out as a whole character or escape
};

struct Shown {
  std::string text;     // UTF-8
  size_t used = 0;      // bytes of the input that are shown
  size_t escaped = 0;   // characters and bytes that are escapes
  size_t dropped = 0;   // characters that were left out
  bool cut = false;     // the cap was met
};
Shown show(std::string_view raw, const ShowRules& rules = {});

// One field in its place in a line of ours; ends with "..." when it was cut.
std::string show_field(std::string_view raw, size_t cap = 200);

}  // namespace h5i::websec
