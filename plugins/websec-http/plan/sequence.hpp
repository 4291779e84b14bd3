// Requests in an order, where what one is answered is put into a later one.
#pragma once
#include <map>

#include "plugins/websec-http/compare/match.hpp"
#include "plugins/websec-http/plan/plan.hpp"
#include "plugins/websec-http/replay/change.hpp"

namespace h5i::websec {

// A value out of an answer. A secret, unless the plan says otherwise: it is in no line, so it may not go into a URL or a header that is shown.
struct Take {
  enum class From { JSON, REGEX, HEADER };
  std::string name;
  From from = From::JSON;
  std::string where;  // "$.token"; a pattern whose first group it is; a header's name
  bool secret = true;
};

struct Step {
  std::string name;
  uint64_t replay = 0;
  std::optional<WrittenRequest> request;
  std::vector<std::string> edits;   // "{{name}}" in a value: what was taken before
  std::vector<Take> take;
  std::vector<std::string> expect;  // as `match` has them; otherwise the sequence ends here
  int64_t follow = 0;
};

struct Sequence {
  std::string name, as, rate;
  std::vector<Step> steps;
  int64_t timeout_s = 30;
  bool lenient = false, insecure = false;
};

// Strict, as parse_plan(). `secret_header`: its values are not shown.
sdk::Result<Sequence> parse_sequence(std::string_view document, const IsSecret& secret_header);

using Taken = std::map<std::string, std::string>;

sdk::Result<std::vector<Edit>> edits_with(const Step& step, const Taken& taken);
// H5I_E_NOT_FOUND when the answer has no such value; never says what it has instead.
sdk::Result<std::string> take_from(const Take& take, std::string_view head, std::string_view body);

}  // namespace h5i::websec
