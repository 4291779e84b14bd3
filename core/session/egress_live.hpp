// Egress rules of a box that runs: added and removed from the host, recorded before and after, held by the same packet rules as
// those that it was started with.
#pragma once
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "core/base/json.hpp"
#include "core/base/result.hpp"
#include "core/session/control.hpp"
#include "core/session/egress.hpp"
#include "core/spawn/client.hpp"

namespace h5i::session {

// What holds a running box, as its plan has it.
struct EgressHeld {
  Json plan;            // h5i.plan/1 with "network"; its /etc/hosts too, when the tier made one of `hosts`
  std::string hosts;    // of h5i.run/1: the pinned lines
  uint64_t numbers = 0; // destinations that were added so far: an id is never used twice in a run
};

// h5i.egress-change/1: {"do": "add"|"remove", "rules": [canonical rule], "addresses": {name: [address]}}. Every address is checked
// here. `done`: the rules that made a difference, as text; `left_out`: [{"rule","address"}] where a name points and no box may go.
// NOT_FOUND: a rule to remove is not held; EGRESS_RESOLVE: a rule to add leads nowhere; BOX_NO_EGRESS: the box has no way out.
struct EgressChanged {
  EgressHeld held;
  Json done = json::Array{}, left_out = json::Array{};
};
Result<EgressChanged> change_egress(const EgressHeld& held, const Json& request);

// The rules of `held`: [{"rule", "addresses", "ports"}].
Json egress_rules(const EgressHeld& held);

class EgressLive {
 public:
  struct Owner {
    std::function<Result<void>(std::string kind, Json body)> record;
    std::function<std::string(const EgressHeld&)> effective_digest;
    std::string policy_digest;
  };
  static Result<EgressLive> open(const BoxPaths& paths, EgressHeld held, spawn::SpawnWatch* watch, Owner owner);
  EgressLive(EgressLive&&) noexcept = default;

  int fd() const { return control_.fd(); }
  // The workload is what it should be: its mounts are where a new hosts file goes. What could not be opened is told when needed.
  void started(pid_t workload);
  void on_request();
  // LOG_WRITE, or RUN_VIOLATION when nobody knows which rules hold: the box must end.
  Result<void> on_said(const Json& said, bool certain);
  const Json& changes() const { return changes_; }  // of the receipt: what was done, in order

 private:
  struct Pending {
    UniqueFd connection;
    EgressChanged next;
    Json body;  // of the records
  };
  EgressLive(ControlSocket control, EgressHeld held, spawn::SpawnWatch* watch, Owner owner)
      : control_(std::move(control)), held_(std::move(held)), watch_(watch), owner_(std::move(owner)) {}
  Result<void> begin(ControlSocket::Asked& asked);
  void refuse(const UniqueFd& connection, const Error& e);

  ControlSocket control_;
  EgressHeld held_;
  spawn::SpawnWatch* watch_;
  Owner owner_;
  UniqueFd user_, mnt_;
  std::optional<Pending> pending_;
  Json changes_ = json::Array{};
};

}  // namespace h5i::session
