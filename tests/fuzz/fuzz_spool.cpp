// What a box staged in its spool, as one file: it is taken as a claim of the box or refused, and the spool is empty
// after.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/evidence/record.hpp"
#include "core/session/spool.hpp"

using namespace h5i;

namespace {
struct Spool {
  std::string dir = "/tmp/h5i-fuzz-spool-XXXXXX";
  Spool() {
    if (!mkdtemp(dir.data())) abort();
  }
  ~Spool() { std::filesystem::remove_all(dir); }
};
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Spool spool;
  int fd = open((spool.dir + "/claim.json").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) abort();
  close(fd);
  auto taken = session::take_spool(spool.dir);
  if (!taken) abort();
  if (taken->entries.size() + taken->refused.size() != 1) abort();
  for (const auto& e : taken->entries)
    if (!e.body.is_object() || size > session::kSpoolEntryBytes) abort();
  // What was taken always fits into a record.
  for (const auto& e : taken->entries) {
    evidence::Record r;
    r.kind = "box-claimed";
    r.body = json::Object{{"name", e.name}, {"body", e.body}};
    if (!evidence::record_line(r, evidence::Head{std::string(32, 'a'), 0, std::string(64, 'b')}, 0)) abort();
  }
  if (!std::filesystem::is_empty(spool.dir)) abort();
  return 0;
}
