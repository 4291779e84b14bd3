// How far an experiment is, from the lines of its session's log. What has a line was sent, or may have been: it is not sent again.
#pragma once
#include <map>

#include "h5i/plugin.hpp"

namespace h5i::websec {

struct Hop {
  uint64_t seq = 0;
  json::Value outcome;  // null: nobody saw how it ended
};

struct InputState {
  enum class Kind {
    OPEN,      // no line
    STARTED,   // its last answer leads on, and the next hop has no line
    COMPLETE,
    REFUSED,   // it, or where its last answer led, was not sent: by the scope, or because it could not be
    UNKNOWN    // a line without an outcome: it may have been sent
  };
  Kind kind = Kind::OPEN;
  std::vector<Hop> hops;
  std::string why;  // of REFUSED
};

class Progress {
 public:
  // Of the experiment of that name; `follow`: how many hops lead on.
  Progress(std::string name, int64_t follow) : name_(std::move(name)), follow_(follow) {}
  // Each record of the log, in its order.
  void record(const json::Value& record);
  int64_t sends() const { return sends_; }
  // By number, only those that have a line.
  std::map<uint64_t, InputState> inputs() const;

 private:
  std::string name_;
  int64_t follow_;
  int64_t sends_ = 0;
  std::map<uint64_t, InputState> inputs_;
  std::map<uint64_t, std::pair<uint64_t, size_t>> of_;  // a send's input and hop
};

}  // namespace h5i::websec
