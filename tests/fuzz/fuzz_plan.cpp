// The plan decoder. What it takes must compile for the child, print, and keep its promises: paths absolute and spelled
// one way, no text with a NUL, no filter that seccomp would not take; and its effective form must be deterministic.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/spawn/plan.hpp"
#include "core/spawn/program.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace h5i::spawn;
  std::string_view document(reinterpret_cast<const char*>(data), size);
  auto plan = decode_plan(document);
  if (!plan) return 0;
  for (const MountSpec& m : plan->mounts) {
    if (m.target.size() < 2 || m.target[0] != '/' || m.target.back() == '/') abort();
    if (m.target.find("/../") != std::string::npos || m.target.find('\0') != std::string::npos) abort();
  }
  if (plan->init != plan->has(0x20000000)) abort();
  Compiled compiled;
  bool mapped = false;
  for (const MountSpec& m : plan->mounts) mapped = mapped || m.idmap;
  if (bool(compiled.compile(*plan, false)) == mapped) abort();
  Names names;
  names.values = {{"/usr", "$USR"}};
  auto first = effective_digest(document, names), second = effective_digest(document, names);
  if (!first || !second || first->str() != second->str()) abort();
  return 0;
}
