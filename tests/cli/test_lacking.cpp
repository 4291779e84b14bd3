// Components that a machine loses one after the other: named at probe, at create, and at the run of a box that was made before. The cgroup is the guest's
// (tests/vm/lacking.sh), where `supervised` runs.
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
