// Any bytes as .h5i/env.yaml.
#include "tests/fuzz/policy_bytes.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_as_policy(data, size, false);
  return 0;
}
