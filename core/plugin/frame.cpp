#include "core/plugin/frame.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>

namespace h5i::plugin {
namespace {

Error broken(std::string evidence) {
  return make_error(Errc::PLUGIN_PROTOCOL, "frame refused", std::move(evidence));
}

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

}  // namespace

bool known_frame_type(uint16_t n) {
  return (n >= static_cast<uint16_t>(FrameType::LOAD) && n <= static_cast<uint16_t>(FrameType::SHUTDOWN)) ||
         (n >= static_cast<uint16_t>(FrameType::HELLO) && n <= static_cast<uint16_t>(FrameType::EVIDENCE));
}

Result<DecodedFrame> decode_frame(std::string_view packet, size_t fd_count) {
  DecodedFrame f;
  if (packet.size() < sizeof(FrameHeader)) return broken("packet of " + std::to_string(packet.size()) + " bytes");
  memcpy(&f.header, packet.data(), sizeof f.header);
  const FrameHeader& h = f.header;
  if (h.magic != FrameHeader::kMagic) return broken("wrong magic number");
  if (h.version != FrameHeader::kVersion) return broken("version " + std::to_string(h.version));
  if (!known_frame_type(h.type)) return broken("unknown type " + std::to_string(h.type));
  if (h.request == 0) return broken("request number 0");
  if (h.reserved != 0) return broken("reserved bytes are not zero");
  if (h.flags & ~FrameHeader::kBodyInMemfd) return broken("unknown flags");
  size_t inline_bytes = packet.size() - sizeof(FrameHeader);
  bool in_memfd = h.flags & FrameHeader::kBodyInMemfd;
  if (in_memfd) {
    if (inline_bytes != 0) return broken("bytes beside a body that is in a memfd");
    if (h.length <= kMaxInline || h.length > kMaxDocument)
      return broken("length " + std::to_string(h.length) + " for a body in a memfd");
    if (fd_count == 0) return broken("the body's memfd is missing");
    fd_count--;
  } else {
    if (h.length > kMaxInline) return broken("length " + std::to_string(h.length) + " inside a packet");
    if (h.length != inline_bytes)
      return broken("length says " + std::to_string(h.length) + ", packet holds " + std::to_string(inline_bytes));
    f.body = packet.substr(sizeof(FrameHeader));
  }
  size_t wanted = h.type == static_cast<uint16_t>(FrameType::LOAD) ? 1 : 0;
  if (fd_count != wanted)
    return broken(std::to_string(fd_count) + " descriptors where " + std::to_string(wanted) + " belong");
  return f;
}

Result<UniqueFd> sealed_memfd(const char* name, std::string_view bytes) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return sys_error("memfd_create");
  while (!bytes.empty()) {
    ssize_t n = write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("write to a memfd");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) < 0) return sys_error("seal a memfd");
  return fd;
}

Result<std::string> read_sealed(const UniqueFd& fd, uint32_t length) {
  // Without the seals the sender could change the bytes after they were checked.
  int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)) != (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
    return broken("the body's descriptor is not a sealed memfd");
  struct stat st {};
  if (fstat(fd.get(), &st) < 0) return sys_error("fstat of a memfd");
  if (st.st_size != static_cast<off_t>(length))
    return broken("length says " + std::to_string(length) + ", memfd holds " + std::to_string(st.st_size));
  std::string out(length, '\0');
  size_t at = 0;
  while (at < out.size()) {
    ssize_t n = pread(fd.get(), out.data() + at, out.size() - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read of a memfd");
    if (n == 0) return broken("memfd ended early");
    at += static_cast<size_t>(n);
  }
  return out;
}

Result<std::pair<UniqueFd, UniqueFd>> frame_socketpair() {
  int s[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) < 0) return sys_error("socketpair");
  UniqueFd a(s[0]), b(s[1]);
  int want = 2 * static_cast<int>(kMaxInline);
  for (int fd : s)  // best effort: the default of 208 KiB takes a whole inline frame as well
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof want);
  return std::make_pair(std::move(a), std::move(b));
}

