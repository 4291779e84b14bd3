// The host's own policy: a ceiling for what repositories ask, and the owner's preferences. /etc/h5i/host.yaml is read
// first, then the user's host.yaml. A profile must fit below both; where only one value can hold (an order of tiers, a
// switch), root's file wins.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/result.hpp"

namespace h5i::policy {

struct Ceiling {
  std::string file;                              // as printed
  std::map<std::string, int> lines;              // "resources.mem" -> line in `file`
  std::optional<std::vector<std::string>> tiers; // tiers.allowed
  std::map<std::string, int64_t> resources;      // largest value by name, in the document's units; cpus in hundredths
  std::optional<Json> egress;                    // list of canonical rules; [] allows none
  std::optional<std::vector<std::string>> secret_sources;  // "env", "file", "command"
  std::optional<bool> command_extractors;
  std::optional<std::string> audit;              // at least this much: "none" < "signal" < "all"
  std::optional<bool> host_network;              // may a profile say net.mode: host
  std::optional<bool> env_dangerous;             // may a profile use env.dangerous
};

struct HostPolicy {
  std::vector<Ceiling> ceilings;             // root's first; empty: no file, no ceiling
  std::vector<std::string> tiers_order;      // empty: the built-in order of auto
  bool allow_unconfined = false;             // auto may end at workspace
  bool command_extractors = false;           // the host's half of the agreement on `command:` sources
  bool credentials = false;                  // repositories may grant where credentials are kept (~/.ssh, ...)
  std::map<std::string, int64_t> gate;       // "files", "bytes", "depth", "file_bytes": limits of the output gate
  std::vector<std::string> files;            // which were read
};

// Both files are optional. One that exists must be a regular file of root (the first) or of root or `uid` (the second),
// not writable by group or others, in a directory of which the same holds: POLICY_HOST_FILE otherwise.
Result<HostPolicy> load_host_policy(const std::string& etc_file, const std::string& user_file, uint32_t uid);

// Parses one file's bytes. `name` is what errors print.
Result<HostPolicy> parse_host_policy(std::string_view bytes, const std::string& name);

}  // namespace h5i::policy
