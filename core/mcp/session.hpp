// One client's conversation: JSON-RPC 2.0, a message a line.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"

namespace h5i::mcp {

constexpr size_t kLongestLine = 1u << 20;
constexpr size_t kMostOutput = 1u << 20;  // of a verb's document
constexpr size_t kMostCalls = 8;          // at one moment

// A tool that is to be run.
struct Call {
  Json id;  // the client's, a string or a whole number
  std::string tool;
  std::vector<std::string> words;    // behind "h5i"
  std::vector<std::string> reading;  // then these, when they gave a document, for what people read of it; or nothing
};
// What a verb left.
struct Ended {
  int status = -1;        // of the process; -1: a signal ended it
  std::string out, err;   // the first kMostOutput bytes of each
  bool cut = false;       // `out` had more
  std::string shown;      // of `reading`
  std::string not_begun;  // why there was no process; empty: there was one
};

class Session {
 public:
  explicit Session(std::string version) : version_(std::move(version)) {}

  struct Step {
    std::string say;             // a line, or nothing
    std::optional<Call> begin;   // exactly one answer() has to follow, unless it is cancelled
    std::optional<Json> cancel;  // the id of a call that the client wants no answer of any more
  };
  // `running`: ids of the calls that go on.
  Step take(std::string_view line, const std::vector<Json>& running);
  // A line that was longer than kLongestLine.
  std::string too_long() const;
  std::string answer(const Call& call, const Ended& ended) const;

 private:
  Json initialize(const Json& params);
  const std::string version_;
  bool initialized_ = false;
};

}  // namespace h5i::mcp
