/* The headers are C11 by themselves, in any order, with warnings as errors. */
#include "h5i/tier.h"
#include "h5i/host.h"
#include "h5i/abi.h"
_Static_assert(sizeof(h5i_tier) == 48 && sizeof(h5i_host_spawn) == 32, "the layout is the same in C");
int h5i_headers_are_c11(void) { return H5I_E_INTERNAL; }
