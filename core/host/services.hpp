// The host services of h5i/host.h, as the loaded plugin sees them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/spawn/client.hpp"
#include "h5i/host.h"

namespace h5i::host {

// One per process: the C functions of the interfaces find their way back by the context pointer. Descriptors are borrowed
// and outlive it.
struct Services {
  Services(UniqueFd spawner_channel, pid_t spawner_process)
      : spawner(std::in_place, std::move(spawner_channel)), spawner_pid(spawner_process) {}

  const UniqueFd* control = nullptr;
  const UniqueFd* cancel = nullptr;
  uint32_t request = 0;               // number of the call that runs now; frames carry it
  std::vector<std::string> granted;   // interface ids that the manifest asks for
  bool in_run = false;                // a workload belongs to the verb run only, and to each run once
  bool workload_started = false;
  std::optional<spawn::SpawnClient> spawner;
  pid_t spawner_pid;                  // it starts processes in groups of the base, so it is there itself

  const h5i_host* host();             // what entry->open gets
  void end_spawner() { spawner.reset(); }

 private:
  h5i_host host_{};
};

// Fills a plugin's error struct, cutting the text at a character's edge.
h5i_status fail(h5i_error* error, const Error& e);
Error from_c(h5i_status status, const h5i_error& error);

}  // namespace h5i::host
