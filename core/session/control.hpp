// How another h5i on this host speaks to the one that runs a box: a socket in the box's folder, which no confined box sees. One
// connection is one JSON request and its answer. Only the same user and root are listened to.
#pragma once
#include <optional>

#include "core/base/json.hpp"
#include "core/os/socket.hpp"
#include "core/session/box.hpp"

namespace h5i::session {

class ControlSocket {
 public:
  // The caller holds the box's lock: what a dead run left under the name goes.
  static Result<ControlSocket> listen(const BoxPaths& paths);
  ControlSocket(ControlSocket&&) noexcept = default;
  ControlSocket& operator=(ControlSocket&&) = delete;
  ~ControlSocket();  // the name goes too
  int fd() const { return fd_.get(); }

  struct Asked {
    Json request;
    os::PeerIds by;
    UniqueFd connection;  // for answer()
  };
  // The next request; nothing when there is none, or who connected said nothing useful.
  std::optional<Asked> next();

 private:
  ControlSocket() = default;
  UniqueFd dir_, fd_;
};

// Best effort: who asked may be gone.
void answer(const UniqueFd& connection, const Json& said);

// NOT_FOUND: nothing listens there. TIMEOUT; CANCELLED: the run ended before it answered. An answer's "error" becomes the Error.
Result<Json> ask_running(const BoxPaths& paths, const Json& request, int64_t timeout_ms);

}  // namespace h5i::session
