// Boxes of the bench's own: the plan of the process tier and what supervised adds to it, run by a real spawner.
#pragma once
#include <memory>

#include "core/base/json.hpp"
#include "tests/bench/measure.hpp"

namespace h5i::bench {

// Folders of one box, below the scratch folder; removed with that.
struct BoxFolders {
  explicit BoxFolders(const Settings& s, const std::string& name);
  std::string dir;
};

// What the process tier plans here for this program in this box.
Json process_plan(const BoxFolders& box, const std::vector<std::string>& argv);
// A network of the box's own behind rules that let `addresses` pass, each with ten ports of its own and a counter.
void add_network(Json& plan, const std::string& uplink, const std::vector<std::string>& addresses);
struct Ran {
  double us = 0;  // from before the spawner is forked until it and everything of the box has ended
  std::string output;
};
// Ends the bench when the box is refused or its program fails.
Ran run_box(const Settings& s, const Json& plan);

// The program that is measured inside (inside_main.cpp), and a copy of it where the box has it; the same path in and outside.
std::string inside_program();
std::string inside_program(const BoxFolders& box);

}  // namespace h5i::bench
