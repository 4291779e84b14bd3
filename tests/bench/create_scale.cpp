// `box create` on a large repository beside `git worktree add`.
#include <sys/stat.h>

#include <fstream>

#include "tests/bench/benches.hpp"

namespace h5i::bench {

std::string large_repository(const Settings& s, const std::string& dir) {
  std::string repo = dir + "/large", git = find_program("git");
  if (git.empty()) give_up("git is the peer here and is not installed");
  run_once({{git, "init", "-q", "-b", "main", repo}, ""});
  for (int i = 0; i < s.scale; i++) {
    std::string sub = repo + "/d" + std::to_string(i / 100);
    if (i % 100 == 0) mkdir(sub.c_str(), 0755);
    std::ofstream f(sub + "/f" + std::to_string(i) + ".txt");
    // 40 bytes to 4 KiB, each file its own content.
    for (int n = 0; n <= (i * 7) % 100; n++) f << "file " << i << " line " << n << " of the bench's tree\n";
  }
  run_once({{git, "-C", repo, "add", "-A"}, ""});
  run_once({{git, "-C", repo, "commit", "-q", "-m", "large"}, ""});
  run_once({{git, "-C", repo, "repack", "-a", "-d", "-q"}, ""});
  return repo;
}

std::vector<Table> create_scale(const Settings& s) {
  std::string repo = large_repository(s, s.scratch), git = find_program("git");
  const int rounds = s.rounds < 10 ? 2 : 5;
  Series ours, theirs, removed, git_removed;
  for (int i = 0; i <= rounds; i++) {
    std::string n = std::to_string(i);
    double create = run_timed({{s.prefix + "/bin/h5i", "box", "create", "--name", "b" + n, "--isolation", "workspace"}, repo});
    double add = run_timed({{git, "worktree", "add", "-q", "-b", "w" + n, s.scratch + "/w" + n}, repo});
    double rm = run_timed({{s.prefix + "/bin/h5i", "box", "rm", "b" + n, "--force"}, repo});
    double remove = run_timed({{git, "worktree", "remove", "--force", s.scratch + "/w" + n}, repo});
    if (i == 0) continue;
    ours.us.push_back(create), theirs.us.push_back(add), removed.us.push_back(rm), git_removed.us.push_back(remove);
  }
  Table t;
  t.name = "create_scale";
  t.caption = "Seconds, " + std::to_string(s.scale) + " files, " + std::to_string(rounds) + " rounds in turn, on " + file_system_of(s.scratch) + ".";
  t.head = {"what", "p50", "slowest", "beside git"};
  auto seconds = [](double us) { return number(us / 1e6); };
  t.rows = {{"h5i box create", seconds(ours.at(0.5)), seconds(ours.at(1)), number(ratio(ours, theirs)) + " x"},
            {"git worktree add", seconds(theirs.at(0.5)), seconds(theirs.at(1)), "1 x"},
            {"h5i box rm --force", seconds(removed.at(0.5)), seconds(removed.at(1)), number(ratio(removed, git_removed)) + " x"},
            {"git worktree remove --force", seconds(git_removed.at(0.5)), seconds(git_removed.at(1)), "1 x"}};
  t.verdicts = {"bar: create not slower than git worktree add; here " + number(ratio(ours, theirs)) + " x: " +
                (ratio(ours, theirs) <= 1 ? "held" : "missed")};
  run_once({{"/bin/rm", "-rf", repo}, ""});
  return {t};
}

}  // namespace h5i::bench
