// A plan: one request with a marked place, what is put there, and when to stop. Or a matrix: requests of the log under identities.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "h5i/plugin.hpp"
#include "plugins/websec-http/http/edit.hpp"

namespace h5i::websec {

constexpr size_t kMostInputs = 10'000;
constexpr size_t kLongestInput = 64u << 10;
constexpr int64_t kMostSends = 1000;      // of an experiment, hops counted
constexpr int64_t kMostParallel = 32;
constexpr std::string_view kMark = "{{input}}";

struct WrittenRequest {
  std::string url, method = "GET";
  std::vector<std::string> headers;
  std::optional<std::string> body;
};

struct Plan {
  std::string name;                        // "": the next free one
  uint64_t replay = 0;                     // a send of the log; 0: `request`
  std::optional<WrittenRequest> request;
  std::vector<uint64_t> matrix;            // sends of the log instead of one base, each under each of `as`
  std::vector<std::string> as;             // identities; of a plan with inputs at most one
  std::vector<std::string> edits;          // as a command line has them; kMark in a value is where an input goes
  std::vector<std::string> inputs;         // bytes
  std::string rate;                        // "": none
  int64_t follow = 0, parallel = 1, timeout_s = 30, max_errors = 0;  // 0: errors do not stop it
  bool lenient = false, insecure = false, reuse = false, stop_on_uniform = false;

  bool is_matrix() const { return !matrix.empty(); }
  // What is numbered from 1: inputs, or the cells of the matrix, row by row.
  size_t size() const { return is_matrix() ? matrix.size() * as.size() : inputs.size(); }
};

// Strict: a member that is not known is refused, by name. `inputs`: a text of one input a line, instead of the plan's own; its last line break ends a
// line and begins none.
sdk::Result<Plan> parse_plan(std::string_view document, const std::optional<std::string>& inputs = std::nullopt);
// The document without the inputs, and the inputs in a form that any bytes have: one line of hexadecimal digits each.
json::Value plan_document(const Plan& plan);
std::string plan_inputs(const Plan& plan);
sdk::Result<std::vector<std::string>> read_inputs(std::string_view lines);

// "query.id", "header.X-A": an edit without its value.
std::string edit_name(std::string_view edit);
// The edits with this input in its place.
sdk::Result<std::vector<Edit>> edits_with(const Plan& plan, std::string_view input);

bool plain_name(std::string_view name);  // [a-z0-9._-]{1,64}

}  // namespace h5i::websec
