// The run request (h5i.run/1) as typed values: read strictly where a mistake would widen the box.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "h5i/plugin.hpp"

namespace h5i::confined {

// Which of the tiers that are built from this folder asks.
struct TierKind {
  const char* id;
  bool network = false;  // always its own, behind packet rules; a cgroup is required
};
inline constexpr TierKind kProcess{"process", false};
inline constexpr TierKind kSupervised{"supervised", true};

struct PrivateDir {
  std::string relative;  // of $WORK
  bool scratch = false;  // emptied at each run
};

struct Resources {
  uint64_t mem = 4ull << 30;
  uint64_t procs = 256;
  std::optional<double> cpus;
  std::optional<uint64_t> cpu, wall, fsize, disk, inodes;
  bool names(std::string_view field) const;  // the profile itself set it
  std::vector<std::string> named;
};

struct Request {
  const TierKind* tier = &kProcess;
  // fs.*, with $WORK replaced; absolute, without empty, "." or ".." components.
  std::vector<std::string> read, write, deny, optional, deny_always, hide_always;
  std::vector<PrivateDir> private_dirs;
  bool host_network = false;
  bool unix_sockets = false;
  std::vector<uint64_t> loopback;
  bool names_image = false, denies_browser_verbs = false;
  // Of a tier with a network: h5i.egress/1, what the names of net.egress meant on the host, and lines for /etc/hosts.
  json::Value egress;
  std::string hosts;
  Resources resources;
  // paths.*; empty: not there
  std::string work, git, spool, private_root, home, repo_git;
  std::vector<std::string> objects;
  uint32_t uid = 0, gid = 0, box_uid = 0, box_gid = 0;
  // command; absent for verify_exec and explain
  std::vector<std::string> argv, exec;
  std::string cwd;
  bool readonly = false;
  std::map<std::string, std::string> env;

  bool as_root() const { return uid == 0; }
};

// POLICY_PATH, POLICY_EGRESS_TIER, POLICY_LIMIT_TIER, INVALID.
sdk::Result<Request> read_request(const json::Value& document, const TierKind& tier = kProcess);

}  // namespace h5i::confined
