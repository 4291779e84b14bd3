// Control groups: where a group of the session's own could be made, proved by making one. Never at the root of the
// hierarchy, never in a v1 tree: those are the machine's.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::os {

struct CgroupBase {
  bool available = false;
  std::string base;                      // absolute path of the directory that takes our groups
  std::string via;                       // "delegated", "service-manager"
  std::vector<std::string> controllers;  // that a child group there really got
  std::string reason;                    // why not, in words
};

// `mountinfo` and `self_cgroup` are the texts of /proc/self/mountinfo and /proc/self/cgroup: where the unified
// hierarchy is mounted, which group of it this process is in, and which controllers v1 trees hold. Pure.
struct CgroupView {
  std::string mount;                    // of cgroup2, empty when there is none
  std::string own;                      // this process's group in it, "/" for the root
  std::vector<std::string> held_by_v1;  // controllers with a v1 mount
};
CgroupView parse_cgroup_view(const std::string& mountinfo, const std::string& self_cgroup);

// The trial (create, enable, limit, move in, remove): in the own group when it is delegated, else in a scope asked of the service manager.
// A group's children get no controller while it holds processes itself, so all those of that group move into a group "h5i-callers" in it:
// this process, and `also`, children of it that are to start others in groups of the base. A further call finds the same base again.
CgroupBase find_cgroup_base(const std::vector<pid_t>& also = {});

// A group for one run beneath `base`, with `limits` written (file name -> text). Removed by remove_cgroup. It is owned as long as `dir` or a
// copy of it is open: the kernel lets go when the last process that has one ends. Groups that nobody owns any more are cleared first.
struct Cgroup {
  UniqueFd dir;
  std::string base, name;
};
Result<Cgroup> make_cgroup(const std::string& base, const std::map<std::string, std::string>& limits);

// Groups that are made here are called by one of these and 16 hexadecimal digits, small letters.
inline constexpr std::string_view kBoxGroup = "h5i-box-", kTrialGroup = "h5i-trial-";
bool is_group_name(std::string_view name);
// Kills and removes what make_cgroup and the trial made beneath `base` and nobody owns any more; their names. A directory is touched only when it
// is called so, is a control group, belongs to this user and has no owner that lives, in whatever pid namespace. May be called at any time by
// any number of processes.
std::vector<std::string> clear_dead_groups(const std::string& base);
// Where this process's groups would be made without asking anybody, empty when there is no such place.
std::string own_place();

// Every process of it, by cgroup.kill, or one by one where the kernel lacks that file.
Result<void> kill_cgroup(const Cgroup& group);
Result<void> remove_cgroup(const Cgroup& group);

struct CgroupUsage {
  uint64_t user_us = 0, system_us = 0, memory_peak = 0;
  uint64_t oom_kills = 0;      // processes that the kernel killed because the group was at its memory limit
  uint64_t tasks_refused = 0;  // because the group was at its limit of tasks
};
// Fields that the group does not have stay 0.
CgroupUsage cgroup_usage(const Cgroup& group);
// "user_usec 12\nsystem_usec 3\n": the value of `key`, 0 when absent. Pure.
uint64_t flat_keyed(const std::string& text, const std::string& key);

}  // namespace h5i::os
