// The public face of the policy room: from what a repository, a host and a command line say to one document.
//
//   auto resolved = policy::resolve(input);              // everything but the tier
//   ... the tier is chosen (core/plugin), it tells what it claims on this host ...
//   auto pinned = policy::with_tier(*resolved, facts);   // tier-dependent refusals, "tier" set, digest computed
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/json.hpp"
#include "core/base/result.hpp"
#include "core/policy/host_policy.hpp"

namespace h5i::policy {

// The bytes of a configuration file that the caller read itself, for example from a commit.
struct ConfigBytes {
  std::string name;   // as errors name it: ".h5i/env.yaml"
  std::string bytes;
  bool toml = false;
};

struct ResolveInput {
  // Where the repository's configuration is: either a directory whose .h5i/env.yaml or .h5i/env.toml is opened
  // beneath `repo_root_fd` (borrowed; no symbolic links; both present is refused), or bytes. Neither: built-ins only.
  int repo_root_fd = -1;
  std::optional<ConfigBytes> config;

  std::optional<std::string> profile;    // --profile
  std::optional<std::string> isolation;  // --isolation; "auto" is the same as nothing
  std::optional<std::string> image;      // --image, above the profile's, above the repository's
  std::optional<std::string> audit;      // --audit all|signal|none

  std::string home;  // absolute, what `~` means; empty: unset, and `~` in a profile is an error
  std::string repo;  // absolute, what `$REPO` means; empty: unset
  std::vector<std::string> own_dirs;  // h5i's directories where this user has them: never granted
  uint32_t uid = 0;
  std::string agent;  // --agent or $H5I_AGENT, empty when neither: chooses what the profile `agent` means
  // The runtimes ("claude", "codex") that this user has installed; see installed_runtimes().
  std::vector<std::string> runtimes;

  bool command_extractors = false;  // H5I_ALLOW_COMMAND_EXTRACTORS=1
  HostPolicy host;  // from load_host_policy(); default: no ceiling

  // True when `path` exists on the host. Unset: grants are not looked up, and a missing one is refused at the run.
  std::function<bool(const std::string& path)> exists;
  // True when some tier (empty `tier`: any that auto would try; else that one) holds all `claims` here. Decides
  // whether the agent profile may be taken without --profile. Unset: nothing beyond what tier-process holds.
  std::function<bool(const std::string& tier, const std::vector<std::string>& claims)> holds;
};

struct Resolved {
  Json document;             // schema h5i.policy/1; "tier" is absent until with_tier()
  PolicyDigest digest;       // canonical_digest(document); empty until with_tier()
  std::string profile;       // "review"
  std::string profile_from;  // "flag", "agent", "default"
  std::string defined_at;    // ".h5i/env.yaml:4:3" or "built-in"
  std::string isolation;     // the tier that the profile names; empty: none
  std::string isolation_at;  // where it does
  std::string image;         // empty: none
  std::string image_from;    // "flag", "profile", "repository"
  HostPolicy host;           // as given, for with_tier()
  std::vector<std::string> notes;  // lines for the person: skipped grants, why this profile
  // `field` ("resources.mem") -> where it was set: "review (.h5i/env.yaml:9:22)", "built-in default", "flag".
  std::vector<std::pair<std::string, std::string>> origins;
};

// Every error of the configuration, the first as `error()` of resolve(); policy check prints all.
struct Problems {
  std::vector<Error> errors;
};

Result<Resolved> resolve(const ResolveInput& input, Problems* all = nullptr);

// What a chosen tier says about itself on this host.
struct TierFacts {
  TierId tier;
  std::set<std::string> claims;  // "fs.read", "net.egress", ... as in docs/glossary.md and `h5i.probe/1`
  bool confines = true;          // false: nothing is enforced by design (workspace); limits are then only reported
  bool host_network = false;     // may give the host's network (net.mode: host)
};

// From a tier's answer to `probe` (h5i.probe/1), or from the claims of its manifest where nothing was probed. A tier
// without a claim on files or network confines nothing; one that enforces egress has a network of its own.
TierFacts facts_of(const TierId& tier, const std::set<std::string>& claims);
TierFacts facts_from_probe(const Json& probe);

// One line of what this tier does not hold of the policy; becomes not_enforced of plan and receipt.
struct Unheld {
  std::string field, reason, detail;
};

// Sets the tier, runs the refusals that depend on it, computes the digest. Refuses:
//   policy.egress-unenforceable  egress rules without the claim net.egress
//   policy.limit-unenforceable   a limit that the profile itself names and the tier cannot hold (mem, procs, cpu, wall,
//                                fsize, output; disk, inodes, cpus, net.loopback, container.image and browser.deny may be declared instead)
//   policy.field-unenforceable   another field that the tier must hold: fs.*, net.mode, net.unix, env.*; --image where the tier
//                                takes none; at a tier that confines nothing besides that only an fs.deny that a file names
//   policy.isolation             the profile names another tier
//   policy.above-ceiling         host policy does not allow the tier
Result<Resolved> with_tier(Resolved resolved, const TierFacts& facts);

// The fields of `document` that a tier with these facts does not hold, in the order of docs/policy.md.
std::vector<Unheld> unheld_fields(const Json& document, const TierFacts& facts);

// Runtimes found in PATH or by their state directory in `home`. Looks at files, runs nothing.
std::vector<std::string> installed_runtimes(const std::string& home, const std::string& path_variable);

// The names that resolve() knows for this input: built-ins and those of the file, sorted.
struct ProfileName {
  std::string name, defined_at, summary;
};
Result<std::vector<ProfileName>> list_profiles(const ResolveInput& input);

}  // namespace h5i::policy
