// h5i-engine: one websec plugin, one process, one session. It starts nothing. What it may do is settled before the library is mapped; the log
// of its session is written here, with a lane and an observer that the plugin has no say in.
#include <unistd.h>

#include <optional>

#include "core/host/engine_confinement.hpp"
#include "core/host/life.hpp"
#include "core/host/session_service.hpp"
#include "core/host/session_store.hpp"
#include "core/plugin/client.hpp"

int main() {
  using namespace h5i;
  if (!host::started_by_core(plugin::kEngineSessionFd)) return host::kNotStartedByCore;
  UniqueFd control(plugin::kHostControlFd), session(plugin::kEngineSessionFd), cancel(plugin::kHostCancelFd);
  if (!host::die_with_core(control)) return host::kDone;

  host::Services services;
  services.control = &control;
  services.cancel = &cancel;
  services.offers = host::engine_offers();
  std::optional<host::SessionStore> store;
  int status = host::serve_core(services, "websec", 0, [&](const Json& load, const UniqueFd& library) -> Result<void> {
    const bool given = load["session"].boolean();
    H5I_TRY(host::confine_engine(library, given ? session.get() : -1, load["writes"].boolean()));
    if (!given) return {};
    evidence::Observer observer = evidence::Observer::plugin(load["id"].string(), PluginDigest(load["digest"].string()));
    observer.lane = evidence::Lane::ENGINE_CLAIMED;
    store.emplace(H5I_TRY(host::SessionStore::open(session, std::move(observer))));
    services.session = &*store;
    return {};
  });
  _exit(status);
}
