#include "plugins/tier-workspace/plan.hpp"
#include "tests/spawn/session.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

Json planned(Checks& k, bool namespaces, const std::string& script) {
  Json request = json::Object{
      {"schema", "h5i.run/1"},
      {"policy", json::Object{{"profile", json::Object{{"net", json::Object{{"mode", "host"}}}}}}},
      {"paths", json::Object{{"work", k.dir()}}},
      {"command",
       json::Object{{"argv", json::Array{"sh", "-c", script}}, {"exec", json::Array{"/bin/sh"}}, {"cwd", k.dir()}}},
      {"env", json::Object{{"PATH", "/usr/bin:/bin"}}},
      {"ids", json::Object{{"uid", k.who().uid}, {"gid", k.who().gid}, {"box_uid", 5}, {"box_gid", 5}}}};
  auto p = tier_workspace::build_plan(request, {namespaces});
  if (!p) k.say(p.error().text);
  return p ? *p : Json();
}

}  // namespace

KERNEL_TEST("a workspace command runs with the caller's rights and the policy's environment", "[tiers][workspace]") {
  setenv("H5I_TEST_LEAK", "leaked", 1);
  for (bool namespaces : {true, false}) {
    Outcome o =
        run_once(planned(k, namespaces, "id -u; pwd; echo $H5I_TEST_LEAK; echo x > " + k.dir() + "/outside; exit 5"));
    KCHECK_SAYS(o.result.status == H5I_OUTCOME_EXITED && o.result.code == 5, o.text());
    KCHECK_SAYS(o.output == std::to_string(k.who().uid) + "\n" + k.dir() + "\n\n", o.output);
    struct stat s {};
    KCHECK(stat((k.dir() + "/outside").c_str(), &s) == 0 && s.st_uid == k.who().uid);
    unlink((k.dir() + "/outside").c_str());
  }
}

KERNEL_TEST("what a workspace command leaves behind is gone when it ends, with namespaces or by walking",
            "[tiers][workspace]") {
  for (bool namespaces : {true, false}) {
    Outcome o = run_once(
        planned(k, namespaces, "setsid sh -c 'setsid sleep 79 & sleep 79 &' & (sleep 79 &); sleep 0.2; exit 0"));
    KCHECK_SAYS(o.ok(), o.text());
    int found = system("pgrep -f '^sleep 79$' > /dev/null");
    KCHECK_SAYS(WIFEXITED(found) && WEXITSTATUS(found) == 1, namespaces ? "with namespaces" : "by walking");
  }
}
