// h5i-engine: one websec plugin, one process, one session. In a box it is the half that has the wire: its only descriptor beside its own program is the
// channel to the half on the host, and what it may do is the box's to settle. It starts nothing. What it may do is settled before the library is mapped; the log
// of its session is written here, with a lane and an observer that the plugin has no say in.
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "core/host/engine_confinement.hpp"
#include "core/host/life.hpp"
#include "core/host/session_service.hpp"
#include "core/host/session_store.hpp"
#include "core/plugin/client.hpp"

namespace {

using namespace h5i;

// The status is 0 when the half on the host had enough: that is how it ends.
int in_box() {
  UniqueFd control(plugin::kEngineInBoxFd), nobody;
  if (!host::die_with_core(control)) return host::kDone;
  host::Services services;
  services.control = &control;
  services.cancel = &nobody;
  services.offers = host::engine_offers();
  int status = host::serve_core(services, "websec", 0, [](const Json&, const UniqueFd&) { return host::confine_engine_in_box(); });
  pollfd over{control.get(), 0, 0};
  return poll(&over, 1, 0) > 0 && (over.revents & POLLHUP) ? host::kDone : status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], plugin::kEngineInBox) == 0) _exit(in_box());
  if (!host::started_by_core(plugin::kEngineChannelFd)) return host::kNotStartedByCore;
  UniqueFd control(plugin::kHostControlFd), session(plugin::kEngineSessionFd), cancel(plugin::kHostCancelFd), channel(plugin::kEngineChannelFd);
  if (!host::die_with_core(control)) return host::kDone;

  host::Services services;
  services.control = &control;
  services.cancel = &cancel;
  services.offers = host::engine_offers();
  std::optional<host::SessionStore> store;
  int status = host::serve_core(services, "websec", 0, [&](const Json& load, const UniqueFd& library) -> Result<void> {
    const bool given = load["session"].boolean();
    H5I_TRY(host::confine_engine(library, given ? session.get() : -1, load["writes"].boolean(), load["network"].boolean(true)));
    if (!given) return {};
    evidence::Observer observer = evidence::Observer::plugin(load["id"].string(), PluginDigest(load["digest"].string()));
    observer.lane = evidence::Lane::ENGINE_CLAIMED;
    store.emplace(H5I_TRY(host::SessionStore::open(session, std::move(observer))));
    services.session = &*store;
    return {};
  });
  _exit(status);
}
