// h5i-policy: the verbs that read configuration, apart from the run path because they need its parsers.
#include "core/cli/plugin_verbs.hpp"
#include "core/cli/policy_input.hpp"

int main(int argc, char** argv) {
  using namespace h5i::cli;
  implement("policy", "show", policy_show);
  implement("policy", "explain", policy_explain);
  implement("policy", "check", policy_check);
  implement("policy", "diff", policy_diff);
  implement("policy", "init", policy_init);
  implement("box", "allow", box_allow);
  implement("box", "egress", box_egress);
  implement("plugin", "install", plugin_install);
  return main_with("h5i-policy", argc, argv);
}
