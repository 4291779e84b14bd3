// What credentials look like. Hand-written scanners, each with a bound on how far it looks, so that any text takes
// linear time; no expression engine that backtracks.
#pragma once
#include <string_view>

#include "core/evidence/sighting.hpp"

namespace h5i::evidence {

// Where the text stands among what went before.
struct PatternState {
  char before = 0;                  // the character before the text; 0: a boundary
  Swallow swallow = Swallow::NONE;  // the text begins inside a sighting
  unsigned char token_class = 0;
};

// `gap[i]`, when given, says that something that is not text (a terminal sequence) stood before character i.
Sightings find_patterns(std::string_view text, const PatternState& state, bool final, const std::vector<bool>* gap);

// Bits a byte of the value's own distribution (Shannon).
double entropy(std::string_view value);
// Example values of documentation: "changeme", "xxxx", "<token>". Quiets reports; redaction never asks.
bool placeholder(std::string_view value);

}  // namespace h5i::evidence
