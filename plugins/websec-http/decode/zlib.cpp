// gzip (RFC 1952) and deflate (RFC 1950, or RFC 1951 alone, as many servers send it) by zlib.
#include <zlib.h>

#include <algorithm>

#include "plugins/websec-http/decode/stage.hpp"

namespace h5i::websec {
namespace {

constexpr int kWindow = 15, kGzip = 16;

class Inflate : public DecodeStage {
 public:
  using DecodeStage::DecodeStage;
  ~Inflate() override {
    if (open_) inflateEnd(&z_);
  }

 protected:
  bool open(int window) {
    z_ = {};
    open_ = inflateInit2(&z_, window) == Z_OK;
    return open_ || stop("coding-error");
  }
  // Until the input is used up or a stream ended; what is left of the input is in *in.
  bool run(std::string_view* in) {
    while (!in->empty() && !ended_) {
      uInt given = static_cast<uInt>(std::min<size_t>(in->size(), 1u << 30));
      z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in->data()));
      z_.avail_in = given;
      do {
        z_.next_out = reinterpret_cast<Bytef*>(buffer());
        z_.avail_out = kPiece;
        int r = inflate(&z_, Z_NO_FLUSH);
        size_t n = kPiece - z_.avail_out;
        if (n > 0 && !emit(buffer(), n)) return false;
        ended_ = r == Z_STREAM_END;
        if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) return stop("coding-error");
      } while (!ended_ && z_.avail_out == 0);
      in->remove_prefix(given - z_.avail_in);
    }
    return true;
  }
  bool whole() override { return ended_; }

  z_stream z_{};
  bool open_ = false, ended_ = false;
};

class Gzip : public Inflate {
 public:
  using Inflate::Inflate;

 private:
  // What every member begins with: the two bytes of gzip, and deflate as its method.
  static constexpr std::string_view kBegin{"\x1f\x8b\x08", 3};

  bool decode(std::string_view in) override {
    if (!open_ && !open(kWindow + kGzip)) return false;
    for (;;) {
      if (!run(&in)) return false;
      if (in.empty()) return true;
      // Another member may follow; anything else does not belong to the body.
      while (!in.empty() && next_.size() < kBegin.size() && kBegin.starts_with(next_)) {
        next_ += in.front();
        in.remove_prefix(1);
      }
      if (!kBegin.starts_with(next_)) {
        fact("bytes-after-coding");
        return true;
      }
      if (next_.size() < kBegin.size()) return true;
      inflateReset(&z_);
      ended_ = false;
      fact("gzip-members");
      std::string_view begin = next_;
      if (!run(&begin)) return false;
      next_.clear();
    }
  }
  bool whole() override {
    if (ended_ && !next_.empty() && kBegin.starts_with(next_)) fact("bytes-after-coding");
    return ended_;
  }
  std::string next_;  // the first bytes behind a member
};

class Deflate : public Inflate {
 public:
  using Inflate::Inflate;

 private:
  bool decode(std::string_view in) override {
    if (!open_) {
      first_.append(in.substr(0, 2 - first_.size()));
      in.remove_prefix(std::min(in.size(), first_.size() - seen_));
      seen_ = first_.size();
      if (seen_ < 2) return true;
      // The two bytes of a zlib header: method 8, and a multiple of 31.
      auto cmf = static_cast<unsigned char>(first_[0]), flags = static_cast<unsigned char>(first_[1]);
      bool wrapped = (cmf & 15) == 8 && (cmf * 256u + flags) % 31 == 0;
      if (!wrapped) fact("deflate-raw");
      if (!open(wrapped ? kWindow : -kWindow)) return false;
      std::string_view begin = first_;
      if (!run(&begin)) return false;
      if (!begin.empty()) fact("bytes-after-coding");
    }
    if (!run(&in)) return false;
    if (ended_ && !in.empty()) fact("bytes-after-coding");
    return true;
  }
  std::string first_;
  size_t seen_ = 0;
};

}  // namespace

std::unique_ptr<DecodeStage> gzip_stage(std::string coding, BodyDecoder::Shared& shared, BodySink& next) {
  return std::make_unique<Gzip>(std::move(coding), shared, next);
}
std::unique_ptr<DecodeStage> deflate_stage(std::string coding, BodyDecoder::Shared& shared, BodySink& next) {
  return std::make_unique<Deflate>(std::move(coding), shared, next);
}

}  // namespace h5i::websec
