// Counts over logs, for monitoring: how many runs, at which tier, how they ended and how long they took; what was refused and denied. Only the core's own
// records count: what a box or an engine says of itself is no figure.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "core/base/json.hpp"

namespace h5i::evidence {

class Figures {
 public:
  // Upper ends of the classes of durations, seconds; the last class has none.
  static constexpr std::array<double, 12> kSeconds = {0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1800, 3600, 14400};

  void record(const Json& r);           // of any log of a box
  void box(const std::string& state);   // "idle", ...; "unreadable"
  void unreadable_log() { unreadable_++; }
  std::string text(const std::string& version) const;  // Prometheus' text format, 0.0.4
  Json value() const;

 private:
  struct Duration {
    std::array<uint64_t, kSeconds.size() + 1> classes{};
    uint64_t us = 0, count = 0;
  };
  std::map<std::string, uint64_t> boxes_, refusals_, denials_, packets_;  // by state, id, tier, tier
  std::map<std::pair<std::string, std::string>, uint64_t> runs_;          // by tier and outcome
  std::map<std::string, Duration> seconds_;                               // by tier
  uint64_t unreadable_ = 0;
};

}  // namespace h5i::evidence
