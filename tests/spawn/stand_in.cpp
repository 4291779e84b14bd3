// In the place of a program that carries packets: says what was put behind its own end, after the last "SAYS:"; started for what it
// is there for, it is ready at once and confines nothing.
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  if (argc == 2 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "--help"))) {
    std::ifstream self("/proc/self/exe", std::ios::binary);
    std::string all{std::istreambuf_iterator<char>(self), {}};
    std::cout << all.substr(all.rfind("SAYS:") + 5) << std::endl;
    return 0;
  }
  if (write(3, "1", 1) != 1) return 1;
  sleep(60);
}
