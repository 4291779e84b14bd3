// What a program writes and dials, in the order of the calls, as a tracer saw it.
#pragma once
#include "tests/websec_send/site.hpp"

namespace h5i::test {

// strace's lines: "PID syscall(args...". One list for all processes.
inline std::vector<std::string> traced(const Program& p, const std::string& file) {
  Program t = p;
  t.argv[0] = h5i_path();
  const std::vector<std::string> tracer = {"/usr/bin/strace", "-f", "-s", "4096", "-x", "-e", "trace=write,writev,pwrite64,sendto,sendmsg,sendmmsg,connect", "-o", file};
  t.argv.insert(t.argv.begin(), tracer.begin(), tracer.end());
  t.timeout_s = 120;
  t.env["ASAN_OPTIONS"] = "detect_leaks=0";  // a leak's finder does not work where a tracer is
  Ended e = run(t);
  CAPTURE(e.out, e.err);
  CHECK(e.status == 0);
  std::vector<std::string> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

// The first line from `from` on that has both; calls.size() when none has.
inline size_t first(const std::vector<std::string>& lines, const std::string& a, const std::string& b, size_t from = 0) {
  for (size_t i = from; i < lines.size(); i++)
    if (lines[i].find(a) != std::string::npos && lines[i].find(b) != std::string::npos) return i;
  return lines.size();
}

}  // namespace h5i::test
