// A plan's document, an empty line, and its inputs. What is read is within its bounds, reads back as itself, and its edits take each input.
#include <cstdlib>

#include "plugins/websec-http/plan/plan.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i;
using namespace h5i::websec;
using namespace h5i::test;

namespace {
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  const size_t gap = all.find("\n\n");
  const std::optional<std::string> lines = gap == std::string::npos ? std::nullopt : std::optional<std::string>(all.substr(gap + 2));
  auto plan = parse_plan(all.substr(0, gap), lines);
  if (!plan.ok()) {
    want(plan.error().code == H5I_E_INVALID && !plan.error().text.empty());
    return 0;
  }
  want(plan->size() > 0 && plan->inputs.size() <= kMostInputs && plan->parallel >= 1 && plan->parallel <= kMostParallel);
  auto inputs = read_inputs(plan_inputs(*plan));
  want(inputs.ok() && *inputs == plan->inputs);
  const json::Value document = plan_document(*plan);
  auto again = parse_plan(json::canonical(document), plan->inputs.empty() ? std::nullopt : std::optional<std::string>("-"));
  want(again.ok() && plan_document(*again) == document);
  for (const std::string& input : plan->inputs) {
    auto edits = edits_with(*plan, input);
    want(edits.ok() && edits->size() == plan->edits.size());
  }
  for (const std::string& edit : plan->edits) want(edit.starts_with(edit_name(edit)));
  return 0;
}
