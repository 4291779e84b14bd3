// Whether a document is a HAR that other programs read: the schema, and what a schema cannot say.
#pragma once
#include <unistd.h>

#include <cmath>
#include <cstdio>
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

// What har-validator (Debian's node-har-validator) says of a file: "valid", the errors, or "" where it is not installed.
inline std::string har_validator_says(const std::string& file) {
  if (access("/usr/share/nodejs/har-validator", F_OK) != 0) {
    printf("SKIP: websec-har-validator: it is not installed\n");
    return "";
  }
  const std::string script = "require('har-validator').har(JSON.parse(require('fs').readFileSync(process.argv[1]))).then(() => console.log('valid'), e => console.log(JSON.stringify(e.errors || String(e))))";
  FILE* out = popen(("NODE_PATH=/usr/share/nodejs node -e \"" + script + "\" '" + file + "' 2>&1").c_str(), "r");
  if (!out) return "node does not start";
  std::string said;
  char piece[4096];
  while (size_t n = fread(piece, 1, sizeof piece, out)) said.append(piece, n);
  pclose(out);
  while (said.ends_with('\n')) said.pop_back();
  return said;
}

}  // namespace h5i::test
