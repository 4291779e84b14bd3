// `box propose` and `box diff` after a few changes in a large tree, beside what git does for the same in a work tree.
#include <unistd.h>

#include <fstream>

#include "tests/bench/benches.hpp"

namespace h5i::bench {
namespace {

constexpr int kChanges = 10;

void change(const std::string& tree, const Settings& s, int round) {
  for (int i = 0; i < kChanges; i++) {
    int at = static_cast<int>(static_cast<long>(i) * s.scale / kChanges);
    std::ofstream f(tree + "/d" + std::to_string(at / 100) + "/f" + std::to_string(at) + ".txt", std::ios::app);
    f << "round " << round << "\n";
  }
}

}  // namespace

std::vector<Table> propose_scale(const Settings& s) {
  std::string repo = large_repository(s, s.scratch), git = find_program("git"), h5i = s.prefix + "/bin/h5i";
  run_once({{h5i, "box", "create", "--name", "big", "--isolation", "workspace"}, repo});
  std::string work = repo + "/.git/h5i/boxes/human/big/work", tree = s.scratch + "/tree";
  run_once({{git, "worktree", "add", "-q", "-b", "peer", tree}, repo});
  const int rounds = s.rounds < 10 ? 2 : 5;
  Series diff, propose, again, status, commit;
  for (int i = 0; i <= rounds; i++) {
    change(work, s, i);
    change(tree, s, i);
    double a = run_timed({{h5i, "box", "diff", "big"}, repo});
    double b = run_timed({{h5i, "box", "propose", "big"}, repo});
    double c = run_timed({{h5i, "box", "propose", "big"}, repo});
    double d = run_timed({{git, "diff"}, tree});
    double e = run_timed({{git, "add", "-A"}, tree}) + run_timed({{git, "commit", "-q", "-m", "x"}, tree});
    if (i == 0) continue;
    diff.us.push_back(a), propose.us.push_back(b), again.us.push_back(c), status.us.push_back(d), commit.us.push_back(e);
  }
  Table t;
  t.name = "propose_scale";
  t.caption = "Seconds, " + std::to_string(kChanges) + " files changed of " + std::to_string(s.scale) + ", " + std::to_string(rounds) + " rounds, on " +
              file_system_of(s.scratch) + ".";
  t.head = {"what", "p50", "slowest", "beside git"};
  auto seconds = [](double us) { return number(us / 1e6); };
  t.rows = {{"h5i box diff", seconds(diff.at(0.5)), seconds(diff.at(1)), number(ratio(diff, status)) + " x"},
            {"git diff", seconds(status.at(0.5)), seconds(status.at(1)), "1 x"},
            {"h5i box propose", seconds(propose.at(0.5)), seconds(propose.at(1)), number(ratio(propose, commit)) + " x"},
            {"git add -A, git commit", seconds(commit.at(0.5)), seconds(commit.at(1)), "1 x"},
            {"h5i box propose, nothing new", seconds(again.at(0.5)), seconds(again.at(1)), ""}};
  run_once({{h5i, "box", "rm", "big", "--force"}, repo});
  run_once({{git, "worktree", "remove", "--force", tree}, repo});
  run_once({{"/bin/rm", "-rf", repo}, ""});
  return {t};
}

}  // namespace h5i::bench
