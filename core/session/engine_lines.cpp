#include "core/session/engine_lines.hpp"

#include "core/base/text.hpp"
#include "core/evidence/chain.hpp"
#include "core/evidence/lines.hpp"
#include "core/evidence/record.hpp"

namespace h5i::session {

Result<void> check_engine_lines(const std::string& log, const evidence::Head& before, uint64_t bytes, const std::string& observer) {
  evidence::ChainReport chain = H5I_TRY(evidence::continue_chain(log, before.log_id, {before.count, before.digest}, bytes));
  if (chain.broken) return evidence::chain_error(log, chain);
  evidence::LineReader in = H5I_TRY(evidence::LineReader::open(log));
  in.seek(bytes);
  evidence::Line line;
  for (uint64_t n = before.count; H5I_TRY(in.next(&line)); n++) {
    Json r = H5I_TRY(parse_json(line.text, "a record", evidence::kMaxLine));
    if (r["lane"].string() != evidence::lane_name(evidence::Lane::ENGINE_CLAIMED) || r["observer"].string() != observer)
      return make_error(Errc::LOG_CHAIN, "the log " + printable(log) + " holds what its engine may not write",
                        "record " + std::to_string(n) + ": " + printable(r["lane"].string()) + " by " + printable(r["observer"].string()));
  }
  return {};
}

}  // namespace h5i::session
