// br (RFC 7932) by brotli's decoder. Its window is at most 16 MiB: the "large window" variant is left off.
#include <brotli/decode.h>

#include "plugins/websec-http/decode/stage.hpp"

namespace h5i::websec {
namespace {

class Brotli : public DecodeStage {
 public:
  using DecodeStage::DecodeStage;

 private:
  struct Free {
    void operator()(BrotliDecoderState* s) const { BrotliDecoderDestroyInstance(s); }
  };

  bool decode(std::string_view in) override {
    if (!state_) state_.reset(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr));
    if (!state_) return stop("coding-error");
    const auto* next = reinterpret_cast<const uint8_t*>(in.data());
    size_t left = in.size();
    while (!ended_) {
      auto* out = reinterpret_cast<uint8_t*>(buffer());
      size_t room = kPiece;
      BrotliDecoderResult r = BrotliDecoderDecompressStream(state_.get(), &left, &next, &room, &out, nullptr);
      if (room < kPiece && !emit(buffer(), kPiece - room)) return false;
      if (r == BROTLI_DECODER_RESULT_ERROR) return stop("coding-error");
      ended_ = r == BROTLI_DECODER_RESULT_SUCCESS;
      if (r == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) return true;
    }
    if (left > 0) fact("bytes-after-coding");
    return true;
  }
  bool whole() override { return ended_; }

  std::unique_ptr<BrotliDecoderState, Free> state_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<DecodeStage> brotli_stage(std::string coding, BodyDecoder::Shared& shared, BodySink& next) {
  return std::make_unique<Brotli>(std::move(coding), shared, next);
}

}  // namespace h5i::websec
