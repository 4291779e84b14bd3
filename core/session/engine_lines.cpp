#include "core/session/engine_lines.hpp"

#include "core/base/sha256.hpp"
#include "core/base/text.hpp"
#include "core/evidence/lines.hpp"
#include "core/evidence/record.hpp"

namespace h5i::session {

Result<void> check_engine_lines(const std::string& log, const evidence::Head& before, uint64_t bytes, const std::string& observer) {
  auto bad = [&](uint64_t n, const std::string& why) {
    return make_error(Errc::LOG_CHAIN, "the log " + printable(log) + " holds what its engine may not write", "record " + std::to_string(n) + ": " + why);
  };
  evidence::LineReader in = H5I_TRY(evidence::LineReader::open(log));
  if (in.size() < bytes) return make_error(Errc::LOG_TRUNCATED, "the log " + printable(log) + " is cut", std::to_string(in.size()) + " bytes, " + std::to_string(bytes) + " before its engine had it");
  // The record that ends there is within the last kMaxLine bytes before.
  in.seek(bytes > evidence::kMaxLine + 1 ? bytes - evidence::kMaxLine - 1 : 0);
  evidence::Line line;
  std::string digest;
  while (H5I_TRY(in.next(&line)) && line.offset < bytes) digest = line.complete && line.offset + line.text.size() + 1 == bytes ? sha256_hex(line.text) : std::string();
  if (digest != before.digest) return bad(before.count - 1, "it is not what was there before");
  in.seek(bytes);
  for (uint64_t n = before.count; H5I_TRY(in.next(&line)) && line.complete; n++) {
    auto r = parse_json(line.text, "a record", evidence::kMaxLine);
    auto link = r ? evidence::record_link(*r) : Result<evidence::RecordLink>(r.error());
    if (!link) return bad(n, "it is none");
    if (link->log_id != before.log_id || link->seq != n || link->prev != digest) return bad(n, "it does not follow the one before");
    if ((*r)["lane"].string() != evidence::lane_name(evidence::Lane::ENGINE_CLAIMED) || (*r)["observer"].string() != observer)
      return bad(n, printable((*r)["lane"].string()) + " by " + printable((*r)["observer"].string()));
    digest = sha256_hex(line.text);
  }
  return {};
}

}  // namespace h5i::session
