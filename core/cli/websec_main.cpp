// h5i-websec: the verbs of web sessions, apart from the run path.
#include "core/cli/websec_verbs.hpp"

int main(int argc, char** argv) {
  using namespace h5i::cli;
  implement("websec", "open", websec_open);
  implement("websec", "ls", websec_ls);
  implement("websec", "send", websec_send);
  implement("websec", "show", websec_show);
  implement("websec", "hist", websec_hist);
  implement("websec", "scope", websec_scope);
  implement("websec", "jar", websec_jar);
  implement("websec", "export", websec_export);
  implement("websec", "finding", websec_finding);
  implement("websec", "import", websec_import);
  implement("websec", "close", websec_close);
  implement("websec", "diff", websec_diff);
  implement("websec", "match", websec_match);
  implement("websec", "experiment", websec_experiment);
  implement("websec", "sequence", websec_sequence);
  implement("websec", "replay", websec_replay);
  implement("websec", "ident", websec_ident);
  return main_with("h5i-websec", argc, argv);
}
