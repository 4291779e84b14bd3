// What a program writes and dials, in the order of the calls, as a tracer saw it.
#pragma once
#include "core/base/sha256.hpp"
#include "tests/websec_send/site.hpp"

namespace h5i::test {

// strace's lines: "PID syscall(args...". One list for all processes.
inline std::vector<std::string> traced(const Program& p, const std::string& file) {
  Program t = p;
  t.argv[0] = h5i_path();
  const std::vector<std::string> tracer = {"/usr/bin/strace", "-f", "-s", "4096", "-x", "-e", "trace=write,writev,pwrite64,fdatasync,sendto,sendmsg,sendmmsg,connect", "-o", file};
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

// Of each of these requests, in their order: the line with its digest, then the connection to that port ("": one that is there), then its bytes on a
// socket; and no request behind them.
inline void check_order(const std::vector<std::string>& calls, const std::vector<std::pair<std::string, std::string>>& requests_and_ports) {
  size_t from = 0;
  for (const auto& [request, port] : requests_and_ports) {
    const std::string line = request.substr(0, request.find("\r\n"));
    const size_t record = first(calls, "write(", "\\\"head_sha256\\\":\\\"" + sha256_hex(request), from);
    const size_t dialled = port.empty() ? record : first(calls, "connect(", "htons(" + port + ")", from), wrote = first(calls, "sendmsg(", line, from);
    CAPTURE(line, record, dialled, wrote, calls.size());
    REQUIRE(wrote < calls.size());
    CHECK(((port.empty() ? record == dialled : record < dialled) && dialled < wrote));
    from = wrote + 1;
  }
  CHECK(first(calls, "sendmsg(", "HTTP/1.1\\r\\n", from) == calls.size());
}

inline bool no_tracer() {
  // An engine is not dumpable: only root's tracer sees what it writes.
  if (geteuid() == 0 && access("/usr/bin/strace", X_OK) == 0) return false;
  printf("SKIP: websec-strace: no strace here, or not root's\n");
  return true;
}

}  // namespace h5i::test
