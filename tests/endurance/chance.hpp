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
// A number from the environment, or what an ordinary run does.
long amount(const char* variable, long ordinary);

}  // namespace h5i::test
