// What the index keeps of a send or a refusal, and what a question may ask about it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "h5i/plugin.hpp"

namespace h5i::websec {

struct IndexRow {
  uint64_t seq = 0;
  bool refused = false;
  std::optional<std::string> host, path;  // none: the line's URL is none
  std::string method;
  int64_t status = 0;  // 0: no answer
  std::string ended;   // "complete", ..., "unknown-outcome"; of a refusal its "why"
  std::string type;    // of the answer's content
  int64_t size = 0;    // bytes of the body
  int64_t total_us = 0;
  int64_t wire = 0, decoded = 0;  // bytes, as a budget counts them
  std::string experiment;

  bool operator==(const IndexRow&) const = default;
};

// `body` of the line "send" or "refused"; `outcome`: of the line "outcome", null when there is none.
IndexRow row_of(uint64_t seq, bool refused, const json::Value& body, const json::Value& outcome);
// The same, when the outcome comes later; a refusal has none.
void set_outcome(IndexRow& row, const json::Value& outcome);

}  // namespace h5i::websec
