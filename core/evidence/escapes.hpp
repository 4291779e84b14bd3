// Ways to spell a byte as something else, read one at a time.
#pragma once
#include <cstddef>
#include <string_view>

namespace h5i::evidence {

struct Escape {
  size_t length = 0;        // of its spelling; 0: none begins here
  char bytes[4] = {};       // what it stands for
  size_t size = 0;          // how many of them; a terminal sequence stands for nothing
  bool incomplete = false;  // the text ends inside what may be one
};

// %41
Escape percent_escape(std::string_view t, size_t i);
// \n \" \/ \u0041 \ud83d\ude00 \x41: JSON, and C as Python and shells print it
Escape backslash_escape(std::string_view t, size_t i);
// ESC [ 0 ; 3 1 m and its kind (CSI, ECMA-48), at most 32 bytes. Strings such as a title are text, not dropped.
Escape terminal_sequence(std::string_view t, size_t i);
// Only those that colour or erase, as tools print them inside words. Their last letter begins no credential, so that
// taking such a sequence out cannot take the beginning of one with it.
Escape colour_sequence(std::string_view t, size_t i);
// The zero byte at t[i] is half a character of UTF-16: it stands alone beside printable ASCII.
bool between_ascii(std::string_view t, size_t i);

}  // namespace h5i::evidence
