// Whether a document is a HAR that other programs read: the schema, and what a schema cannot say.
#pragma once
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/schema.hpp"
#include "tests/support/text_file.hpp"

namespace h5i::test {

inline std::vector<std::string> har_errors(const Json& har) {
  const std::string folder = std::string(std::getenv("H5I_SOURCE_DIR")) + "/tests/websec";
  auto schema = json::parse(read_file(folder + "/har.json"));
  if (!schema) return {"the schema is no JSON"};
  std::vector<std::string> errors = schema_errors(folder, *schema, har);
  for (const Json& e : har["log"]["entries"].array()) {
    double sum = 0;
    for (const char* part : {"blocked", "dns", "connect", "send", "wait", "receive"}) sum += std::max(0.0, e["timings"][part].number());
    if (std::fabs(sum - e["time"].number(-1)) > 1e-6) errors.push_back("time is not the sum of the timings");
    if (e["timings"]["ssl"].number() > 0 && e["timings"]["ssl"].number() > e["timings"]["connect"].number()) errors.push_back("ssl is not a part of connect");
  }
  return errors;
}

}  // namespace h5i::test
