// The frame decoder: first byte is the number of descriptors, the rest is one packet. Whatever it accepts must hold what
// the header's comment promises.
#include <cstdlib>

#include "core/plugin/frame.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace h5i::plugin;
  if (size == 0) return 0;
  size_t fds = data[0] % 5;
  std::string_view packet(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto f = decode_frame(packet, fds);
  if (!f) return 0;
  const FrameHeader& h = f->header;
  bool memfd = h.flags & FrameHeader::kBodyInMemfd;
  bool good = known_frame_type(h.type) && h.request != 0 && h.reserved == 0 && h.length <= kMaxDocument;
  good = good && (memfd ? f->body.empty() && h.length > kMaxInline && fds >= 1 : f->body.size() == h.length);
  good = good && fds == (memfd ? 1u : 0u) + (h.type == static_cast<uint16_t>(FrameType::LOAD) ? 1u : 0u);
  if (!good) abort();
  return 0;
}
