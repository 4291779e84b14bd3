// Between the spawner and h5i-init, on init's control socket. Both are built together; nothing else speaks it.
#pragma once
#include <cstdint>

namespace h5i::spawn {

struct InitRequest {
  enum : uint32_t { kSignal = 1 };  // to the workload's process group
  uint32_t what;
  int32_t number;
};

// Once, when the workload has ended and nothing else is left: then init exits.
struct InitReport {
  enum : uint32_t { kMagic = 0x74696e69 };
  uint32_t magic;
  int32_t wait_status;  // of the workload, as wait4 gives it
  uint64_t survivors;   // processes that init had to kill after the workload's end
};

}  // namespace h5i::spawn
