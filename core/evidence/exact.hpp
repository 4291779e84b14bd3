// Known secrets in a text: as they are, in base64 at any alignment, in hexadecimal, with percent or JSON escapes; also
// across line breaks, terminal sequences and the zero bytes of UTF-16.
#pragma once
#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "core/evidence/sighting.hpp"

namespace h5i::evidence {

class ExactMatcher {
 public:
  static constexpr size_t kMinValue = 4;  // shorter ones would blank ordinary text
  static constexpr size_t kPiece = 512;   // longer values are matched piece by piece, so that little is held back
  explicit ExactMatcher(const std::vector<std::string>& values);
  ~ExactMatcher();
  bool empty() const { return patterns_.empty(); }
  size_t too_short() const { return too_short_; }
  // `final`: nothing follows. Linear in the text for a given set of values.
  Sightings match(std::string_view text, bool final) const;

 private:
  struct Pattern {
    std::string bytes;
    const char* rule;
    bool plain;                    // the value itself: also looked for behind escapes
    std::vector<uint32_t> prefix;  // Knuth-Morris-Pratt
  };
  struct View;
  void add(std::string bytes, const char* rule, bool plain);
  void add_value(std::string_view value);
  void match_from_dropped(const View& v, const char* rule_of_plain, bool only_plain, Sightings& out) const;
  void match_view(const View& v, const char* rule_of_plain, bool only_plain, Sightings& out) const;

  std::vector<Pattern> patterns_;
  std::bitset<256> begins_;  // the first bytes of all patterns
  size_t too_short_ = 0;
};

}  // namespace h5i::evidence
