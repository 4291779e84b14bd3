#include "core/broker/verdicts.hpp"

#include "core/base/ids.hpp"

namespace h5i::broker {
namespace {

Json counts(const std::map<std::string, uint64_t>& of) {
  Json out = json::Object{};
  for (const auto& [what, n] : of) out[what] = n;
  return out;
}

}  // namespace

Verdicts::Entry* Verdicts::entry(const Target& to, int64_t now_ns) {
  auto it = hosts_.find(to.text());
  if (it != hosts_.end()) return &it->second;
  if (hosts_.size() >= kMaxDestinations) {
    if (now_ns) others_++;
    return nullptr;
  }
  Entry& e = hosts_[to.text()];
  e.first_ns = now_ns;
  return &e;
}

void Verdicts::allowed(const Target& to, const std::string& rule, int64_t now_ns) {
  if (Entry* e = entry(to, now_ns)) {
    e->allowed++;
    e->rule = rule;
  }
}

void Verdicts::refused(const Target& to, const std::string& reason, int64_t now_ns) {
  if (Entry* e = entry(to, now_ns)) e->refused[reason]++;
}

void Verdicts::moved(const Target& to, uint64_t sent, uint64_t received) {
  auto it = hosts_.find(to.text());
  if (it == hosts_.end()) return;
  it->second.sent += sent;
  it->second.received += received;
}

void Verdicts::unseen(const Target& to) {
  auto it = hosts_.find(to.text());
  if (it != hosts_.end()) it->second.unseen++;
}

Json Verdicts::to_json() const {
  Json hosts = json::Array{};
  uint64_t others = others_;
  size_t size = 1024;  // of what is told beside them: faults are few and short
  for (const auto& [to, e] : hosts_) {
    Json one = json::Object{{"to", to}, {"rule", e.rule.empty() ? Json() : Json(e.rule)}, {"allowed", e.allowed}, {"refused", counts(e.refused)},
                            {"sent", e.sent}, {"received", e.received}, {"unseen", e.unseen}, {"first", rfc3339(e.first_ns)}};
    size_t more = json::canonical(one).size() + 1;
    if (size + more > kMaxReport) {
      others += e.allowed;
      for (const auto& [reason, n] : e.refused) others += n;
      continue;
    }
    size += more;
    hosts.push(std::move(one));
  }
  return json::Object{{"schema", "h5i.proxy/1"}, {"hosts", hosts}, {"malformed", counts(malformed_)}, {"over_limit", over_limit_}, {"others", others}};
}

}  // namespace h5i::broker
