// h5i-host: one tier, one process. Order matters: the spawner is forked while only this executable's own code is
// mapped, so that no plugin can have touched what spawns; then the library is hashed, mapped and served.
#include <sys/wait.h>
#include <unistd.h>

#include "core/host/life.hpp"
#include "core/plugin/client.hpp"
#include "core/plugin/frame.hpp"
#include "core/spawn/spawner.hpp"

int main() {
  using namespace h5i;
  if (!host::started_by_core(plugin::kHostNetFd)) return host::kNotStartedByCore;
  UniqueFd control(plugin::kHostControlFd), core_spawner(plugin::kHostSpawnerFd), cancel(plugin::kHostCancelFd),
      init(plugin::kHostInitFd), canary(plugin::kHostCanaryFd), net(plugin::kHostNetFd);
  if (!host::die_with_core(control)) return host::kDone;  // and the spawner ends with us

  auto pair = plugin::frame_socketpair();
  if (!pair) return host::kNoSpawner;
  spawn::SpawnerFds fds{pair->second.get(), core_spawner.get(), init.get(), canary.get(), net.get(), getpid()};
  auto spawner = spawn::fork_spawner(fds);
  if (!spawner) return host::kNoSpawner;
  pair->second.reset();
  core_spawner.reset();
  init.reset();
  canary.reset();
  net.reset();

  host::Services services(std::move(pair->first), *spawner);
  services.control = &control;
  services.cancel = &cancel;
  services.offers = host::tier_offers();
  int status = host::serve_core(services, "tier", *spawner);
  services.end_spawner();
  waitpid(*spawner, nullptr, 0);
  // No destructors and no handlers of a plugin's static objects: they could hang or undo the status.
  _exit(status);
}
