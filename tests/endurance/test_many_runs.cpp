// Thousands of short runs by eight at once, each in a box of its own: none hangs, none is much slower than the others, and
// afterwards there is nothing more of anything than before.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "tests/cli/project.hpp"
#include "tests/endurance/census.hpp"
#include "tests/endurance/chance.hpp"
#include "tests/endurance/victim.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

constexpr int kBoxes = 8;

std::string box_name(int i) { return "b" + std::to_string(i); }

// Blobs of equal content are one file, so a run adds no file at all.
struct Counts {
  size_t descriptors, namespaces, processes;
  std::vector<std::string> files, groups, mounts;
};
Counts counts(const Project& p) {
  CHECK(soon([] { return descendants().empty(); }, 60));
  auto ours = descendants();
  for (Seen& s : marked(p / "")) ours.push_back(std::move(s));
  return {descriptors_of(getpid()), namespaces_of(ours), ours.size(), listing(p / ""), groups_of_ours(), holds_on(p / "")};
}

// One worker: `n` runs, their lengths in seconds on `out`.
int worker(const Project& p, int i, long n, int out) {
  for (long k = 0; k < n; k++) {
    double begun = seconds_now();
    Program program = p.h5i({"box", "run", box_name(i), "--", "true"});
    program.timeout_s = 60;
    Ended e = run(program);
    double took = seconds_now() - begun;
    if (e.status != 0) {
      fprintf(stderr, "run %ld of %d: %d %s\n", k, i, e.status, e.err.c_str());
      return 1;
    }
    if (write(out, &took, sizeof took) != sizeof took) return 2;
  }
  return 0;
}

}  // namespace

TEST_CASE("thousands of runs by eight at once over eight boxes") {
  adopt_orphans();
  const long total = amount("H5I_ENDURANCE_RUNS", 2000);
  Project p(users().back());  // as a user; as root each box has an id of its own, and the path is otherwise the same
  for (int i = 0; i < kBoxes; i++) {
    p.create(box_name(i));
    p.ok({"box", "run", box_name(i), "--", "true"});
  }
  Counts before = counts(p);
  std::vector<uintmax_t> log_before;
  for (int i = 0; i < kBoxes; i++) log_before.push_back(std::filesystem::file_size(p.paths(box_name(i)).log()));

  int pipes[2];
  REQUIRE(pipe2(pipes, O_CLOEXEC) == 0);
  std::vector<pid_t> workers;
  double begun = seconds_now();
  for (int i = 0; i < kBoxes; i++) {
    pid_t pid = fork();
    if (pid == 0) _exit(worker(p, i, total / kBoxes, pipes[1]));
    workers.push_back(pid);
  }
  close(pipes[1]);
  std::vector<double> took;
  double one;
  while (read(pipes[0], &one, sizeof one) == sizeof one) took.push_back(one);
  close(pipes[0]);
  for (pid_t pid : workers) {
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(status == 0);
  }
  double whole = seconds_now() - begun;
  REQUIRE(took.size() == static_cast<size_t>(total / kBoxes * kBoxes));
  std::sort(took.begin(), took.end());
  double p50 = took[took.size() / 2], p99 = took[took.size() * 99 / 100];
  printf("%zu runs in %.1f s: p50 %.1f ms, p99 %.1f ms, longest %.1f ms\n", took.size(), whole, p50 * 1e3, p99 * 1e3, took.back() * 1e3);
  CHECK(p99 < 20 * p50);

  Counts after = counts(p);
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.processes == 0);
  CHECK(after.namespaces == before.namespaces);
  CHECK(joined(difference(before.files, after.files)) == "");
  CHECK(joined(difference(before.groups, after.groups)) == "");
  CHECK(joined(after.mounts) == "");
  for (int i = 0; i < kBoxes; i++) {
    const std::string log = p.paths(box_name(i)).log();
    auto chain = evidence::verify_chain(log);
    REQUIRE(chain);
    // A record more or less for the first run; then every run writes as much as every other.
    double each = static_cast<double>(std::filesystem::file_size(log) - log_before[static_cast<size_t>(i)]) / static_cast<double>(total / kBoxes);
    double first = static_cast<double>(log_before[static_cast<size_t>(i)]);
    CAPTURE(each, first);
    CHECK(each < 2 * first);
    if (i == 0) printf("a run adds %.0f bytes to its log\n", each);
    p.ok({"log", "verify", box_name(i)});
  }
}
