// The benches. Each measures, and returns its tables.
#pragma once
#include <vector>

#include "tests/bench/measure.hpp"
#include "tests/bench/page.hpp"

namespace h5i::bench {

std::vector<Table> run_overhead(const Settings& s);
std::vector<Table> create_scale(const Settings& s);
std::vector<Table> log_append(const Settings& s);
std::vector<Table> propose_scale(const Settings& s);
std::vector<Table> websec_client(const Settings& s);
std::vector<Table> websec_rate(const Settings& s);
std::vector<Table> websec_session_scale(const Settings& s);
std::vector<Table> supervised_rules(const Settings& s);
std::vector<Table> supervised_whole(const Settings& s);
std::vector<Table> socket_gate(const Settings& s);
std::vector<Table> uplink_throughput(const Settings& s);  // the last: it leaves the machine's network

// A repository with s.scale small files in folders of a hundred, one commit, below `dir`; made by git itself.
std::string large_repository(const Settings& s, const std::string& dir);

}  // namespace h5i::bench
