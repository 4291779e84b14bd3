// without COMPONENT COMMAND...: the command where the kernel lacks that component.
#include <cstdio>
#include <cstring>

#include "tests/support/losses.hpp"

int main(int argc, char** argv) {
  for (const h5i::test::Loss& loss : h5i::test::losses()) {
    if (argc < 3 || loss.rules.empty() || strcmp(loss.component, argv[1]) != 0) continue;
    if (!h5i::test::install(loss.rules)) {
      perror("without: a filter");
      return 99;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 99;
  }
  fprintf(stderr, "without: COMPONENT COMMAND...\n");
  return 99;
}
