#include "limits.hpp"

#include <algorithm>
#include <cmath>

namespace h5i::confined {
namespace {

using json::Object;

// More descriptors than any tool chain wants; a larger hard limit lets one process hold much kernel memory.
constexpr uint64_t kMaxFiles = 65536;
// A process that ignores SIGXCPU is killed this many seconds later.
constexpr uint64_t kCpuGrace = 2;
constexpr uint64_t kCpuPeriodUs = 100000;

Object rlimit(const char* name, uint64_t soft, uint64_t hard) {
  return {{"name", name}, {"soft", soft}, {"hard", hard}};
}

bool controls(const json::Value& cgroup, std::string_view controller) {
  const json::Array& list = cgroup["controllers"].array();
  return cgroup["available"].boolean() &&
         std::any_of(list.begin(), list.end(), [&](const json::Value& v) { return v.string() == controller; });
}

std::string mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

sdk::Result<Limits> build_limits(const Request& request, const HostFacts& facts) {
  const Resources& r = request.resources;
  Limits out;
  bool memory = controls(facts.cgroup, "memory"), pids = controls(facts.cgroup, "pids"),
       cpu = controls(facts.cgroup, "cpu");
  if (request.tier->network && !(memory && pids && cpu))
    return sdk::failure(H5I_E_TIER_PROBE_MISSING, "impossible here: missing cgroup-v2-delegation" + (facts.cgroup["reason"].string().empty() ? std::string() : " (" + facts.cgroup["reason"].string() + ")"));
  auto unheld = [&](const char* field, const char* reason, std::string detail) {
    out.not_enforced.push_back({field, reason, std::move(detail)});
  };

  Object files;
  if (memory) {
    files["memory.max"] = std::to_string(r.mem);
    files["memory.swap.max"] = "0";
    files["memory.oom.group"] = "1";
  } else {
    // DATA counts what a process may write in private; AS would refuse the large reservations of runtimes that use
    // little.
    out.rlimits.push_back(rlimit("data", r.mem, r.mem));
    unheld("resources.mem", "per-process",
           "no memory cgroup here: each process is held to " + mebibytes(r.mem) +
               " of private memory by RLIMIT_DATA, at worst " + std::to_string(r.procs) +
               " times that together; shared memory and memfds are not counted, files in memory (/tmp, "
               "/dev/shm, HOME) have sizes of their own");
  }

  // Since Linux 5.14 RLIMIT_NPROC counts within the user namespace of the process, which is the box's own.
  bool counts_the_box = facts.kernel_at_least(5, 14);
  if (pids) files["pids.max"] = std::to_string(r.procs);
  // One more where the group holds them: it refuses first then, and counts what it refused.
  const uint64_t tasks = r.procs + (pids ? 1 : 0);
  if (counts_the_box) out.rlimits.push_back(rlimit("nproc", tasks, tasks));
  if (!pids && !counts_the_box) {
    if (r.names("procs"))
      return sdk::failure(
          H5I_E_POLICY_LIMIT_TIER,
          "resources.procs: no pids cgroup here, and RLIMIT_NPROC counts all processes of the user before Linux 5.14");
    unheld("resources.procs", "no-cgroup",
           "no pids cgroup here, and RLIMIT_NPROC counts all processes of the user before Linux 5.14");
  }

  if (r.cpus && cpu) {
    auto quota = static_cast<uint64_t>(std::llround(*r.cpus * static_cast<double>(kCpuPeriodUs)));
    files["cpu.max"] = std::to_string(std::max<uint64_t>(quota, 1000)) + " " + std::to_string(kCpuPeriodUs);
  } else if (r.cpus) {
    unheld("resources.cpus", "no-cgroup", "no cpu cgroup here: the box may use every processor");
  } else {
    unheld("resources.cpus", "no-limit", "the profile sets none: the box may use every processor");
  }
  if (r.cpu) {
    out.rlimits.push_back(rlimit("cpu", *r.cpu, *r.cpu + kCpuGrace));
    // Where a group counts, the spawner ends the box when all its processes together have used what the rlimit gives each.
    if (!cpu)
      unheld("resources.cpu", "per-process",
             "no cpu cgroup here: each process is held to " + std::to_string(*r.cpu) + " s by RLIMIT_CPU, at worst " +
                 std::to_string(r.procs) + " times that together");
  }

  if (r.fsize) out.rlimits.push_back(rlimit("fsize", *r.fsize, *r.fsize));
  const char* disk =
      "what the box writes on disk is not limited here; files in memory (/tmp, /dev/shm, HOME) have sizes of their own";
  unheld("resources.disk", r.disk ? "no-backing" : "no-limit", disk);
  unheld("resources.inodes", r.inodes ? "no-backing" : "no-limit",
         "the number of files on disk is not limited here; files in memory have a limit of their own");

  out.rlimits.push_back(rlimit("core", 0, 0));
  uint64_t hard = std::min(facts.nofile_hard, kMaxFiles);
  out.rlimits.push_back(rlimit("nofile", std::min(facts.nofile_soft, hard), hard));
  if (!files.empty()) out.cgroup = Object{{"base", facts.cgroup["base"]}, {"limits", std::move(files)}};
  return out;
}

}  // namespace h5i::confined
