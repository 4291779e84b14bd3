// A body's content codings (RFC 9110 section 8.4), taken off in a stream and within caps.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/http/head.hpp"
#include "plugins/websec-http/http/sink.hpp"

namespace h5i::websec {

struct DecodeLimits {
  size_t codings = 5;                          // names in Content-Encoding; nobody means more
  uint64_t output = UINT64_C(64) << 20;        // bytes out of each coding
  uint64_t ratio = 250;                        // bytes out of a coding for each byte of the encoded body ...
  uint64_t ratio_from = UINT64_C(4) << 20;     // ... counted once that much came out: a small page of zeros is no bomb
};

struct DecodeFact {
  std::string_view id;
  std::string coding;   // of which coding, as the server wrote it: raw, not for a terminal
  uint64_t offset = 0;  // bytes of the encoded body that had been given
  uint32_t count = 1;
};

// The names in all Content-Encoding headers, in their order, without "identity".
std::vector<std::string> content_codings(const FieldBlock& fields);

class BodyDecoder : public BodySink {
 public:
  struct Shared;
  // The last of `codings` was put on last and comes off first. What lies below an unknown coding stays on: see left_on().
  BodyDecoder(const std::vector<std::string>& codings, const DecodeLimits& limits, BodySink& to);
  ~BodyDecoder() override;
  bool take(std::string_view encoded) override;  // false: it stopped, and facts() says why
  bool finish();                                 // the encoded body ended; false: not where it should
  bool stopped() const;
  const std::vector<DecodeFact>& facts() const;
  const std::vector<std::string>& left_on() const { return left_on_; }  // codings that nobody took off, in the header's order
  uint64_t decoded() const;  // bytes given to the sink

 private:
  class Out;
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<Out> out_;
  std::vector<std::unique_ptr<class DecodeStage>> stages_;  // in the order in which they come off
  std::vector<std::string> left_on_;
};

}  // namespace h5i::websec
