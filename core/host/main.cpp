// h5i-host: one plugin, one process. Order matters: the spawner is forked while only this executable's own code is
// mapped, so that no plugin can have touched what spawns; then the library is hashed, mapped and served.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "core/base/json.hpp"
#include "core/host/services.hpp"
#include "core/host/verbs.hpp"
#include "core/plugin/client.hpp"
#include "core/plugin/loader.hpp"
#include "core/spawn/client.hpp"
#include "core/spawn/spawner.hpp"

namespace {

using namespace h5i;
using plugin::FrameType;

// Statuses of a host that failed before it could say so in a frame; the core shows the number.
enum { kDone = 0, kNotStartedByCore = 64, kNoSpawner = 65, kCoreBrokeProtocol = 66 };

bool started_by_core() {
  for (int fd = plugin::kHostControlFd; fd <= plugin::kHostNetFd; fd++)
    if (fcntl(fd, F_GETFD) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) return false;
  return true;
}

// Nothing of a dead core's run may go on: the kernel kills us with it, and the spawner ends with us.
void die_with_core() {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // at tiers that confine nothing a box has our uid and could read our memory
}

struct Loaded {
  plugin::LoadedPlugin library;
  const h5i_tier* tier = nullptr;
  void* instance = nullptr;
};

Result<Loaded> load_plugin(host::Services& services, plugin::Frame& frame, Json* load) {
  *load = H5I_TRY(parse_json(frame.body, "load frame", plugin::kMaxInline));
  plugin::Expected expected{(*load)["id"].string(), (*load)["version"].string(),
                            PluginDigest((*load)["digest"].string())};
  for (const Json& s : (*load)["services"].array()) services.granted.push_back(s.string());
  Loaded out;
  out.library = H5I_TRY(plugin::load(std::move(frame.fds.at(0)), expected));
  h5i_error error{};
  error.struct_size = sizeof error;
  h5i_status status = out.library.entry->open(services.host(), &out.instance, &error);
  if (status != H5I_OK) return host::from_c(status, error);
  if (out.instance == nullptr)
    return make_error(Errc::PLUGIN_LOAD, "the plugin cannot be opened", "open succeeded without an instance");
  h5i_str id = {H5I_TIER_INTERFACE, sizeof(H5I_TIER_INTERFACE) - 1};
  out.tier = H5I_TRY(plugin::check_tier(out.library.entry->get_interface(out.instance, id)));
  return out;
}

int serve_core(host::Services& services, const UniqueFd& control, pid_t spawner) {
  auto frame = plugin::receive_frame(control);
  if (!frame || frame->type != FrameType::LOAD) return kCoreBrokeProtocol;
  services.request = frame->request;
  Json load;
  auto loaded = load_plugin(services, *frame, &load);
  if (!loaded) {
    (void)host::answer_error(services, loaded.error());
    return kDone;
  }
  Json hello = json::Object{{"schema", "h5i.hello/1"},
                            {"id", load["id"]},
                            {"version", load["version"]},
                            {"digest", loaded->library.digest.value},
                            {"spawner", static_cast<int>(spawner)}};
  if (!plugin::send_frame(control, FrameType::HELLO, services.request, json::canonical(hello))) return kDone;

  for (;;) {
    auto call = plugin::receive_frame(control);
    if (!call) return call.error().code == Errc::NOT_FOUND ? kDone : kCoreBrokeProtocol;
    if (call->type == FrameType::SHUTDOWN) break;
    if (!host::serve(services, *loaded->tier, loaded->instance, *call)) return kCoreBrokeProtocol;
  }
  loaded->library.entry->close(loaded->instance);
  return kDone;
}

}  // namespace

int main() {
  if (!started_by_core()) return kNotStartedByCore;
  die_with_core();
  UniqueFd control(plugin::kHostControlFd), core_spawner(plugin::kHostSpawnerFd), cancel(plugin::kHostCancelFd),
      init(plugin::kHostInitFd), canary(plugin::kHostCanaryFd), net(plugin::kHostNetFd);
  pollfd core_gone{control.get(), 0, 0};
  if (poll(&core_gone, 1, 0) < 0 || (core_gone.revents & POLLHUP)) return kDone;  // it died before PDEATHSIG was set

  auto pair = plugin::frame_socketpair();
  if (!pair) return kNoSpawner;
  spawn::SpawnerFds fds{pair->second.get(), core_spawner.get(), init.get(), canary.get(), net.get(), getpid()};
  auto spawner = spawn::fork_spawner(fds);
  if (!spawner) return kNoSpawner;
  pair->second.reset();
  core_spawner.reset();
  init.reset();
  canary.reset();
  net.reset();

  host::Services services(std::move(pair->first), *spawner);
  services.control = &control;
  services.cancel = &cancel;
  int status = serve_core(services, control, *spawner);
  services.end_spawner();
  waitpid(*spawner, nullptr, 0);
  // No destructors and no handlers of a plugin's static objects: they could hang or undo the status.
  _exit(status);
}
