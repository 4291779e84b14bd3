// What was proved once on this boot need not be proved again at each run: results of verify_exec, and of probe, in the
// user's cache directory. A file names in full what it holds for; anything that does not match exactly counts as absent.
#pragma once
#include <optional>
#include <string>

#include "core/base/json.hpp"

namespace h5i::session {

// Everything that the result depends on.
struct VerifyKey {
  std::string effective_digest, plugin_digest, boot_id, probe_digest;
  uint32_t uid = 0;
  Json to_json() const;
};
struct ProbeKey {
  std::string plugin_digest, boot_id;
  uint32_t uid = 0;
  Json to_json() const;
};

class ResultCache {
 public:
  // `dir`: made with mode 0700 when missing. Without a usable one nothing is cached.
  explicit ResultCache(std::string dir) : dir_(std::move(dir)) {}
  // nullopt: not there, not ours (owner, mode, link), or for another key.
  std::optional<Json> get(const char* kind, const Json& key) const;
  // Best effort, 0600. Whoever reads before it is whole, or after a death, finds nothing.
  void put(const char* kind, const Json& key, const Json& document) const;

 private:
  std::string path(const char* kind, const Json& key) const;
  std::string dir_;
};

}  // namespace h5i::session
