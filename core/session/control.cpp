#include "core/session/control.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "core/os/beneath.hpp"

namespace h5i::session {
namespace {

constexpr const char* kName = "control";
constexpr int kFirstWordMs = 200;  // the run waits no longer for one who connected and says nothing

// Through the folder's descriptor: a socket's address has 108 bytes, a folder's path more.
sockaddr_un address_in(const UniqueFd& dir) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  std::string path = "/proc/self/fd/" + std::to_string(dir.get()) + "/" + kName;
  memcpy(a.sun_path, path.c_str(), path.size() + 1);
  return a;
}

std::optional<os::PeerIds> peer_of(const UniqueFd& connection) {
  ucred c{};
  socklen_t size = sizeof c;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &c, &size) != 0) return std::nullopt;
  return os::PeerIds{c.pid, c.uid, c.gid};
}

}  // namespace

Result<ControlSocket> ControlSocket::listen(const BoxPaths& paths) {
  ControlSocket out;
  out.dir_ = H5I_TRY(os::open_directory(paths.dir));
  if (::unlinkat(out.dir_.get(), kName, 0) != 0 && errno != ENOENT) return sys_error("remove " + paths.control());
  out.fd_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out.fd_) return sys_error("socket");
  sockaddr_un a = address_in(out.dir_);
  if (::bind(out.fd_.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) return sys_error("bind " + paths.control());
  if (::fchmodat(out.dir_.get(), kName, 0600, 0) != 0 || ::listen(out.fd_.get(), 8) != 0) return sys_error("listen on " + paths.control());
  return out;
}

ControlSocket::~ControlSocket() {
  if (fd_) ::unlinkat(dir_.get(), kName, 0);
}

std::optional<ControlSocket::Asked> ControlSocket::next() {
  UniqueFd connection(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection) return std::nullopt;
  auto by = peer_of(connection);
  if (!by || (by->uid != 0 && by->uid != ::geteuid())) return std::nullopt;
  auto ready = os::wait_readable(connection.get(), kFirstWordMs);
  auto packet = ready && *ready ? os::receive_packet(connection.get(), true) : Result<std::optional<os::Packet>>(std::nullopt);
  if (!packet || !*packet) return std::nullopt;
  auto request = parse_json((*packet)->bytes, "request", os::kMaxPacket);
  if (!request) {
    answer(connection, json::Object{{"error", request.error().id()}, {"what", request.error().what}, {"evidence", request.error().evidence}});
    return std::nullopt;
  }
  return Asked{std::move(*request), *by, std::move(connection)};
}

void answer(const UniqueFd& connection, const Json& said) { (void)os::send_packet(connection.get(), json::canonical(said), {}, true); }

Result<Json> ask_running(const BoxPaths& paths, const Json& request, int64_t timeout_ms) {
  UniqueFd dir = H5I_TRY(os::open_directory(paths.dir));
  UniqueFd s(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!s) return sys_error("socket");
  sockaddr_un a = address_in(dir);
  if (::connect(s.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) return make_error(Errc::NOT_FOUND, "nothing listens for changes there", paths.control());
    return sys_error("connect to " + paths.control());
  }
  H5I_TRY(os::send_packet(s.get(), json::canonical(request)));
  if (!H5I_TRY(os::wait_readable(s.get(), timeout_ms))) return make_error(Errc::TIMEOUT, "the running command does not answer", std::to_string(timeout_ms) + " ms");
  auto packet = os::receive_packet(s.get(), true);
  if (!packet || !*packet) return make_error(Errc::CANCELLED, "the command ended before it answered", "what became of the change is in the box's log");
  Json said = H5I_TRY(parse_json((*packet)->bytes, "answer of the running command", os::kMaxPacket));
  if (said["error"].is_string()) return make_error(errc_from_id(said["error"].string()), said["what"].string(), said["evidence"].string());
  return said;
}

}  // namespace h5i::session
