#include "plugins/websec-http/plan/progress.hpp"

namespace h5i::websec {
namespace {

bool leads_on(const json::Value& outcome) {
  const int64_t status = outcome["status"].integer();
  return (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) && outcome["ended"].string() == "complete" && outcome["location"].is_string() && outcome["location_error"].is_null();
}

}  // namespace

void Progress::record(const json::Value& r) {
  if (r["lane"].string() != "engine-claimed") return;
  const std::string& kind = r["kind"].string();
  const json::Value& body = r["body"];
  if (kind == "outcome") {
    auto of = of_.find(static_cast<uint64_t>(body["of"].integer()));
    if (of != of_.end()) inputs_[of->second.first].hops[of->second.second].outcome = body;
    return;
  }
  if (body["experiment"].string() != name_ || !body["input"].is_int() || body["input"].integer() < 1) return;
  InputState& state = inputs_[static_cast<uint64_t>(body["input"].integer())];
  if (kind == "send") {
    const auto seq = static_cast<uint64_t>(r["seq"].integer());
    of_[seq] = {static_cast<uint64_t>(body["input"].integer()), state.hops.size()};
    state.hops.push_back({seq, {}});
    sends_++;
  } else if (kind == "experiment-refused") {
    state.why = body["why"].string();
  }
}

std::map<uint64_t, InputState> Progress::inputs() const {
  std::map<uint64_t, InputState> out = inputs_;
  for (auto& [number, s] : out) {
    bool unknown = false;
    for (const Hop& h : s.hops) unknown = unknown || h.outcome.is_null();
    if (unknown) s.kind = InputState::Kind::UNKNOWN;
    else if (!s.why.empty()) s.kind = InputState::Kind::REFUSED;
    else if (!s.hops.empty()) s.kind = static_cast<int64_t>(s.hops.size()) <= follow_ && leads_on(s.hops.back().outcome) ? InputState::Kind::STARTED : InputState::Kind::COMPLETE;
  }
  return out;
}

}  // namespace h5i::websec
