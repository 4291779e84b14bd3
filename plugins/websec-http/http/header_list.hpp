// The headers of a request as their author wrote them: order, case, spacing and duplicates stay byte for byte.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace h5i::websec {

// Why something was not written or not understood. The id is stable; the text is for a person.
struct [[nodiscard]] Refusal {
  std::string_view id;
  std::string what;
};
using Refused = std::optional<Refusal>;

class HeaderLine {
 public:
  explicit HeaderLine(std::string line);
  const std::string& line() const { return line_; }  // without CRLF
  std::string_view name() const { return std::string_view(line_).substr(0, colon_); }
  std::string_view value() const;  // without the spaces around it
  // Another value behind the same name, colon and spaces.
  void set_value(std::string_view value);

 private:
  std::string line_;
  size_t colon_;
};

class HeaderList {
 public:
  // A whole line "Name: value" as written; refused when it would be more than one line or has no name that is a token.
  Refused add_line(std::string_view line);
  Refused add(std::string_view name, std::string_view value);
  // One line of that name remains, where the first was or else at the end.
  Refused set(std::string_view name, std::string_view value);
  size_t remove(std::string_view name);
  const HeaderLine* find(std::string_view name) const;  // the first, names without regard to case
  HeaderLine* find(std::string_view name);
  size_t count(std::string_view name) const;
  const std::vector<HeaderLine>& lines() const { return lines_; }
  std::vector<HeaderLine>& lines() { return lines_; }
  bool empty() const { return lines_.empty(); }

 private:
  std::vector<HeaderLine> lines_;
};

}  // namespace h5i::websec
