// A file that claims to be a log: reading, chain, findings and rendering survive it, and agree with each other. A log of
// its own making from the same bytes is intact, and is not with any one byte changed.
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
  void hold(std::string_view bytes) const {
    int f = open(name.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (f < 0 || write(f, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) abort();
    close(f);
  }
};

const std::string kLogId(32, 'a');
constexpr size_t kMostOwn = 8;  // records of a log of its own making

// Each line of `bytes` as a record: its first bytes are the kind, a tab ends a key or a value.
std::string own_log(std::string_view bytes, Head& head) {
  std::string log;
  head = {kLogId, 0, first_prev(kLogId)};
  while (!bytes.empty() && head.count < kMostOwn) {
    size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view one = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    Record r;
    r.kind = one.substr(0, 4);
    json::Object body;
    for (size_t at = 0; at < one.size();) {
      size_t key_end = std::min(one.find('\t', at), one.size()), value_at = std::min(key_end + 1, one.size());
      size_t value_end = std::min(one.find('\t', value_at), one.size());
      body[std::string(one.substr(at, key_end - at))] = std::string(one.substr(value_at, value_end - value_at));
      at = value_end + 1;
    }
    r.body = body;
    auto line = record_line(r, head, 0);
    if (!line) abort();
    head.digest = sha256_hex(*line);
    head.count++;
    log += *line + "\n";
  }
  return log;
}

// LineReader does not follow links, so the file is a real one.
const TemporaryFile& file() {
  static const TemporaryFile temporary;
  return temporary;
}

void own_log_is_intact(std::string_view bytes) {
  Head head;
  std::string log = own_log(bytes, head);
  if (log.empty()) return;
  Anchor anchor{head.count, head.digest};
  file().hold(log);
  auto report = examine_chain(file().name, kLogId, anchor);
  if (!report || report->broken || report->head.count != head.count || report->head.digest != head.digest) abort();
  size_t at = (static_cast<unsigned char>(bytes.front()) * 257u + static_cast<unsigned char>(bytes.back()) * 31u) % log.size();
  log[at] = static_cast<char>(log[at] ^ (1 << bytes.size() % 8));
  file().hold(log);
  report = examine_chain(file().name, kLogId, anchor);
  if (!report || !report->broken) abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);

  auto seal = Seal::from_bytes(bytes);
  if (seal) {
    auto again = Seal::from_bytes(seal->to_bytes());
    if (!again || again->signed_bytes() != seal->signed_bytes()) abort();
  }

  own_log_is_intact(bytes);

  auto v = parse_json(bytes, "input");
  if (v) {
    std::string text = receipt_text(*v);
    if (printable(text, {.newlines = true}) != text) abort();
    FindingsBuilder b;
    b.add(*v);
    findings_lines(b.take());
  }

  file().hold(bytes);
  auto report = examine_chain(file().name);
  if (!report) abort();
  bool reads = read_log(file().name, [](uint64_t, const Json&) { return true; }).ok();
  if (!report->broken && !reads) abort();
  if (!report->broken && report->head.count > 0) {
    // What is intact is intact with its own head as the anchor, and not with another.
    auto anchored = examine_chain(file().name, report->head.log_id, Anchor{report->head.count, report->head.digest});
    if (!anchored || anchored->broken) abort();
    anchored = examine_chain(file().name, report->head.log_id, Anchor{report->head.count, std::string(64, '0')});
    if (!anchored || !anchored->broken) abort();
  }
  return 0;
}
