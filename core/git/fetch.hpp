// Objects from another repository, by libgit2's own transports.
#pragma once
#include "core/git/repository.hpp"

namespace h5i::git {

struct RemoteHead {
  std::string name;  // "HEAD", "refs/heads/main", "refs/pull/7/head"
  Oid target;
};

// Connects to `url` (which check_url() accepted), lists what it has, lets `choose` pick names, downloads what they reach
// into `repo` and returns the picked ones. No ref of `repo` changes, no tag follows, url.insteadOf has no effect.
// `progress` hears of objects and bytes as they arrive.
struct Arrived {
  uint64_t objects = 0, of = 0, bytes = 0;
};
Result<std::vector<RemoteHead>> fetch(const Repository& repo, const std::string& url,
                                      const std::function<Result<std::vector<std::string>>(const std::vector<RemoteHead>&)>& choose,
                                      const std::function<void(const Arrived&)>& progress = {});

}  // namespace h5i::git
