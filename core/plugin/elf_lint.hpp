// A small strict reader of ELF64 shared objects, on bytes in memory: what the dynamic loader would do with them is
// known before it does it. Follows the System V gABI chapters 4 and 5 and looks at program headers only, as the loader
// does: section headers are for link editors and may lie.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace h5i::plugin {

struct ElfSymbol {
  std::string name;
  uint64_t size = 0;
  bool data = false;  // an object in a segment that is not executable
};

struct ElfFacts {
  uint16_t machine = 0;
  std::vector<std::string> needed;
  std::vector<ElfSymbol> exported;
  bool has_interpreter = false;
  bool writable_code = false;     // a segment that is writable and executable
  bool executable_stack = false;  // PT_GNU_STACK absent counts: the kernel's default is executable
  bool relro = false, bind_now = false;
  std::vector<std::string> forbidden;  // RPATH, RUNPATH, TEXTREL, AUDIT, ... in the order found
};

// PLUGIN_LINT with the offset's meaning when the bytes are not a well-formed shared object.
Result<ElfFacts> read_elf(std::string_view bytes);

// The rules for a plugin: PLUGIN_LINT, PLUGIN_EXPORTS, PLUGIN_NEEDS. `needs`: allowed besides the C library's own.
Result<void> lint_plugin(const ElfFacts& facts, const std::vector<std::string>& needs, std::string_view what);

}  // namespace h5i::plugin
