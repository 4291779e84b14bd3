// The spawn plan, h5i.plan/1 (docs/spawn-plan.md): decoded strictly, so that what is hashed, printed and executed is
// one and the same thing. Nothing here touches the system.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/json.hpp"
#include "core/base/result.hpp"
#include "core/os/seccomp.hpp"

namespace h5i::spawn {

struct MountSpec {
  enum class Kind { bind, tmpfs, proc, devpts, mask, dir, file, symlink } kind = Kind::dir;
  std::string target;
  std::string source;  // bind
  uint64_t flags = 0;  // os::kMount*; bind, tmpfs
  bool recursive = false, idmap = false;
  bool optional = false;  // mask: a target that does not exist is nothing to hide
  uint64_t size = 0, inodes = 0;
  unsigned mode = 0;
  std::string content;  // file
  std::string to;       // symlink
};

struct RlimitSpec {
  int resource = 0;
  std::string name;
  uint64_t soft = 0, hard = 0;  // UINT64_MAX: infinity
};

struct LandlockRule {
  std::string path;  // empty: a port rule
  uint64_t port = 0;
  uint64_t access = 0;
};
struct LandlockSpec {
  int abi = 0;
  uint64_t handled_fs = 0, handled_net = 0, scoped = 0;
  std::vector<LandlockRule> rules;
};

struct SeccompSpec {
  os::seccomp::Program program;
  std::string sha256;
  bool notify = false;
  std::map<uint32_t, int> answers;  // system call number -> errno
  int default_answer = 0;
};

// The box's own network behind packet rules; h5i-net reads `egress` strictly.
struct NetworkSpec {
  Json egress;         // h5i.egress/1
  std::string uplink;  // "none", "any", "slirp4netns", "pasta"; for a canary "none", "observed"
  bool host_loopback = false;
};

struct Plan {
  std::string digest;  // canonical_digest() of the document
  std::string tier;
  std::vector<std::string> namespaces;
  uint64_t clone_flags = 0;
  bool nested_user = false;
  uint32_t inside_uid = 0, inside_gid = 0, outside_uid = 0, outside_gid = 0;
  bool identity_map = false;
  bool has_root = false;
  uint64_t root_size = 0, root_inodes = 0;
  std::vector<MountSpec> mounts;
  std::string hostname;
  bool loopback = false;
  std::optional<NetworkSpec> network;
  std::string cwd;
  std::vector<std::string> exec, argv;
  std::map<std::string, std::string> env;
  unsigned umask = 022;
  std::vector<RlimitSpec> rlimits;
  std::string cgroup_base;  // empty: none
  std::map<std::string, std::string> cgroup_limits;
  bool keep_capabilities = false;
  bool no_new_privs = false;
  std::optional<LandlockSpec> landlock;
  std::optional<SeccompSpec> seccomp;
  bool init = false;
  std::optional<std::vector<std::vector<std::string>>> canary;
  Json not_enforced;

  bool has(uint64_t namespace_flag) const { return (clone_flags & namespace_flag) != 0; }
};

// INVALID with the place ("mounts[3].source") for anything that docs/spawn-plan.md does not allow.
Result<Plan> decode_plan(std::string_view document);
Result<Plan> decode_parsed_plan(const Json& document);

// What the digest covers: the plan without the command (argv, exec, cwd, canary, values of env), with session values
// replaced by their names and the filter by its digest.
struct Names {
  // Path or text -> name, for example "/home/u/.local/share/h5i/boxes/x/work" -> "$WORK". A path is replaced as a whole
  // or up to a '/'; inside `content` and the hostname everywhere. A '$' that was there already is doubled.
  std::vector<std::pair<std::string, std::string>> values;
  // The box's own ids, when they were drawn for it from the reserved range: written as "$BOXUID", "$BOXGID".
  std::optional<uint32_t> box_uid, box_gid;
};
Result<Json> effective_form(std::string_view document, const Names& names);
// Of a document that was decoded without an error.
Json effective_form_of(Json document, const Names& names);
Result<EffectiveDigest> effective_digest(std::string_view document, const Names& names);

}  // namespace h5i::spawn
