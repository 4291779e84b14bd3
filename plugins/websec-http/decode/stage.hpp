// One coding of a body. Each adapter reads from take() and writes with emit(), which holds the caps.
#pragma once
#include <array>
#include <memory>
#include <string>

#include "plugins/websec-http/decode/decode.hpp"

namespace h5i::websec {

struct BodyDecoder::Shared {
  DecodeLimits limits;
  std::vector<DecodeFact> facts;
  uint64_t encoded = 0;
  bool stopped = false;
  void fact(std::string_view id, const std::string& coding);
};

class DecodeStage : public BodySink {
 public:
  DecodeStage(std::string coding, BodyDecoder::Shared& shared, BodySink& next) : coding_(std::move(coding)), shared_(shared), next_(next) {}
  bool take(std::string_view in) override {
    touched_ = touched_ || !in.empty();
    return !shared_.stopped && (in.empty() || decode(in));
  }
  // Nothing at all is no cut: answers without a body may name a coding.
  bool finish() {
    if (!touched_ || shared_.stopped || whole()) return !shared_.stopped;
    fact("coding-cut");
    return false;
  }

 protected:
  static constexpr size_t kPiece = 64 * 1024;
  virtual bool decode(std::string_view in) = 0;
  virtual bool whole() = 0;  // asked at the end of the input: it may end here
  bool emit(const char* bytes, size_t n);
  bool stop(std::string_view id) {
    fact(id);
    shared_.stopped = true;
    return false;
  }
  void fact(std::string_view id) { shared_.fact(id, coding_); }
  char* buffer() {
    if (!piece_) piece_ = std::make_unique<std::array<char, kPiece>>();
    return piece_->data();
  }

 private:
  std::string coding_;
  BodyDecoder::Shared& shared_;
  BodySink& next_;
  uint64_t out_ = 0;
  bool touched_ = false;
  std::unique_ptr<std::array<char, kPiece>> piece_;
};

std::unique_ptr<DecodeStage> gzip_stage(std::string coding, BodyDecoder::Shared& shared, BodySink& next);
std::unique_ptr<DecodeStage> deflate_stage(std::string coding, BodyDecoder::Shared& shared, BodySink& next);
std::unique_ptr<DecodeStage> brotli_stage(std::string coding, BodyDecoder::Shared& shared, BodySink& next);
std::unique_ptr<DecodeStage> zstd_stage(std::string coding, BodyDecoder::Shared& shared, BodySink& next);

}  // namespace h5i::websec
