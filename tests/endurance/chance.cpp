#include "tests/endurance/chance.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace h5i::test {

uint64_t seed() {
  static const uint64_t value = [] {
    const char* set = getenv("H5I_ENDURANCE_SEED");
    uint64_t s = set ? strtoull(set, nullptr, 10) : std::random_device{}();
    printf("H5I_ENDURANCE_SEED=%" PRIu64 "\n", s);
    fflush(stdout);
    return s;
  }();
  return value;
}

std::mt19937_64& chance() {
  static std::mt19937_64 generator(seed());
  return generator;
}

long amount(const char* variable, long ordinary) {
  const char* set = getenv(variable);
  long n = set ? atol(set) : 0;
  return n > 0 ? n : ordinary;
}

int rounds(int ordinary) { return static_cast<int>(amount("H5I_ENDURANCE_ROUNDS", ordinary)); }

}  // namespace h5i::test
