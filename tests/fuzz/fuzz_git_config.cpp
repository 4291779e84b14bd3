// Any bytes as a repository's configuration: settings with well-formed names, or a refusal in words.
#include <cstdint>
#include <cstdlib>

#include "core/git/config_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace h5i::git;
  auto settings = parse_config({reinterpret_cast<const char*>(data), size}, "config");
  if (!settings) {
    if (settings.error().code != h5i::Errc::GIT_FAILED || settings.error().evidence.empty()) abort();
    return 0;
  }
  for (const Setting& s : *settings) {
    size_t dot = s.name.rfind('.');
    if (dot == std::string::npos || dot == 0 || dot + 1 == s.name.size()) abort();
    for (char c : s.name.substr(dot + 1))
      if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) abort();
    if (s.value.size() > size + 4 || !last_value(*settings, s.name)) abort();
  }
  return 0;
}
