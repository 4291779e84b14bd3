// The verbs that change a repository, killed at any moment: what they change is all old or all new, the next command
// finishes or undoes it, and nothing is left, no lock and no half-made name.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <regex>

#include "tests/cli/project.hpp"
#include "tests/endurance/census.hpp"
#include "tests/endurance/chance.hpp"
#include "tests/endurance/victim.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

using Words = std::vector<std::string>;

struct Verb {
  const char* name;
  Words words;
  std::function<void(const Project&)> prepare;  // a box that the verb has something to do with
  std::function<void(const Project&, int round)> next;  // the next command, and what must hold then
};

// What a verb leaves on purpose: objects, reflogs, the evidence of boxes that are gone, the state of seals.
// Folders of refs go when their last ref does, or with the next. Objects that the library was writing lie about until git's own prune.
bool lasts(const std::string& line) {
  if (line.find("/objects/tmp_object_git2_") != std::string::npos) return true;
  if (line.rfind("04", 0) == 0 && line.find(" r/.git/refs/") != std::string::npos) return true;
  static const std::regex kLasts(
      "(/objects(/[0-9a-f]{2}(/[0-9a-f]{38})?)?|/logs(/.*)?|/h5i/evidence(/.*)?|/seals/[0-9a-f]+\\.json|/refs/h5i(/evidence)?(/[^.]*)?|/proved/.*\\.json)$");
  return std::regex_search(line, kLasts) && line.find(".lock") == std::string::npos && line.find("tmp") == std::string::npos;
}

std::vector<std::string> files(const Project& p) {
  std::vector<std::string> out;
  for (std::string& line : listing(p / ""))
    if (!lasts(line)) out.push_back(std::move(line));
  return out;
}

void create_changed(const Project& p) {
  p.create("fix");
  write_file(p.paths("fix").work() + "/hello.c", "int main(void) { return " + std::to_string(chance()() % 1000000) + "; }\n");
  for (int i = 0; i < 20; i++) write_file(p.paths("fix").work() + "/new/" + std::to_string(i), std::to_string(chance()()) + "\n");
  if (p.uid() != 0) give(p.paths("fix").work(), p.uid());
}

