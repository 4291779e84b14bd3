// A part of a text that must not be shown, as the matchers of redaction report it.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace h5i::evidence {

// How the bytes that follow a sighting belong to it, when the text ended inside: decided again by what comes next.
enum class Swallow : unsigned char { NONE, TOKEN, PEM };

struct Sighting {
  size_t context = 0;  // where the evidence for it begins: the keyword before a value
  size_t begin = 0, end = 0;
  const char* rule = "";
  Swallow after = Swallow::NONE;
  unsigned char token_class = 0;  // with TOKEN: the characters that still belong to it
  bool continued = false;         // the marker for it was written before
};

struct Sightings {
  std::vector<Sighting> found;
  // The text's size when nothing is undecided; else from `look_again` on it is looked at again with what follows, and
  // from `hold` on nothing may be shown before that. They differ by what is evidence but not secret: `token=` alone is
  // shown at once, so that a prompt is never held back.
  size_t look_again = 0, hold = 0;
};

}  // namespace h5i::evidence
