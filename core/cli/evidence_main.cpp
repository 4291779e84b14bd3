// h5i-evidence: everything that signs or checks a signature.
#include <cstring>

#include "core/cli/command.hpp"
#include "core/cli/evidence_verbs.hpp"

int main(int argc, char** argv) {
  using namespace h5i::cli;
  if (argc == 3 && strcmp(argv[1], "seal-head") == 0) return seal_head(argv[2]);
  implement("log", "verify", log_verify);
  implement("log", "seal", log_seal);
  implement("key", "show", key_show);
  implement("key", "trust", key_trust);
  implement("key", "untrust", key_untrust);
  implement("key", "rotate", key_rotate);
  return main_with("h5i-evidence", argc, argv);
}
