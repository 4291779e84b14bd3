// What the check of the child's symbols must refuse: an allocation.
#include <cstdlib>

void* allocates(std::size_t n) { return std::malloc(n); }
