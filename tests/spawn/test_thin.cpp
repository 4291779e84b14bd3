#include "tests/spawn/session.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

KERNEL_TEST("a confined program runs to its end and its output and status come back", "[spawn]") {
  Json p = confined_plan(k);
  set_command(p, {"/usr/bin/true"});
  Outcome o = run_once(p);
  KCHECK_SAYS(o.ok(), o.text());
  p = confined_plan(k);
  set_shell(p, "echo out; id -u; exit 7");
  o = run_once(p);
  KCHECK_SAYS(o.result.status == H5I_OUTCOME_EXITED && o.result.code == 7, o.text());
  KCHECK_SAYS(o.output == "out\n" + std::to_string(k.root() ? 1000 : k.who().uid) + "\n", o.output);
}

KERNEL_TEST("without namespaces the program runs as the caller", "[spawn]") {
  Json p = plain_plan(k);
  set_shell(p, "id -u");
  Outcome o = run_once(p);
  KCHECK_SAYS(o.ok(), o.text());
  KCHECK(o.output == std::to_string(k.who().uid) + "\n");
}
