// Header lines as they came: one buffer of bytes and spans into it, so that nothing is copied and each header keeps its offset.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/http/oddity.hpp"

namespace h5i::websec {

struct FieldView {
  std::string_view name;
  std::string_view value;  // without the spaces around it; of a folded header with its line breaks
  uint64_t offset = 0;     // of the name, in the bytes of the message
};

// The header lines of a head or of trailers.
class FieldBlock {
 public:
  size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }
  FieldView field(size_t i) const;
  std::optional<FieldView> first(std::string_view name) const;  // names without regard to case
  size_t count(std::string_view name) const;
  const std::string& bytes() const { return bytes_; }  // all of it, with the status line and the empty line
  uint64_t offset() const { return offset_; }

  // Takes bytes that end with an empty line and reads the header lines from `from` on. What is odd goes into `oddities`; the
  // lines behind a fatal one are not read.
  void read(std::string bytes, size_t from, uint64_t offset, size_t max_fields, Oddities& oddities);

 private:
  struct Span {
    uint32_t name, name_size, value, value_size;
  };
  std::string bytes_;
  uint64_t offset_ = 0;
  std::vector<Span> fields_;
};

struct ResponseHead {
  FieldBlock fields;
  int minor = 1;
  int status = 0;
  std::string_view reason() const { return std::string_view(fields.bytes()).substr(reason_at, reason_size); }
  uint32_t reason_at = 0, reason_size = 0;
};

// Bytes that end with an empty line, as they came; false, and the bytes stay the caller's, when there is no status to be had.
bool read_response_head(std::string&& bytes, uint64_t offset, size_t max_fields, Oddities& oddities, ResponseHead* out);

// A folded value on one line (RFC 9112 section 5.2): each break with the spaces around it becomes one space.
std::string unfolded(std::string_view value);

// Finds the empty line that ends a head or trailers, over any split of the bytes.
class HeadEnd {
 public:
  // Trailers end at an empty first line; a head does not.
  explicit HeadEnd(bool empty_first_line_ends) : lines_(empty_first_line_ends ? 1 : 0) {}
  // How many bytes of `in` belong to it, when the end is among them.
  std::optional<size_t> find(std::string_view in);

 private:
  size_t lines_;
  size_t line_ = 0;  // bytes of the line that began in earlier calls
  bool only_cr_ = true;
};

}  // namespace h5i::websec
