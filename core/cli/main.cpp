// h5i: the verbs of the run path. Everything heavier is another executable, reached by exec.
#include "core/cli/command.hpp"

int main(int argc, char** argv) { return h5i::cli::main_with("h5i", argc, argv); }
