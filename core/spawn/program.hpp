// A plan compiled for the child: everything that must be allocated, opened or formatted is, before clone.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/spawn/child.hpp"
#include "core/spawn/plan.hpp"

namespace h5i::spawn {

// Owns what `program` points to; not movable, so that it stays there.
class Compiled {
 public:
  // `privileged`: this process is root, so sources are opened here as detached trees (the child's ids could not reach
  // them) and, where the plan says so, with mapped owners.
  Result<void> compile(const Plan& plan, bool privileged);
  ChildProgram program;

  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

 private:
  const char* keep(std::string s);
  const char* const* keep_list(const std::vector<std::string>& list);
  Result<ChildMount> mount(const MountSpec& m, size_t index, bool privileged);

  std::deque<std::string> text_;
  std::deque<std::vector<const char*>> lists_;
  std::vector<ChildMount> mounts_;
  std::vector<ChildRlimit> rlimits_;
  std::vector<ChildLandlockRule> rules_;
  std::vector<UniqueFd> trees_;
  os::seccomp::Program filter_;
  sock_fprog fprog_{};
  UniqueFd idmap_;
  uint32_t idmap_uid_ = 0, idmap_gid_ = 0;
};

// A failed step in words: "mount 3, bind /usr: no such file or directory".
std::string step_text(const Plan& plan, uint16_t stage, uint16_t index, int err);

}  // namespace h5i::spawn
