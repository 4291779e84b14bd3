// libexec/h5i/h5i-repo: the verbs of a box that read or write a repository. Reached by exec from h5i.
#include "core/cli/repo_verbs.hpp"

int main(int argc, char** argv) {
  using namespace h5i::cli;
  implement("box", "create", box_create);
  implement("box", "diff", box_diff);
  implement("box", "compare", box_compare);
  implement("box", "propose", box_propose);
  implement("box", "apply", box_apply);
  implement("box", "export", box_export);
  implement("box", "rebase", box_rebase);
  implement("box", "abort", box_abort);
  implement("box", "rm", box_rm);
  return main_with("h5i-repo", argc, argv);
}
