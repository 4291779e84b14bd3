// Randomness that can be had again: the seed is printed once, and H5I_ENDURANCE_SEED sets it. H5I_ENDURANCE_ROUNDS sets at
// how many moments each process is killed.
#pragma once
#include <cstdint>
#include <random>

namespace h5i::test {

uint64_t seed();
std::mt19937_64& chance();
inline double uniform(double from, double to) { return std::uniform_real_distribution<double>(from, to)(chance()); }
int rounds(int ordinary);
// `n` shared out to `parts`, none left over.
inline int share(int n, size_t parts) { return (n + static_cast<int>(parts) - 1) / static_cast<int>(parts); }
// A moment that comes when its victim has gone is drawn again: so often at most for each that is wanted. Each is met until close
// to the end of a run, so this many misses say that it was never there.
inline constexpr int kDraws = 20;
// A number from the environment, or what an ordinary run does.
long amount(const char* variable, long ordinary);

}  // namespace h5i::test
