// The header lines of HTTP/2 as they were decoded: order and duplicates stay, nothing is joined, nothing is left out.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/http/head.hpp"
#include "plugins/websec-http/http/oddity.hpp"

namespace h5i::websec {

struct H2Field {
  std::string name, value;  // raw
  bool operator==(const H2Field&) const = default;
};
using H2Fields = std::vector<H2Field>;

struct H2Head {
  int status = 0;
  H2Fields fields;      // pseudo headers too
  uint64_t offset = 0;  // of its HEADERS frame, in the bytes of the connection

  // The same as lines, "HTTP/2 200" first, for whatever reads heads of HTTP/1: names that are no token and pseudo headers have no line there, and
  // a break inside a value is a space. Offsets are those of this text.
  ResponseHead as_lines() const;
};
FieldBlock fields_as_lines(const H2Fields& fields);

// What a head and trailers do wrong, with `offset` for all of it. The status, or nothing when there is none to be had.
std::optional<int> judge_h2_head(const H2Fields& fields, uint64_t offset, Oddities& oddities);
void judge_h2_trailers(const H2Fields& fields, uint64_t offset, Oddities& oddities);
// What Content-Length says, when it says one thing.
std::optional<uint64_t> judge_h2_length(const H2Fields& fields, uint64_t offset, Oddities& oddities);

// Headers of HTTP/1 framing, which have no place in HTTP/2 (RFC 9113 section 8.2.2); `name` without regard to case.
bool h2_connection_header(std::string_view name);

}  // namespace h5i::websec
