// Messages of the spawner's channels: what is decoded encodes to the same bytes, so there is one spelling of each.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/spawn/protocol.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view packet(reinterpret_cast<const char*>(data), size);
  auto m = h5i::spawn::decode(packet);
  if (m && h5i::spawn::encode(*m) != packet) abort();
  return 0;
}
