// A record appended to a log, beside a plain write of as many bytes to a file in the same folder.
#include <fcntl.h>
#include <unistd.h>

#include "core/evidence/log.hpp"
#include "tests/bench/benches.hpp"

namespace h5i::bench {
namespace {

constexpr int kBatch = 2000;

Table measure(const std::string& dir, int batches) {
  auto log = evidence::Log::open(dir + "/log.jsonl");
  if (!log) give_up("log: " + log.error().what + " " + log.error().evidence);
  evidence::Record r;
  r.kind = "denial";
  r.boundary = evidence::Boundary::NET;
  r.session = SessionId{"20260101T000000Z-0123456789abcdef"};
  r.body = json::Object{{"syscall", "connect"}, {"number", 42}, {"errno", "EPERM"}};
  int fd = open((dir + "/plain").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) give_up("a file in " + dir);
  Series appended, plain, flushed;
  std::string line(400, 'x');
  line.back() = '\n';
  for (int b = 0; b <= batches; b++) {
    double begin = now_us();
    for (int i = 0; i < kBatch; i++)
      if (!log->append(r)) give_up("append");
    double middle = now_us();
    for (int i = 0; i < kBatch; i++)
      if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) give_up("write");
    double end = now_us();
    if (!log->append(r)) give_up("append");
    double before = now_us();
    if (!log->flush()) give_up("flush");
    double after = now_us();
    if (b == 0) continue;
    appended.us.push_back((middle - begin) / kBatch);
    plain.us.push_back((end - middle) / kBatch);
    flushed.us.push_back(after - before);
  }
  close(fd);
  Table t;
  t.name = "log_append";
  t.caption = "Microseconds a record of about 400 bytes, " + std::to_string(batches) + " batches of " + std::to_string(kBatch) +
              ", one writer, on " + file_system_of(dir) + ", without a flush unless it says so.";
  t.head = {"what", "p50", "p99", "beside the plain write"};
  t.rows = {{"append to the log (lock, chain, write)", number(appended.at(0.5)), number(appended.at(0.99)), number(ratio(appended, plain)) + " x"},
            {"plain write of 400 bytes", number(plain.at(0.5)), number(plain.at(0.99)), "1 x"},
            {"flush to disk of a batch and one", number(flushed.at(0.5), 0), number(flushed.at(0.99), 0), ""}};
  t.verdicts = {"bar: at most 15 microseconds a record without sync; here " + number(appended.at(0.5)) + ": " +
                (appended.at(0.5) <= 15 ? "held" : "missed")};
  return t;
}

}  // namespace

std::vector<Table> log_append(const Settings& s) { return {measure(s.scratch, std::max(3, s.rounds / 10))}; }

}  // namespace h5i::bench
