// What the core sees of a box from outside, through /proc, while the workload waits for its go: compared with the plan
// that the spawner says it executes and with what the tier claims. Landlock and the bytes of a filter cannot be seen from
// outside; they are listed as self-reported and proved by verify_exec.
//
// read_*() look, judge() decides and is pure.
#pragma once
#include <sys/types.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::session {

inline constexpr std::array<const char*, 7> kNamespaces = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};

struct IdMap {
  uint64_t inside = 0, outside = 0, count = 0;
  bool operator==(const IdMap&) const = default;
};

struct MountSeen {
  std::string target, fstype;
  std::vector<std::string> options;  // of the mount, not of the superblock
};

// One process, as /proc shows it to us. What could not be read is absent, which judge() counts against the box.
struct ProcessFacts {
  pid_t pid = 0, parent = 0;
  int no_new_privs = -1, seccomp = -1, seccomp_filters = -1;
  std::map<std::string, std::string> capabilities;  // "Inh" "Prm" "Eff" "Bnd" "Amb": hexadecimal as printed
  std::vector<uint64_t> uids, gids;                 // real, effective, saved, file system
  std::map<std::string, std::string> namespaces;    // "net": "net:[4026531840]"
  int user_depth = -1;                              // user namespaces between ours and its own; -1: not to be seen
  std::vector<IdMap> uid_map, gid_map;
  std::vector<MountSeen> mounts;
  std::string cgroup;                               // path of the v2 hierarchy
  std::map<std::string, std::string> cgroup_files;  // what its group says, of the files that the plan sets
  std::map<std::string, std::string> limits;        // by the first column of /proc/PID/limits, soft value
  uint64_t exe_dev = 0, exe_ino = 0;
  int descriptors = -1;                             // open ones; -1: they could not be listed
  std::vector<int> kept_descriptors;                // above 2, that an exec would not close
};

// Reads through one descriptor of /proc/PID. The caller checks afterwards, by its pidfd, that the
// process still lives: then the number was its own all the while.
// Descriptors and mounts only when `whole`.
Result<ProcessFacts> read_process(pid_t pid, bool whole);
// The files of the process's group that `limits` of a plan names.
void read_cgroup_files(const Json& limits, ProcessFacts* process);
// Parsers, for tests.
std::vector<MountSeen> parse_mountinfo(std::string_view text);
void parse_status(std::string_view text, ProcessFacts* out);

struct AttestInput {
  Json plan;                     // what the spawner executes
  std::vector<std::string> claims;  // of the tier's manifest
  Json policy;                   // resolved
  std::string work;              // replaces $WORK in policy paths
  ProcessFacts self;             // this process
  std::optional<ProcessFacts> init;  // absent when the plan has none
  ProcessFacts workload;
  pid_t spawner = 0;
  uint64_t init_dev = 0, init_ino = 0;  // our h5i-init on disk; 0: it was run from a sealed copy, whose digest follows
  bool init_digest_ok = false;
};

struct Attestation {
  Json facts;                            // for the receipt: {"observer":"core","no_new_privs":...}
  std::vector<std::string> mismatches;   // in words; empty: the box is what the plan says
};
Attestation judge(const AttestInput& in);

// What the plan must have for the tier's claims to be true at all; each line is one claim without ground.
std::vector<std::string> unfounded_claims(const Json& plan, const std::vector<std::string>& claims, const Json& policy);

}  // namespace h5i::session