Result<void> send_frame(const UniqueFd& socket, FrameType type, uint32_t request, std::string_view body,
                        const std::vector<const UniqueFd*>& fds) {
  if (body.size() > kMaxDocument)
    return make_error(Errc::TOO_LARGE, "document too large for a frame",
                      std::to_string(body.size()) + " bytes, limit " + std::to_string(kMaxDocument));
  if (fds.size() > kMaxFrameFds) return make_error(Errc::INTERNAL, "too many descriptors for a frame");
  FrameHeader h;
  h.type = static_cast<uint16_t>(type);
  h.request = request;
  h.length = static_cast<uint32_t>(body.size());
  int raw[kMaxFrameFds + 1];
  size_t n_fds = 0;
  for (const UniqueFd* fd : fds) raw[n_fds++] = fd->get();
  UniqueFd memfd;
  if (body.size() > kMaxInline) {
    memfd = H5I_TRY(sealed_memfd("h5i-document", body));
    raw[n_fds++] = memfd.get();
    h.flags |= FrameHeader::kBodyInMemfd;
    body = {};
  }
  iovec iov[2] = {{&h, sizeof h}, {const_cast<char*>(body.data()), body.size()}};
  msghdr m{};
  m.msg_iov = iov;
  m.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof raw)] = {};
  if (n_fds > 0) {
    m.msg_control = control;
    m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
    memcpy(CMSG_DATA(c), raw, n_fds * sizeof(int));
  }
  for (;;) {
    ssize_t n = sendmsg(socket.get(), &m, MSG_NOSIGNAL);
    if (n >= 0) return {};
    if (errno != EINTR) return sys_error("send a frame");
  }
}

Result<Frame> receive_frame(const UniqueFd& socket) {
  // The packet's size first: most frames are small, and a buffer for the largest would be cleared for each of them.
  ssize_t waiting;
  do waiting = recv(socket.get(), nullptr, 0, MSG_PEEK | MSG_TRUNC);
  while (waiting < 0 && errno == EINTR);
  if (waiting < 0 && errno != ECONNRESET) return sys_error("receive a frame");
  constexpr size_t kLargest = sizeof(FrameHeader) + kMaxInline;
  std::string packet(waiting < 0 ? 1 : std::min(static_cast<size_t>(waiting), kLargest) + 1, '\0');
  alignas(cmsghdr) char control[CMSG_SPACE((kMaxFrameFds + 1) * sizeof(int))];
  iovec iov{packet.data(), packet.size()};
  msghdr m{};
  ssize_t n;
  do {
    m = {};
    m.msg_iov = &iov;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    n = recvmsg(socket.get(), &m, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  // A peer that died with unread frames of ours makes this ECONNRESET: gone all the same.
  if (n < 0 && errno == ECONNRESET) n = 0;
  if (n < 0) return sys_error("receive a frame");
  Frame f;
  // Take ownership of every descriptor before any check may return.
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      f.fds.emplace_back(fd);
    }
  }
  // A frame has at least its header, so an empty read is the end even though SEQPACKET could carry an empty packet.
  if (n == 0) return make_error(Errc::NOT_FOUND, "the other end closed the connection");
  if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) return broken("packet longer than any frame, or too many descriptors");
  DecodedFrame d = H5I_TRY(decode_frame(std::string_view(packet).substr(0, static_cast<size_t>(n)), f.fds.size()));
  f.type = static_cast<FrameType>(d.header.type);
  f.request = d.header.request;
  if (d.header.flags & FrameHeader::kBodyInMemfd) {
    f.body = H5I_TRY(read_sealed(f.fds.back(), d.header.length));
    f.fds.pop_back();
  } else {
    f.body = std::string(d.body);
  }
  return f;
}

}  // namespace h5i::plugin
