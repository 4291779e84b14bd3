// What targets share.
#pragma once
#include <cstdlib>
#include <string_view>

namespace h5i::test {

// What must hold of every input; otherwise the input is a find.
inline void want(bool holds) {
  if (!holds) std::abort();
}

// The text's first line, which is taken from it.
inline std::string_view line(std::string_view& text) {
  size_t end = text.find('\n');
  std::string_view first = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return first;
}

}  // namespace h5i::test
