#include "plugins/websec-http/index/row.hpp"

#include "plugins/websec-http/budget/budget.hpp"
#include "plugins/websec-http/url/url.hpp"

namespace h5i::websec {

IndexRow row_of(uint64_t seq, bool refused, const json::Value& body, const json::Value& outcome) {
  IndexRow r;
  r.seq = seq;
  r.refused = refused;
  if (auto url = Url::parse(body["url"].string()); url.ok()) {
    r.host = url->hostname();
    r.path = url->path();
  }
  r.method = body["method"].string();
  r.experiment = body["experiment"].string();
  r.ended = refused ? body["why"].string() : "unknown-outcome";
  if (!refused && !outcome.is_null()) set_outcome(r, outcome);
  return r;
}

void set_outcome(IndexRow& r, const json::Value& outcome) {
  r.ended = outcome["ended"].string();
  r.status = outcome["status"].integer();
  r.type = outcome["content_type"].string();
  r.size = outcome["body_bytes"].integer();
  r.total_us = outcome["times"]["total_us"].integer();
  const Amounts used = amounts_of(outcome);
  r.wire = static_cast<int64_t>(used.wire);
  r.decoded = static_cast<int64_t>(used.decoded);
}

}  // namespace h5i::websec
