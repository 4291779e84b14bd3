// What a proxy let through and what it refused, counted by destination: what becomes `host-observed` evidence of a run. Bounded.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/base/json.hpp"
#include "core/broker/target.hpp"

namespace h5i::broker {

constexpr size_t kMaxDestinations = 512;
constexpr size_t kMaxReport = 96u << 10;  // bytes, so that a report is one packet; destinations beyond are in `others`

class Verdicts {
 public:
  void allowed(const Target& to, const std::string& rule, int64_t now_ns);
  void refused(const Target& to, const std::string& reason, int64_t now_ns);
  void moved(const Target& to, uint64_t sent, uint64_t received);
  // A tunnel of which nothing but the authority was seen.
  void unseen(const Target& to);
  // What named no destination: a head that was not read, with the fault.
  void malformed(std::string_view fault) { malformed_[std::string(fault)]++; }
  void over_limit() { over_limit_++; }

  // {"schema":"h5i.proxy/1","hosts":[{"to","rule","allowed","refused":{reason: n},"sent","received","unseen","first"}],"malformed":{},
  // "over_limit","others"}
  Json to_json() const;

 private:
  struct Entry {
    std::string rule;
    uint64_t allowed = 0, sent = 0, received = 0, unseen = 0;
    std::map<std::string, uint64_t> refused;
    int64_t first_ns = 0;
  };
  Entry* entry(const Target& to, int64_t now_ns);
  std::map<std::string, Entry> hosts_;
  std::map<std::string, uint64_t> malformed_;  // faults are a fixed list
  uint64_t over_limit_ = 0, others_ = 0;
};

}  // namespace h5i::broker
