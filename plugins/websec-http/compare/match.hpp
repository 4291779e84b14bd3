// What is asked of one answer: "status:404", "size>1000", "header.Location~^https:", "!body~error".
#pragma once
#include <functional>

#include "plugins/websec-http/compare/pattern.hpp"

namespace h5i::websec {

struct AnswerFacts {
  int status = 0;  // 0: none came
  int64_t body_bytes = 0, total_us = 0;
  std::string ended, content_type;
  std::vector<std::string> names;                    // of its headers
  std::optional<std::string> head, body;             // none: not kept
};

// The values of one header in the bytes of a head, without the spaces around them; names without regard to case.
std::vector<std::string_view> header_values(std::string_view head, std::string_view name);

enum class Verdict { HELD, DID_NOT, UNKNOWN };

class Matcher {
 public:
  // H5I_E_INVALID with the fields that there are.
  static sdk::Result<Matcher> parse(const std::string& text);
  // UNKNOWN when it asks for bytes that were not kept. `where`: of what a pattern found, in words; never the bytes.
  Verdict judge(const AnswerFacts& answer, std::string* where) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool negated_ = false;
  std::function<Verdict(const AnswerFacts&, std::string*)> test_;
};

}  // namespace h5i::websec
