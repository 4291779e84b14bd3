// The ELF reader: whatever the bytes are, it answers without reading outside them.
#include <cstdint>

#include "core/plugin/elf_lint.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto facts = h5i::plugin::read_elf({reinterpret_cast<const char*>(data), size});
  if (facts) (void)h5i::plugin::lint_plugin(*facts, {}, "input").ok();
  return 0;
}
