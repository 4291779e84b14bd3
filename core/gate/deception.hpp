// Text of a patch that reads differently than it acts, for a person to be warned of.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace h5i::gate {

// Lines whose text may read differently than it is: reordering or invisible characters, letters of two scripts in a word,
// a carriage return inside a line. Numbers from 1, at most `limit`.
struct Deception {
  uint64_t line = 0;
  std::string what;
};
std::vector<Deception> deceptions(std::string_view text, size_t limit = 20);

// What of `.gitmodules` would act on the reader's side: an update command, URLs that are options or helpers, paths that
// leave. Lines for a person.
std::vector<std::string> submodule_warnings(std::string_view gitmodules);

}  // namespace h5i::gate