std::string output_of(const Ended& e) {
  std::string out = e.out;
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

void said(const Ended& e, const char* refusal = nullptr) {
  CAPTURE(e.out, e.err);
  CHECK((e.status == 0 || (refusal && is_refusal(e.err, refusal))));
}

void tree_is_whole(const Project& p) {
  CHECK(p.git("status --porcelain -uall").out == "");
  p.git("diff --exit-code HEAD");
}

std::vector<Verb> verbs() {
  auto again = [](Words words, const char* refusal) {
    return [words, refusal](const Project& p, int) { said(run(p.h5i(words)), refusal); };
  };
  Words create = {"box", "create", "--name", "fix", "--isolation", "process"}, propose = {"box", "propose", "fix", "--message", "m"}, apply = {"box", "apply", "fix", "--yes"},
        rebase = {"box", "rebase", "fix"}, rm = {"box", "rm", "fix", "--force"}, gc = {"box", "gc"};
  return {
      {"create", create, [](const Project&) {}, again(create, "box.exists")},
      {"propose", propose, create_changed,
       [propose](const Project& p, int) {
         said(run(p.h5i(propose)));
         CHECK(one_json(p.ok({"box", "status", "fix", "--json"}).out)["state"].string() == "proposed");
       }},
      {"apply", apply, create_changed,
       [apply](const Project& p, int round) {
         if (round % 2) said(run(p.h5i({"box", "diff", "fix"})));
         if (round % 2) tree_is_whole(p);
         said(run(p.h5i(apply)), "box.state");
         tree_is_whole(p);
         CHECK(read_file(p / "r/hello.c") == read_file(p.paths("fix").work() + "/hello.c"));
       }},
      {"export", {"box", "export", "fix", "--output", "../exported"}, create_changed,
       [](const Project& p, int) {
         Ended e = run(p.h5i({"box", "export", "fix", "--output", "../exported"}));
         CAPTURE(e.err);
         bool whole = std::filesystem::exists(p / "exported/report.md");
         if (e.status != 0) CHECK(whole);  // it had been finished
         CHECK(read_file(p / "exported/patch.diff").find("+int main") != std::string::npos);
         std::filesystem::remove_all(p / "exported");
       }},
      {"rebase", rebase,
       [](const Project& p) {
         create_changed(p);
         p.git("commit -q --allow-empty -m onwards");
         p.git("version > onwards && echo " + std::to_string(chance()()) + " >> onwards && git add onwards && git commit -qm further");
       },
       [rebase](const Project& p, int) {
         said(run(p.h5i(rebase)));
         CHECK(read_file(p.paths("fix").work() + "/onwards") == read_file(p / "r/onwards"));
         CHECK(read_file(p.paths("fix").work() + "/new/7") != "");
         said(run(p.h5i({"box", "run", "fix", "--", "git", "status"})));
       }},
      {"rm", rm, create_changed, again(rm, "box.not-found")},
      // Refs that git packed go by a new copy of the file that holds them all: with many, most of the verb is in there.
      {"rm over packed refs", rm,
       [](const Project& p) {
         create_changed(p);
         p.ok({"box", "propose", "fix", "--message", "m"});
         if (!std::filesystem::exists(p / "r/.git/packed-refs"))
           p.git("version > ../refs && for i in $(seq 2000); do echo create refs/many/$i HEAD; done > ../refs && git update-ref --stdin < ../refs && rm ../refs");
         p.git("pack-refs --all");
       },
       [rm](const Project& p, int) {
         said(run(p.h5i(rm)), "box.not-found");
         CHECK(output_of(p.git("for-each-ref refs/h5i/base refs/heads/h5i")) == "");
         p.git("pack-refs --all");
       }},
      {"gc", gc,
       [](const Project& p) {
         create_changed(p);
         p.ok({"box", "abort", "fix"});
       },
       again(gc, nullptr)},
      {"abort", {"box", "abort", "fix"}, create_changed,
       [](const Project& p, int) {
         said(run(p.h5i({"box", "abort", "fix"})));
         CHECK(one_json(p.ok({"box", "status", "fix", "--json"}).out)["state"].string() == "aborted");
       }},
  };
}

void killed_at_random(const Verb& v) {
  adopt_orphans();
  int met = 0, wanted = 0;
  for (uid_t uid : users()) {
    Project p(uid);
    auto clean_up = [&] {
      if (std::filesystem::exists(p.paths("fix").manifest())) said(run(p.h5i({"box", "rm", "fix", "--force"})));
    };
    // Twice without a kill: what the first leaves on purpose (folders, indexes) is there, and the length is a warm one's.
    double length = 0;
    for (int i = 0; i < 2; i++) {
      v.prepare(p);
      double begun = seconds_now();
      p.ok(v.words);
      length = seconds_now() - begun;
      v.next(p, i);
      clean_up();
    }
    CHECK(soon([] { return descendants().empty(); }));
    auto before = files(p);
    const int n = share(rounds(12), users().size());
    wanted += n;
    int here = 0;
    for (int round = 0; here < n && round < kDraws * n; round++) {
      double moment = uniform(0, 1.1 * length);
      CAPTURE(v.name, uid, seed(), round, moment);
      v.prepare(p);
      std::string head = output_of(p.git("rev-parse HEAD"));
      double begun = seconds_now();
      pid_t pid = start(p.h5i(v.words), p / "out", p / "err");
      if (!kill_at(Victim::core, pid, moment)) length = seconds_now() - begun;  // the newest measure of it
      int status = wait_for(pid, 60);
      CAPTURE(status, read_file(p / "err"));
      CHECK((status == 1000 + SIGKILL || status == 0));
      if (status != 0) here++;
      CHECK(soon([] { return descendants().empty(); }));  // gc's rm goes on without it
      v.next(p, round);
      clean_up();
      CHECK(soon([] { return descendants().empty(); }));
      std::filesystem::remove(p / "out");
      std::filesystem::remove(p / "err");
      auto after = files(p);
      CHECK(joined(difference(before, after)) == "");
      before = std::move(after);  // what one round left is told once
      CHECK(joined(holds_on(p / "")) == "");
      tree_is_whole(p);
    }
    met += here;
    p.git("fsck --strict --no-dangling");
    p.git("prune --expire=now");
    CHECK(output_of(p.git("count-objects -v | grep ^garbage")) == "garbage: 0");
  }
  printf("%s killed %d times of %d\n", v.name, met, wanted);
  CHECK(met == wanted);
}

}  // namespace

TEST_CASE("each verb that changes a repository killed at any moment") {
  for (const Verb& v : verbs()) SECTION(v.name) { killed_at_random(v); }
}
