// A pattern on hostile bytes: RE2, whose time is linear in the text whatever it says. Bytes are letters; there is no wrong text.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "h5i/plugin.hpp"

namespace re2 {
class RE2;
}

namespace h5i::websec {

class Pattern {
 public:
  // H5I_E_INVALID says what is wrong with it.
  static sdk::Result<Pattern> compile(std::string_view text);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  struct Found {
    size_t offset = 0, size = 0;            // of the whole
    std::optional<std::string_view> first;  // what its first group matched
  };
  std::optional<Found> find(std::string_view text) const;
  int groups() const;

 private:
  explicit Pattern(std::unique_ptr<re2::RE2> re);
  std::unique_ptr<re2::RE2> re_;
};

}  // namespace h5i::websec
