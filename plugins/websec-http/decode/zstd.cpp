// zstd (RFC 8878) by its own decoder, with the window that RFC 9659 allows as a content coding.
#include <zstd.h>

#include "plugins/websec-http/decode/stage.hpp"

namespace h5i::websec {
namespace {

constexpr int kWindowLog = 23;  // 8 MiB

class Zstd : public DecodeStage {
 public:
  using DecodeStage::DecodeStage;

 private:
  struct Free {
    void operator()(ZSTD_DCtx* d) const { ZSTD_freeDCtx(d); }
  };

  bool decode(std::string_view in) override {
    if (!context_) {
      context_.reset(ZSTD_createDCtx());
      if (!context_ || ZSTD_isError(ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kWindowLog))) return stop("coding-error");
    }
    if (ignored_) {
      fact("bytes-after-coding");
      return true;
    }
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    bool full = false;  // the last piece was full, so there may be more without input
    while (input.pos < input.size || full) {
      ZSTD_outBuffer output{buffer(), kPiece, 0};
      size_t r = ZSTD_decompressStream(context_.get(), &output, &input);
      frame_out_ += ZSTD_isError(r) ? 0 : output.pos;
      if (ZSTD_isError(r)) {
        if (frames_ == 0 || frame_out_ > 0) return stop("coding-error");
        // A frame ended well, and what follows never was one.
        ignored_ = ended_ = true;
        fact("bytes-after-coding");
        return true;
      }
      if (output.pos > 0 && !emit(buffer(), output.pos)) return false;
      full = output.pos == kPiece;
      ended_ = r == 0;
      if (ended_) {
        frames_++;
        frame_out_ = 0;
        full = false;
      }
    }
    return true;
  }
  bool whole() const override { return ended_; }

  std::unique_ptr<ZSTD_DCtx, Free> context_;
  bool ended_ = false, ignored_ = false;
  uint64_t frames_ = 0, frame_out_ = 0;
};

}  // namespace

std::unique_ptr<DecodeStage> zstd_stage(std::string coding, BodyDecoder::Shared& shared, BodySink& next) {
  return std::make_unique<Zstd>(std::move(coding), shared, next);
}

}  // namespace h5i::websec
