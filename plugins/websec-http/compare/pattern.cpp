#include "plugins/websec-http/compare/pattern.hpp"

#include <re2/re2.h>

namespace h5i::websec {
namespace {
constexpr size_t kLongest = 4096;
constexpr int64_t kMemory = 8 << 20;
}  // namespace

Pattern::Pattern(std::unique_ptr<re2::RE2> re) : re_(std::move(re)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

sdk::Result<Pattern> Pattern::compile(std::string_view text) {
  if (text.empty() || text.size() > kLongest) return sdk::failure(H5I_E_INVALID, "a pattern has 1 to " + std::to_string(kLongest) + " bytes");
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMemory);
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  auto re = std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
  if (!re->ok()) return sdk::failure(H5I_E_INVALID, "not a pattern: " + re->error().substr(0, 150));
  return Pattern(std::move(re));
}

int Pattern::groups() const { return re_->NumberOfCapturingGroups(); }

std::optional<Pattern::Found> Pattern::find(std::string_view text) const {
  re2::StringPiece parts[2];
  const int wanted = groups() > 0 ? 2 : 1;
  if (!re_->Match(re2::StringPiece(text.data(), text.size()), 0, text.size(), re2::RE2::UNANCHORED, parts, wanted)) return std::nullopt;
  Found out{static_cast<size_t>(parts[0].data() - text.data()), parts[0].size(), {}};
  if (wanted == 2 && parts[1].data() != nullptr) out.first = std::string_view(parts[1].data(), parts[1].size());
  return out;
}

}  // namespace h5i::websec
