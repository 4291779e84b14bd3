// The reader and evaluator of system-call filters: whatever decode() takes ends in a bounded number of steps, inside
// its own memory, for any call.
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/os/seccomp.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  seccomp_data call{};
  if (size < sizeof call) return 0;
  memcpy(&call, data, sizeof call);
  std::string_view rest(reinterpret_cast<const char*>(data) + sizeof call, size - sizeof call);
  auto program = h5i::os::seccomp::decode(rest);
  if (program) (void)h5i::os::seccomp::evaluate(*program, call);
  return 0;
}
