#ifdef H5I_CATCH3
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#ifdef H5I_FINDINGS
#include <fstream>
#include <iostream>
#include <iterator>

int main(int argc, char** argv) {
  // What sanitizers find in any process of this build, also in one whose output nobody sees (cmake/sanitizer_finding.cpp).
  std::ifstream file(H5I_FINDINGS, std::ios::ate);
  auto before = file.tellg();
  int failed = Catch::Session().run(argc, argv);
  file.seekg(before);
  std::string found{std::istreambuf_iterator<char>(file), {}};
  if (!found.empty()) std::cout << "found by a sanitizer:\n" << found;
  return file.bad() || before < 0 || !found.empty() ? 66 : failed;
}
#else
int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
#endif
