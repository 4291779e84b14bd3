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
    for (;;) {
      if (!run(&in)) return false;
      if (in.empty()) return true;
      // Each frame's first bytes are given alone: a whole frame at once would be read by stricter rules than the same in pieces.
      while (!in.empty() && next_.size() < kMagic && may_begin()) {
        next_ += in.front();
        in.remove_prefix(1);
      }
      if (!may_begin()) {
        if (!begun_) return stop("coding-error");
        fact("bytes-after-coding");
        return true;
      }
      if (next_.size() < kMagic) return true;
      between_ = false;
      begun_ = true;
      std::string_view begin = next_;
      if (!run(&begin)) return false;
      next_.clear();
    }
  }
  // Until the input is used up or a frame ended; what is left of the input is in *in.
  bool run(std::string_view* in) {
    ZSTD_inBuffer input{in->data(), in->size(), 0};
    bool full = false;  // the last piece was full, so there may be more without input
    while (!between_ && (input.pos < input.size || full)) {
      ZSTD_outBuffer output{buffer(), kPiece, 0};
      size_t r = ZSTD_decompressStream(context_.get(), &output, &input);
      if (ZSTD_isError(r)) return stop("coding-error");
      if (output.pos > 0 && !emit(buffer(), output.pos)) return false;
      full = output.pos == kPiece;
      between_ = r == 0;
    }
    in->remove_prefix(input.pos);
    return true;
  }
  // A frame's magic number, or one of the sixteen of frames that are skipped.
  bool may_begin() const {
    constexpr std::string_view kFrame = "\x28\xb5\x2f\xfd", kSkipped = "\x2a\x4d\x18";
    bool skipped = next_.empty() || ((static_cast<unsigned char>(next_[0]) & 0xf0) == 0x50 && kSkipped.starts_with(std::string_view(next_).substr(1)));
    return kFrame.starts_with(next_) || skipped;
  }
  bool whole() override {
    if (between_ && begun_ && !next_.empty() && may_begin()) fact("bytes-after-coding");
    return between_ && begun_;
  }

  static constexpr size_t kMagic = 4;
  std::unique_ptr<ZSTD_DCtx, Free> context_;
  bool between_ = true, begun_ = false;  // no frame is open; there was one
  std::string next_;                     // the first bytes of a frame, or of what stands behind the last
};

}  // namespace

std::unique_ptr<DecodeStage> zstd_stage(std::string coding, BodyDecoder::Shared& shared, BodySink& next) {
  return std::make_unique<Zstd>(std::move(coding), shared, next);
}

}  // namespace h5i::websec
