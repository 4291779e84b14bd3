// The frame protocol between the core and h5i-host: one frame a packet of a SOCK_SEQPACKET pair.
//
// A frame is a header of 24 bytes (host byte order: both ends are one build on one machine) and a body. A body above
// kMaxInline travels in a sealed memfd beside the header, because an ordinary user cannot raise a socket's send buffer
// (net.core.wmem_max) far enough for it. Both directions check magic, version, type, lengths and the number of
// descriptors; a frame that fails is PLUGIN_PROTOCOL, and the connection is not used any more.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::plugin {

enum class FrameType : uint16_t {
  // core -> host
  LOAD = 1,          // h5i.load/1; descriptor 0 is the library
  CALL_PROBE = 2,    // no body
  CALL_VERIFY = 3,   // h5i.run/1
  CALL_PLAN = 4,     // h5i.run/1
  CALL_RUN = 5,      // h5i.run/1
  CALL_CLEANUP = 6,  // {"session":id}
  SHUTDOWN = 7,      // no body
  // host -> core
  HELLO = 16,     // h5i.hello/1, answers LOAD; or RESULT when the plugin was refused
  DOCUMENT = 17,  // what the plugin gave to the sink: one a call
  RESULT = 18,    // h5i.result/1, ends every call
  LOG = 19,       // {"level":n,"text":t}
  EVIDENCE = 20,  // {"boundary":b,"kind":k,"body":{...}}
};
bool known_frame_type(uint16_t number);

struct FrameHeader {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t type = 0;
  uint32_t request = 0;   // number of the call that this belongs to, chosen by the core, never 0
  uint32_t length = 0;    // bytes of body, wherever they are
  uint32_t flags = 0;     // kBodyInMemfd
  uint32_t reserved = 0;  // zero
  static constexpr uint32_t kMagic = 0x66693568;  // "h5if"
  static constexpr uint16_t kVersion = 1;
  static constexpr uint32_t kBodyInMemfd = 1;
};
static_assert(sizeof(FrameHeader) == 24);

inline constexpr uint32_t kMaxInline = 128u << 10;    // bytes of a body inside the packet
inline constexpr uint32_t kMaxDocument = 16u << 20;   // bytes of a body in a memfd: a plan or policy is far below
inline constexpr size_t kMaxFrameFds = 2;             // beside the body's memfd

struct Frame {
  FrameType type = FrameType::RESULT;
  uint32_t request = 0;
  std::string body;
  std::vector<UniqueFd> fds;
};

// The pure part. `packet` is one whole packet; `fd_count` descriptors came with it. The body is empty when the header
// says that it is in a memfd, which is then the last descriptor. PLUGIN_PROTOCOL names what is wrong.
struct DecodedFrame {
  FrameHeader header;
  std::string_view body;  // borrows from packet
};
Result<DecodedFrame> decode_frame(std::string_view packet, size_t fd_count);

// Sends one frame; blocks until the peer has room. `fds` are borrowed. TOO_LARGE, SYSTEM (EPIPE when the peer is gone).
Result<void> send_frame(const UniqueFd& socket, FrameType type, uint32_t request, std::string_view body,
                        const std::vector<const UniqueFd*>& fds = {});

// Receives one frame; call it when poll says readable, or it blocks. NOT_FOUND when the peer closed.
Result<Frame> receive_frame(const UniqueFd& socket);

// A close-on-exec pair whose buffers take a whole inline frame.
Result<std::pair<UniqueFd, UniqueFd>> frame_socketpair();

// A memfd with `bytes`, sealed against every change.
Result<UniqueFd> sealed_memfd(const char* name, std::string_view bytes);
// Reads a memfd that must be sealed against write, grow and shrink, and hold exactly `length` bytes.
Result<std::string> read_sealed(const UniqueFd& fd, uint32_t length);

}  // namespace h5i::plugin
