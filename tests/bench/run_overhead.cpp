// What a run of `true` costs end to end, receipt included: beside a bare exec, and beside bubblewrap with the same namespaces.
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <sstream>

#include "core/base/json.hpp"
#include "core/evidence/log.hpp"
#include "tests/bench/benches.hpp"

namespace h5i::bench {
namespace {

void make_boxes(const Settings& s, const std::string& repo) {
  std::string git = find_program("git");
  if (git.empty()) give_up("git makes the repository here and is not installed");
  run_once({{git, "init", "-q", "-b", "main", repo}, ""});
  run_once({{git, "-C", repo, "commit", "-q", "--allow-empty", "-m", "empty"}, ""});
  for (const char* tier : {"workspace", "process"})
    run_once({{s.prefix + "/bin/h5i", "box", "create", "--name", tier, "--isolation", tier}, repo});
}

Command run_of(const Settings& s, const std::string& repo, const std::string& tier) {
  return {{s.prefix + "/bin/h5i", "box", "run", tier, "--", "/bin/true"}, repo};
}

double seconds_of(const std::string& rfc3339) {
  tm t{};
  const char* rest = strptime(rfc3339.c_str(), "%Y-%m-%dT%H:%M:%S", &t);
  return rest ? static_cast<double>(timegm(&t)) + (*rest == '.' ? strtod(rest, nullptr) : 0) : 0;
}

// From the times that the records of each run carry: nothing is switched on for it.
Table phases(const std::string& repo) {
  std::vector<std::string> order;
  std::map<std::string, Series> gaps;
  std::string last;
  double before = 0;
  auto each = [&](uint64_t, const Json& r) {
    std::string kind = r["kind"].string();
    double now = seconds_of(r["time"].string());
    if (kind == "run-requested") last.clear();
    if (!last.empty()) {
      std::string name = last + " to " + kind;
      if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
      gaps[name].us.push_back((now - before) * 1e6);
    }
    last = kind == "receipt" ? "" : kind;
    before = now;
    return true;
  };
  if (!evidence::read_log(repo + "/.git/h5i/boxes/human/process/log.jsonl", each)) give_up("the box's log cannot be read");
  Table t;
  t.name = "run_phases";
  t.caption = "Where a run at `process` spends its time between its first record and its receipt, from the times in its own log (milliseconds; start-up before "
              "the first record and the way out after the receipt are not in it).";
  t.head = {"from record to record", "p50", "p99"};
  for (const std::string& name : order)
    if (gaps[name].us.size() >= 3) t.rows.push_back({name, milliseconds(gaps[name].at(0.5)), milliseconds(gaps[name].at(0.99))});
  return t;
}

// What the dynamic loader finds for it; a program without one is static.
std::string libraries(const std::string& file) {
  std::string ldd = find_program("ldd"), out;
  if (ldd.empty()) return "unknown";
  std::string found = output_of({{ldd, file}, ""});
  if (found.empty() || found.find("statically") != std::string::npos) return "nothing: static";
  std::stringstream lines(found);
  for (std::string l; std::getline(lines, l);) {
    std::stringstream words(l);
    std::string name;
    words >> name;
    if (name.rfind("linux-vdso", 0) == 0 || name.rfind("/lib", 0) == 0 || name.empty()) continue;
    out += (out.empty() ? "" : ", ") + name;
  }
  return out.empty() ? "only the loader" : out;
}

Table executables(const Settings& s) {
  struct Part {
    std::string file;
    Command cost;  // an empty one: mapped or executed only inside a run
  };
  std::string lib = s.prefix + "/libexec/h5i/";
  std::vector<Part> parts = {{s.prefix + "/bin/h5i", {{s.prefix + "/bin/h5i", "--version"}, ""}},
                             {lib + "h5i-host", {{lib + "h5i-host"}, "", 64}},
                             {lib + "h5i-init", {}},
                             {s.prefix + "/lib/h5i/plugins/1/tier-process.so", {}},
                             {s.prefix + "/lib/h5i/plugins/1/tier-workspace.so", {}},
                             {lib + "h5i-canary", {}},
                             {lib + "h5i-evidence", {{lib + "h5i-evidence", "--version"}, ""}},
                             {lib + "h5i-policy", {{lib + "h5i-policy", "--version"}, ""}},
                             {lib + "h5i-repo", {{lib + "h5i-repo", "--version"}, ""}}};
  std::vector<std::pair<std::string, Command>> starts;
  for (const Part& p : parts)
    if (!p.cost.argv.empty()) starts.emplace_back(p.file, p.cost);
  starts.emplace_back("true", Command{{"/bin/true"}, ""});
  auto times = interleaved(starts, std::max(3, s.rounds / 4));
  Table t;
  t.name = "executables";
  t.caption = "What each executable links and costs to start and end with nothing to do (milliseconds, p50; /bin/true beside them: " +
              milliseconds(times["true"].at(0.5)) + "). The first four are the whole path of a run at `process`.";
  t.head = {"file", "KiB", "links", "start and end"};
  for (const Part& p : parts) {
    struct stat st {};
    if (stat(p.file.c_str(), &st) != 0) continue;
    t.rows.push_back({p.file.substr(p.file.rfind('/') + 1), std::to_string((st.st_size + 1023) / 1024), libraries(p.file),
                      p.cost.argv.empty() ? "" : milliseconds(times[p.file].at(0.5))});
  }
  return t;
}

}  // namespace

std::vector<Table> run_overhead(const Settings& s) {
  std::string bwrap = find_program("bwrap"), disk = s.scratch + "/run", memory = s.memory.empty() ? "" : s.memory + "/run";
  make_boxes(s, disk);
  std::vector<std::pair<std::string, Command>> commands = {{"bare", {{"/bin/true"}, disk}}};
  if (!bwrap.empty())
    commands.push_back({"bwrap", {{bwrap, "--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
                                   "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev",
                                   "--tmpfs", "/tmp", "--bind", disk, disk, "/bin/true"},
                                  disk}});
  commands.push_back({"process", run_of(s, disk, "process")});
  commands.push_back({"workspace", run_of(s, disk, "workspace")});
  if (!memory.empty()) {
    make_boxes(s, memory);
    commands.push_back({"process, no flush", run_of(s, memory, "process")});
    commands.push_back({"workspace, no flush", run_of(s, memory, "workspace")});
  }
  auto times = interleaved(commands, s.rounds);

  Table t;
  t.name = "run_overhead";
  t.caption = "Milliseconds of a whole `h5i box run -- /bin/true`, proof cached as in every run but a policy's first, " + std::to_string(s.rounds) +
              " rounds in turn. With the final flush: the box lies on " + file_system_of(disk) + "; without: on tmpfs. Signing goes on beside, after the end: its time "
              "is the last column, in nobody's figure.";
  t.head = {"what", "p50", "p99", "beside bubblewrap", "over the bare exec", "then, beside"};
  std::string tmp = memory.empty() ? "" : ", no flush";
  for (const auto& [name, command] : commands) {
    const Series& x = times[name];
    t.rows.push_back({name == "bare" ? "/bin/true alone" : name == "bwrap" ? "bubblewrap, all namespaces" : "h5i box run, " + name, milliseconds(x.at(0.5)),
                      milliseconds(x.at(0.99)), bwrap.empty() ? "" : number(ratio(x, times["bwrap"])) + " x",
                      milliseconds(x.at(0.5) - times["bare"].at(0.5)), milliseconds(times[name + ", then"].at(0.5))});
  }
  const Series &process = times["process" + tmp], &workspace = times["workspace" + tmp];
  if (bwrap.empty()) {
    t.verdicts.push_back("bubblewrap is not installed here: no peer");
  } else {
    double r = ratio(process, times["bwrap"]);
    t.verdicts.push_back("bar: process at most 1.5 x bubblewrap, without the flush; here " + number(r) + " x: " + (r <= 1.5 ? "held" : "missed"));
  }
  double over = (workspace.at(0.5) - times["bare"].at(0.5)) / 1000;
  t.verdicts.push_back("bar: workspace at most 3 ms over a bare exec, without the flush; here " + number(over) + " ms: " + (over <= 3 ? "held" : "missed"));
  return {t, phases(memory.empty() ? disk : memory), executables(s)};
}

}  // namespace h5i::bench
