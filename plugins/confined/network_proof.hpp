// That packet rules hold, shown by two test programs: one under the rules of the plan, one under rules that name what the
// first must not reach. What arrived and what was refused is the word of who held the rules, not of the programs.
#pragma once
#include <string>

#include "h5i/plugin.hpp"

namespace h5i::confined {

// Adds a row for each destination; a destination that the second did not reach either proves nothing and goes to `unproved`.
// Gives back why the rules hold up what the policy lets through; empty when they do not.
sdk::Result<std::string> prove_network(const sdk::Host& host, const json::Value& plan, json::Array& rows, json::Array& unproved, bool& all_held);

}  // namespace h5i::confined
