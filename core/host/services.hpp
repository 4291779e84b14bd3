// The host services of h5i/host.h, as the loaded plugin sees them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/spawn/client.hpp"
#include "h5i/host.h"

namespace h5i::host {

struct Offer {
  std::string_view id;
  const void* functions;
};

class SessionStore;

// One per process: the C functions of the interfaces find their way back by the context pointer. Descriptors are borrowed
// and outlive it.
struct Services {
  // Of a tier.
  Services(UniqueFd spawner_channel, pid_t spawner_process)
      : spawner(std::in_place, std::move(spawner_channel)), spawner_pid(spawner_process) {}
  // Of an engine: it starts nothing.
  Services() = default;

  const UniqueFd* control = nullptr;
  const UniqueFd* cancel = nullptr;
  uint32_t request = 0;               // number of the call that runs now; frames carry it
  std::vector<std::string> granted;   // interface ids that the manifest asks for
  bool in_run = false;                // a workload belongs to the verb run only, and to each run once
  bool workload_started = false;
  std::optional<spawn::SpawnClient> spawner;
  SessionStore* session = nullptr;    // of an engine that serves one; borrowed
  std::vector<Offer> offers;          // what there is in this process; `granted` says what of it is given
  pid_t spawner_pid = 0;              // it starts processes in groups of the base, so it is there itself

  const h5i_host* host();             // what entry->open gets
  void end_spawner() { spawner.reset(); }

 private:
  h5i_host host_{};
};

// What every plugin may have, and what a tier may have besides; engines: session_service.hpp.
std::vector<Offer> common_offers();
std::vector<Offer> tier_offers();

// -- for the files that hold services
Services& services_of(void* context);
// A plugin's string may be anything; what cannot be read at all (a null pointer with a length) is refused.
bool view(h5i_str s, size_t limit, std::string_view* out);
bool kind_spelling(std::string_view kind);  // [a-z0-9-]{1,64}
// Nothing of C++ may leave a service: it is called through the C ABI.
template <class F>
h5i_status fenced(F f) noexcept {
  try {
    return f();
  } catch (...) {
    return H5I_E_INTERNAL;
  }
}

// Fills a plugin's error struct, cutting the text at a character's edge.
h5i_status fail(h5i_error* error, const Error& e);
Error from_c(h5i_status status, const h5i_error& error);

}  // namespace h5i::host
