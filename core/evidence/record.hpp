// The bytes of one record: canonical JSON (RFC 8785) of fixed members, without the newline that ends its line.
#pragma once
#include "core/evidence/log.hpp"

namespace h5i::evidence {

// A line may not be longer. Larger payloads are blobs; a reader needs no more memory than this for a line.
inline constexpr size_t kMaxLine = 1u << 20;

// `prev` of a log's first record: SHA-256 of the id's text.
std::string first_prev(const std::string& log_id);

// INVALID when the record could not be read back (nested too deeply), TOO_LARGE above kMaxLine. Bytes that are not
// UTF-8 are spelled `\xNN`, so that no payload can make the log unreadable.
Result<std::string> record_line(const Record& r, const Head& head, int64_t realtime_ns);

// The members that a chain needs, from one line. CORRUPT names what is missing or of another type.
struct RecordLink {
  std::string log_id, prev;
  uint64_t seq = 0;
};
Result<RecordLink> record_link(const Json& record);

}  // namespace h5i::evidence
