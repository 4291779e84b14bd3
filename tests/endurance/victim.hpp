// The processes of one running h5i, found from outside, and the moment at which one of them is killed.
#pragma once
#include <sys/types.h>

#include <string>

namespace h5i::test {

enum class Victim { core, host, spawner, init, all };
const char* name_of(Victim v);

// 0 when it is not there (yet, or any more).
pid_t find_victim(Victim v, pid_t core);
// Waits `after` seconds, then until the victim is there, and kills it. False: `core` had ended before that, and it was not met.
bool kill_at(Victim v, pid_t core, double after);

double seconds_now();

}  // namespace h5i::test
