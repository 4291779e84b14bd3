// Timing whole processes and small pieces of work.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace h5i::bench {

struct Settings {
  std::string prefix;   // of the h5i under test
  std::string scratch;  // a folder of our own on a disk
  std::string memory;   // the same on tmpfs, where a flush costs nothing; empty when there is none
  int rounds = 200;     // of short commands
  int scale = 100000;   // files of the large repository
};

// Microseconds of each round.
struct Series {
  std::vector<double> us;
  double at(double part) const;  // 0.5 is the median; 0 when there is no round
};

struct Command {
  std::vector<std::string> argv;  // argv[0] is a path
  std::string cwd;
  int status = 0;  // what it must end with
};

// Wall time from before the spawn until the command itself ended, and its own exit status. What it left running is waited
// for, outside the measured time, so that no command pays for the one before. Ends the bench when the command cannot run
// or ends in another way than it must: a figure of a failure is none.
// `peak_kib`: the most memory that the command, or one that it waited for, had.
double run_timed(const Command& c, double* rest_us = nullptr, long* peak_kib = nullptr);
// The same, untimed, with what it prints thrown away.
void run_once(const Command& c);
// Standard output of a command, whatever its status.
std::string output_of(const Command& c);

// All commands once a round, in an order that turns by one each round; the first round is not counted.
std::map<std::string, Series> interleaved(const std::vector<std::pair<std::string, Command>>& commands, int rounds);

double now_us();
// The median of a/b, round by round.
double ratio(const Series& a, const Series& b);
[[noreturn]] void give_up(const std::string& why);
// "" when PATH has none. Benches may look: what is measured is not found this way.
std::string find_program(const std::string& name);
std::string file_system_of(const std::string& path);

}  // namespace h5i::bench
