// Components that a machine loses one after the other: named at probe, at create, and at the run of a box that was made before. Where `supervised` runs
// to its end, the same is tried in a guest (tests/vm/lacking.sh).
#include "tests/cli/project.hpp"
#include "tests/support/losses.hpp"

using namespace h5i;
using namespace h5i::test;

TEST_CASE("what a tier needs is named when it is taken away, at probe, create and run, and nothing runs at another tier") {
  for (uid_t uid : users()) {
    Project p(uid);
    p.create("made");
    CHECK(run(p.h5i({"box", "run", "made", "--", "echo", "ran"})).out == "ran\n");
    for (const Loss& loss : losses()) {
      if (loss.rules.empty()) continue;
      CAPTURE(uid, loss.component);
      auto without = [&](std::vector<std::string> words) {
        Program program = p.h5i(std::move(words));
        program.before_exec = [&] {
          if (!install(loss.rules)) _exit(99);
        };
        return run(program);
      };
      auto named = [&](const Ended& e, int status) {
        CAPTURE(e.out, e.err);
        CHECK(e.status == status);
        CHECK(is_refusal(e.err, "tier.probe.missing"));
        CHECK(e.err.find("missing ") != std::string::npos);
        CHECK(e.err.find(loss.component) != std::string::npos);
        CHECK(e.out.find("ran") == std::string::npos);
      };
      Ended probe = without({"box", "probe", "--tier", "supervised"});
      CAPTURE(probe.out);
      size_t missing = probe.out.find("impossible here: missing");
      CHECK((missing != std::string::npos && probe.out.find(loss.component, missing) != std::string::npos));
      named(without({"box", "create", "--name", "new", "--isolation", "supervised"}), 1);
      CHECK(access(p.paths("new").dir.c_str(), F_OK) != 0);
      // `process` has no packet rules to lose.
      if (std::string(loss.component) != "nftables") named(without({"box", "run", "made", "--", "echo", "ran"}), 125);
    }
    CHECK(run(p.h5i({"box", "run", "made", "--", "echo", "ran"})).out == "ran\n");  // the control: nothing of it lasts
  }
}

// Its folder may come from a time, or a machine, that had them all.
TEST_CASE("a supervised box that was made before is refused at its run, by the name of what is missing now, and nothing runs in it") {
  for (uid_t uid : users()) {
    RunWorld w(uid);
    session::BoxPaths kept = w.box({.tier = "supervised", .slug = "kept"});
    w.box({.slug = "other"});
    size_t refused = 0;
    std::string by_nature;  // what this machine lacks without any loss
    for (int lost = -1; lost < static_cast<int>(losses().size()); lost++) {
      const Loss* loss = lost < 0 ? nullptr : &losses()[static_cast<size_t>(lost)];
      CAPTURE(uid, loss ? loss->component : "nothing");
      Program program = w.sh("kept", "echo ran > ran; echo ran");
      program.before_exec = [&] {
        if (loss && !loss->rules.empty() && !install(loss->rules)) _exit(99);
      };
      Ended e = run(program);
      CAPTURE(e.out, e.err);
      if (!loss) {
        if (e.status != 0) by_nature = e.err;
        continue;
      }
      if (loss->rules.empty() && by_nature.empty()) continue;  // it is no call that takes this one away, and it is there
      CHECK(e.status == 125);
      CHECK(is_refusal(e.err, "tier.probe.missing"));
      size_t missing = e.err.find("missing ");
      REQUIRE(missing != std::string::npos);
      CHECK(e.err.find(loss->component, missing) != std::string::npos);
      // The control: it is named because it was lost.
      if (!loss->rules.empty()) CHECK(by_nature.find(loss->component) == std::string::npos);
      CHECK(e.out.empty());
      CHECK(access((kept.work() + "/ran").c_str(), F_OK) != 0);
      Json last = w.last(kept, "run-refused");
      CHECK(last["id"].string() == "tier.probe.missing");
      CHECK(last["evidence"].string().find(loss->component) != std::string::npos);
      refused++;
    }
    CHECK(w.records(kept, "receipt").size() == (by_nature.empty() ? 1 : 0));
    CHECK(refused >= 8);
    CHECK(run(w.sh("other", "echo ran")).out == "ran\n");  // and `process` runs all the while
  }
}
