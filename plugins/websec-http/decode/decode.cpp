#include "plugins/websec-http/decode/decode.hpp"

#include <algorithm>

#include "plugins/websec-http/decode/stage.hpp"
#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kMaxName = 64;      // bytes kept of a coding's name
constexpr size_t kMaxListed = 1000;  // names kept of a header: more than any limit on codings

using Make = std::unique_ptr<DecodeStage> (*)(std::string, BodyDecoder::Shared&, BodySink&);
struct Known {
  std::string_view name;
  Make make;
};
constexpr Known kKnown[] = {{"gzip", gzip_stage}, {"x-gzip", gzip_stage}, {"deflate", deflate_stage}, {"br", brotli_stage}, {"zstd", zstd_stage}};

Make maker(std::string_view name) {
  for (const Known& k : kKnown)
    if (syntax::same(k.name, name)) return k.make;
  return nullptr;
}

}  // namespace

std::vector<std::string> content_codings(const FieldBlock& fields) {
  std::vector<std::string> out;
  for (size_t i = 0; i < fields.size(); i++)
    if (FieldView f = fields.field(i); syntax::same(f.name, "content-encoding"))
      syntax::each_element(unfolded(f.value), [&](std::string_view e) {
        if (!e.empty() && !syntax::same(e, "identity") && out.size() < kMaxListed) out.emplace_back(e.substr(0, kMaxName));
      });
  return out;
}

void BodyDecoder::Shared::fact(std::string_view id, const std::string& coding) {
  for (DecodeFact& f : facts)
    if (f.id == id && f.coding == coding) {
      if (f.count != UINT32_MAX) f.count++;
      return;
    }
  facts.push_back({id, coding, encoded, 1});
}

bool DecodeStage::emit(const char* bytes, size_t n) {
  const DecodeLimits& limits = shared_.limits;
  uint64_t room = limits.output - out_;
  bool over = n > room;
  if (over) n = static_cast<size_t>(room);
  out_ += n;
  if (n > 0 && !next_.take({bytes, n})) {
    shared_.stopped = true;
    return false;
  }
  if (over) return stop("decoded-too-large");
  if (out_ > limits.ratio_from && out_ / limits.ratio > shared_.encoded) return stop("decoded-ratio");
  return true;
}

class BodyDecoder::Out : public BodySink {
 public:
  explicit Out(BodySink& to) : to_(to) {}
  bool take(std::string_view bytes) override {
    count += bytes.size();
    return to_.take(bytes);
  }
  uint64_t count = 0;

 private:
  BodySink& to_;
};

BodyDecoder::BodyDecoder(const std::vector<std::string>& codings, const DecodeLimits& limits, BodySink& to)
    : shared_(std::make_unique<Shared>()), out_(std::make_unique<Out>(to)) {
  shared_->limits = limits;
  if (codings.size() > limits.codings) {
    shared_->fact("too-many-codings", codings.back());
    left_on_ = codings;
    return;
  }
  size_t known = codings.size();
  while (known > 0 && maker(codings[known - 1])) known--;
  left_on_.assign(codings.begin(), codings.begin() + static_cast<ptrdiff_t>(known));
  if (known > 0) shared_->fact("coding-unknown", codings[known - 1]);
  // Built from the inside out: the innermost writes to the sink.
  BodySink* next = out_.get();
  for (size_t i = known; i < codings.size(); i++) {
    stages_.push_back(maker(codings[i])(codings[i], *shared_, *next));
    next = stages_.back().get();
  }
  std::reverse(stages_.begin(), stages_.end());
}

BodyDecoder::~BodyDecoder() = default;

bool BodyDecoder::take(std::string_view encoded) {
  if (shared_->stopped) return false;
  shared_->encoded += encoded.size();
  BodySink& first = stages_.empty() ? static_cast<BodySink&>(*out_) : *stages_.front();
  if (!first.take(encoded)) shared_->stopped = true;
  return !shared_->stopped;
}

bool BodyDecoder::finish() {
  bool whole = !shared_->stopped;
  for (auto& s : stages_) whole = s->finish() && whole;
  return whole;
}

bool BodyDecoder::stopped() const { return shared_->stopped; }
const std::vector<DecodeFact>& BodyDecoder::facts() const { return shared_->facts; }
uint64_t BodyDecoder::decoded() const { return out_->count; }

}  // namespace h5i::websec
