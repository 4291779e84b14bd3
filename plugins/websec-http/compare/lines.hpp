// A unified difference of two texts, bounded.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

namespace h5i::websec {

struct DiffLimits {
  size_t bytes = 4u << 20;   // of each text
  size_t lines = 50'000;     // of each text, without what they begin and end with in common
  size_t edits = 1'000;      // lines that differ; beyond it they are too different to be laid side by side
  size_t context = 3;
};

struct DiffLine {
  char kind = ' ';        // ' ', '-', '+'
  std::string_view text;  // without its line break; of the texts that were given
};
struct Hunk {
  size_t a = 0, b = 0;  // its first line in each, from 1
  std::vector<DiffLine> lines;
};
struct LineDiff {
  enum class Kind { SAME, TEXT, BINARY, TOO_DIFFERENT };
  Kind kind = Kind::SAME;
  std::vector<Hunk> hunks;
};

// Text is UTF-8 without NUL. A line ends with LF; one that differs in its ending alone differs.
LineDiff diff_lines(std::string_view a, std::string_view b, const DiffLimits& limits = {});

}  // namespace h5i::websec
