#include "tests/tiers/box.hpp"

using namespace h5i;
using namespace h5i::test;

KERNEL_TEST("a process box runs a shell, under its own id, in a root of its own", "[tiers]") {
  TierBox box(k);
  Outcome o = box.shell("id; ls /; pwd");
  KCHECK_SAYS(o.ok(), o.text());
  KCHECK_SAYS(o.output.find("uid=" + std::to_string(k.root() ? kBoxId : k.who().uid) + "(") == 0, o.output);
  KCHECK_SAYS(o.output.find("\nusr\n") != std::string::npos, o.output);
  KCHECK_SAYS(o.output.find("\nsys\n") == std::string::npos, o.output);
  KCHECK_SAYS(o.output.find("\n" + box.work() + "\n") != std::string::npos, o.output);
}
