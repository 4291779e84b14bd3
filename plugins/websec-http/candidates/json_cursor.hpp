// JSON read forward, without a tree: what is not asked for takes no memory. For documents of strangers: depth is bounded, strings are kept up to a cap.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace h5i::websec {

class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : s_(text) {}

  // Each takes one value; false once the text is no JSON, and from then on. `member` and `element` stand before a value and must take it.
  bool object(const std::function<bool(const std::string& key)>& member);
  bool array(const std::function<bool()>& element);
  // A string, at most `cap` bytes of it; of another value "" after skipping it. *cut: there was more.
  bool string(std::string* out, size_t cap, bool* cut = nullptr);
  bool skip();
  char peek();      // the first byte of the next value, 0 at the end
  bool finished();  // nothing but white space is left
  bool failed() const { return failed_; }
  size_t offset() const { return i_; }

  static constexpr int kMaxDepth = 64;

 private:
  bool fail() {
    failed_ = true;
    return false;
  }
  void space();
  bool text(std::string* out, size_t cap, bool* cut);
  bool word();  // a number or a literal, loosely
  std::string_view s_;
  size_t i_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace h5i::websec
