// A file that claims to be a log: reading, chain, findings and rendering survive it, and agree with each other.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/base/text.hpp"
#include "core/evidence/chain.hpp"
#include "core/evidence/findings.hpp"
#include "core/evidence/record.hpp"
#include "core/evidence/render.hpp"
#include "core/evidence/seal.hpp"

using namespace h5i;
using namespace h5i::evidence;

namespace {
struct TemporaryFile {
  std::string name = access("/dev/shm", W_OK) == 0 ? "/dev/shm/h5i-fuzz-log-XXXXXX" : "/tmp/h5i-fuzz-log-XXXXXX";
  TemporaryFile() {
    int fd = mkstemp(name.data());
    if (fd < 0) abort();
    close(fd);
  }
  ~TemporaryFile() { unlink(name.c_str()); }
};
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);

  auto seal = Seal::from_bytes(bytes);
  if (seal) {
    auto again = Seal::from_bytes(seal->to_bytes());
    if (!again || again->signed_bytes() != seal->signed_bytes()) abort();
  }

  // One record of its own making from the bytes must always be readable.
  Record r;
  r.kind = bytes.substr(0, 20);
  r.body = json::Object{{bytes.substr(0, size / 2), bytes.substr(size / 2)}};
  auto line = record_line(r, Head{std::string(32, 'a'), 0, std::string(64, 'b')}, 0);
  if (line) {
    auto v = parse_json(*line, "line");
    if (!v || !record_link(*v)) abort();
  }

  auto v = parse_json(bytes, "input");
  if (v) {
    std::string text = receipt_text(*v) + receipt_markdown(*v);
    if (printable(text, {.newlines = true}) != text) abort();
    FindingsBuilder b;
    b.add(*v);
    findings_lines(b.take());
  }

  // LineReader does not follow links, so the file is a real one.
  static const TemporaryFile temporary;
  const std::string& file = temporary.name;
  int f = open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (f < 0 || write(f, data, size) != static_cast<ssize_t>(size)) abort();
  close(f);
  auto report = examine_chain(file);
  if (!report) abort();
  bool reads = read_log(file, [](uint64_t, const Json&) { return true; }).ok();
  if (!report->broken && !reads) abort();
  if (!report->broken && report->head.count > 0) {
    // What is intact is intact with its own head as the anchor, and not with another.
    auto anchored = examine_chain(file, report->head.log_id, Anchor{report->head.count, report->head.digest});
    if (!anchored || anchored->broken) abort();
    anchored = examine_chain(file, report->head.log_id, Anchor{report->head.count, std::string(64, '0')});
    if (!anchored || !anchored->broken) abort();
  }
  return 0;
}
