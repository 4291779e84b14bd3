// h5i: the verbs of the run path. Everything heavier is another executable, reached by exec.
#include "core/cli/command.hpp"
#include "core/cli/host_verbs.hpp"
#include "core/cli/plugin_verbs.hpp"
#include "core/cli/verbs.hpp"

int main(int argc, char** argv) {
  using namespace h5i::cli;
  implement("box", "run", box_run);
  implement("box", "shell", box_shell);
  implement("box", "stop", box_stop);
  implement("box", "ls", box_ls);
  implement("box", "status", box_status);
  implement("box", "log", box_log);
  implement("box", "inspect", box_inspect);
  implement("box", "gc", box_gc);
  implement_plugin_verbs();
  implement_host_verbs();
  implement("log", "show", log_show);
  return main_with("h5i", argc, argv);
}
