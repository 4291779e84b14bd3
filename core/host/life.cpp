#include "core/host/life.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#include "core/host/verbs.hpp"
#include "core/plugin/client.hpp"
#include "core/plugin/loader.hpp"

namespace h5i::host {

using plugin::FrameType;

bool started_by_core(int last) {
  for (int fd = plugin::kHostControlFd; fd <= last; fd++)
    if (fcntl(fd, F_GETFD) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) return false;
  return true;
}

bool die_with_core(const UniqueFd& control) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // at tiers that confine nothing a box has our uid and could read our memory
  pollfd core_gone{control.get(), 0, 0};
  return poll(&core_gone, 1, 0) >= 0 && !(core_gone.revents & POLLHUP);
}

namespace {

struct Loaded {
  plugin::LoadedPlugin library;
  Verbs verbs;
  void* instance = nullptr;
};

Result<Loaded> load_plugin(Services& services, const std::string& kind, plugin::Frame& frame, const BeforeMapping& before, Json* load) {
  *load = H5I_TRY(parse_json(frame.body, "load frame", plugin::kMaxInline));
  plugin::Expected expected{(*load)["id"].string(), (*load)["version"].string(),
                            PluginDigest((*load)["digest"].string())};
  for (const Json& s : (*load)["services"].array()) services.granted.push_back(s.string());
  if ((*load)["kind"].string() != kind) return make_error(Errc::PLUGIN_PROTOCOL, "this process serves plugins of kind " + kind, (*load)["kind"].string());
  if (before) H5I_TRY(before(*load, frame.fds.at(0)));
  Loaded out;
  out.library = H5I_TRY(plugin::load(std::move(frame.fds.at(0)), expected));
  h5i_error error{};
  error.struct_size = sizeof error;
  h5i_status status = out.library.entry->open(services.host(), &out.instance, &error);
  if (status != H5I_OK) return from_c(status, error);
  if (out.instance == nullptr)
    return make_error(Errc::PLUGIN_LOAD, "the plugin cannot be opened", "open succeeded without an instance");
  auto interface = [&](std::string_view id) { return out.library.entry->get_interface(out.instance, {id.data(), id.size()}); };
  if (kind == "websec") out.verbs.websec = H5I_TRY(plugin::check_websec(interface(H5I_WEBSEC_INTERFACE)));
  else out.verbs.tier = H5I_TRY(plugin::check_tier(interface(H5I_TIER_INTERFACE)));
  return out;
}

}  // namespace

int serve_core(Services& services, const std::string& kind, pid_t spawner, const BeforeMapping& before) {
  const UniqueFd& control = *services.control;
  auto frame = plugin::receive_frame(control);
  if (!frame || frame->type != FrameType::LOAD) return kCoreBrokeProtocol;
  services.request = frame->request;
  Json load;
  auto loaded = load_plugin(services, kind, *frame, before, &load);
  if (!loaded) {
    (void)answer_error(services, loaded.error());
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
    if (!serve(services, loaded->verbs, loaded->instance, *call)) return kCoreBrokeProtocol;
  }
  loaded->library.entry->close(loaded->instance);
  return kDone;
}

}  // namespace h5i::host
