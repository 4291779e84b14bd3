// Running the host's test program under a plan, and what it answered.
#pragma once
#include <string>
#include <vector>

#include "request.hpp"

namespace h5i::confined {

using Act = std::vector<std::string>;

struct Line {
  bool ok = false;
  std::string error;  // errno's name, or the signal that ended it
  json::Value value;
};

// The plan of the request with the test program in place of the command; of a network with nobody but h5i at its far end.
json::Value inside(const json::Value& plan, const std::vector<Act>& acts);
// No confinement at all: what an act does when nothing forbids it.
json::Value outside(const Request& request, const std::vector<Act>& acts);
// One line an act; an act whose line is missing ended the program, and so did not happen for those after it. Under a plan
// with a network one line more: the report of who held the rules.
sdk::Result<std::vector<Line>> perform(const sdk::Host& host, const json::Value& plan, size_t count);

}  // namespace h5i::confined
