// A manifest: what is accepted has exactly one spelling, and every field that the host uses.
#include <cstdint>
#include <cstdlib>

#include "core/plugin/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto m = h5i::plugin::parse_manifest(bytes, "input");
  if (!m) return 0;
  std::string again = h5i::plugin::manifest_bytes(*m);
  if (again != bytes && again != std::string(bytes) + "\n") abort();
  if (!h5i::plugin::valid_plugin_id((*m)["id"].string()) || (*m)["library"].string().find('/') != std::string::npos)
    abort();
  return 0;
}
