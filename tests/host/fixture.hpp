// Copies of the fixture plugin with an act written into them.
#pragma once
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "core/base/sha256.hpp"
#include "core/plugin/client.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text_file.hpp"

namespace h5i::fixture {

inline std::string build_dir() {
  const char* d = getenv("H5I_BUILD_DIR");
  REQUIRE(d != nullptr);
  return d;
}

inline std::string library_bytes(const std::string& act) {
  std::string bytes = test::read_file(build_dir() + "/tests/host/plugins/tier-fixture.so");
  size_t at = bytes.find("@H5I-FIXTURE-ACT@");
  REQUIRE(at != std::string::npos);
  REQUIRE(act.size() < 64);
  bytes.replace(at, 64, act + std::string(64 - act.size(), '\0'));
  return bytes;
}

struct Plugin {
  UniqueFd library;
  plugin::LoadSpec spec;  // library is set when it is used: this struct moves
};

inline Plugin make(const std::string& act) {
  Plugin p;
  std::string bytes = library_bytes(act);
  auto fd = plugin::sealed_memfd("fixture", bytes);
  REQUIRE(fd);
  p.library = std::move(*fd);
  p.spec.id = "fixture";
  p.spec.version = "1.0.0";
  p.spec.digest = PluginDigest(sha256_hex(bytes));
  p.spec.services = {"h5i.host.log/1", "h5i.host.evidence/1", "h5i.host.spawn/1", "h5i.host.clock/1"};
  return p;
}

}  // namespace h5i::fixture
