#include "core/spawn/network.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/ids.hpp"
#include "core/os/fs.hpp"
#include "core/os/pidfd.hpp"
#include "core/os/socket.hpp"
#include "core/spawn/protocol.hpp"

namespace h5i::spawn {
namespace {

constexpr int64_t kBeginMs = 10'000, kChangeMs = 5'000, kEndMs = 5'000, kLeaveMs = 2'000;
enum { kSocket = 3, kExec = 4, kPlaces = 5 };  // of h5i-net's descriptors

// After fork; the spawner has one thread.
[[noreturn]] void become(int program, int socket, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  int from[] = {socket, program};
  for (int& fd : from)
    if ((fd = fcntl(fd, F_DUPFD_CLOEXEC, 64)) < 0) _exit(127);
  for (int i = 0; i < 2; i++) dup2(from[i], kSocket + i);
  syscall(SYS_close_range, kPlaces, ~0u, 0);
  fcntl(kExec, F_SETFD, FD_CLOEXEC);
  char name[] = "h5i-net";
  char* argv[] = {name, nullptr};
  char* envp[] = {nullptr};
  execveat(kExec, "", argv, envp, AT_EMPTY_PATH);
  _exit(127);
}

}  // namespace

BoxNetwork::BoxNetwork(BoxNetwork&& other) noexcept
    : socket_(std::move(other.socket_)),
      pidfd_(std::move(other.pidfd_)),
      pid_(std::exchange(other.pid_, -1)),
      change_until_ns_(other.change_until_ns_),
      silent_(other.silent_) {}

BoxNetwork::~BoxNetwork() {
  if (pid_ <= 0) return;
  socket_.reset();  // it leaves by itself then, and takes the way out along
  auto ended = pidfd_ ? os::pidfd_ended(pidfd_.get(), kLeaveMs) : Result<bool>(false);
  if (!ended || !*ended) ::kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<Json> BoxNetwork::answered(int64_t timeout_ms) {
  if (!H5I_TRY(os::wait_readable(socket_.get(), static_cast<int>(timeout_ms)))) {
    silent_ = true;
    return make_error(Errc::TIMEOUT, "h5i-net does not answer");
  }
  auto packet = H5I_TRY(os::receive_packet(socket_.get(), true));
  if (!packet) return make_error(Errc::TIER_SETUP, "h5i-net ended", "it was killed, or could not start");
  return parse_json(packet->bytes, "answer of h5i-net", os::kMaxPacket);
}

Result<std::string> BoxNetwork::ask(const Json& request, int64_t timeout_ms, const std::vector<int>& fds) {
  if (silent_) return make_error(Errc::TIMEOUT, "h5i-net does not answer");
  H5I_TRY(os::send_packet(socket_.get(), json::canonical(request), fds));
  Json said = H5I_TRY(answered(timeout_ms));
  if (said["error"].is_string()) {
    Errc code = errc_from_id(said["error"].string());
    return make_error(code == Errc::TIER_PROBE_MISSING ? code : Errc::TIER_SETUP, "the box's network: " + said["what"].string(), said["evidence"].string());
  }
  return json::canonical(said);
}

Result<void> BoxNetwork::ask_change(std::vector<UniqueFd> fds) {
  if (change_until_ns_) return make_error(Errc::BUSY, "another change of the box's rules is being made", "one at a time");
  if ((fds.size() != 1 && fds.size() != 3) || !os::is_sealed(fds[0].get()) || lseek(fds[0].get(), 0, SEEK_SET) != 0)
    return make_error(Errc::INVALID, "the change of rules is not a sealed memfd");
  std::string text = H5I_TRY(os::read_fd(fds[0].get(), kMaxNetworkRequest, "change of rules"));
  Json request = H5I_TRY(parse_json(text, "change of rules"));
  request["do"] = "replace";
  std::vector<int> box;
  for (size_t i = 1; i < fds.size(); i++) box.push_back(fds[i].get());
  H5I_TRY(os::send_packet(socket_.get(), json::canonical(request), box));
  change_until_ns_ = monotonic_ns() + kChangeMs * 1'000'000;
  return {};
}

BoxNetwork::Changed BoxNetwork::changed() {
  int64_t left = (std::exchange(change_until_ns_, 0) - monotonic_ns()) / 1'000'000;
  auto said = answered(std::max<int64_t>(left, 0));
  if (said) return {!(*said)["uncertain"].boolean(), json::canonical(*said)};
  const Error& e = said.error();
  return {false, json::canonical(json::Object{{"error", e.id()}, {"what", e.what}, {"evidence", e.evidence}})};
}

Result<BoxNetwork> BoxNetwork::start(int program) {
  auto pair = H5I_TRY(os::seqpacket_pair());
  BoxNetwork out;
  pid_t self = getpid();
  out.pid_ = fork();
  if (out.pid_ < 0) return sys_error("fork");
  if (out.pid_ == 0) become(program, pair.b.get(), self);
  out.socket_ = std::move(pair.a);
  out.pidfd_ = H5I_TRY(os::pidfd_open(out.pid_));
  return out;
}

Result<void> BoxNetwork::begin(int user_namespace, int net_namespace, const NetworkSpec& spec) {
  H5I_TRY(ask(json::Object{{"do", "begin"}, {"egress", spec.egress}, {"uplink", spec.uplink}, {"host_loopback", spec.host_loopback}}, kBeginMs, {user_namespace, net_namespace}));
  return {};
}

Result<std::string> BoxNetwork::end() {
  std::string report = H5I_TRY(ask(json::Object{{"do", "end"}}, kEndMs));
  if (report.size() > kMaxNetwork) return make_error(Errc::TOO_LARGE, "the report of the box's network", std::to_string(report.size()) + " bytes");
  return report;
}

}  // namespace h5i::spawn
