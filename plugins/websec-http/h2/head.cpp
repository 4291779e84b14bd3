#include "plugins/websec-http/h2/head.hpp"

#include "plugins/websec-http/http/chunked.hpp"
#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

constexpr std::string_view kConnectionHeaders[] = {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"};

bool pseudo(const H2Field& f) { return !f.name.empty() && f.name[0] == ':'; }

std::string lines_of(std::string first, const H2Fields& fields) {
  std::string out = std::move(first);
  for (const H2Field& f : fields) {
    if (!syntax::token(f.name)) continue;
    out.append(f.name).append(": ");
    for (char c : f.value) out.push_back(c == '\r' || c == '\n' || c == '\0' ? ' ' : c);
    out.append("\r\n");
  }
  return out.append("\r\n");
}

void judge_field(const H2Field& f, uint64_t offset, Oddities& oddities) {
  bool upper = false, bad = false;
  for (char c : f.name) {
    upper = upper || (c >= 'A' && c <= 'Z');
    bad = bad || !syntax::is(c, syntax::kToken);
  }
  if (f.name.empty()) oddities.add(OddityId::EMPTY_NAME, offset, f.value);
  if (upper) oddities.add(OddityId::H2_NAME_CASE, offset, f.name);
  if (bad) oddities.add(OddityId::BAD_NAME, offset, f.name);
  bool broken = false, control = false, eight = false;
  for (char c : f.value) {
    if (c == '\r' || c == '\n' || c == '\0') broken = true;
    else if (syntax::is(c, syntax::kControl)) control = true;
    else if (syntax::is(c, syntax::kEight)) eight = true;
  }
  if (broken) oddities.add(OddityId::H2_VALUE_BREAK, offset, f.name);
  if (control) oddities.add(OddityId::CONTROL_BYTE, offset, f.name);
  if (eight) oddities.add(OddityId::EIGHT_BIT, offset, f.name);
  if (syntax::trimmed(f.value).size() != f.value.size()) oddities.add(OddityId::H2_VALUE_SPACE, offset, f.name);
  if (h2_connection_header(f.name)) oddities.add(OddityId::H2_CONNECTION_HEADER, offset, f.name);
}

}  // namespace

bool h2_connection_header(std::string_view name) {
  for (std::string_view c : kConnectionHeaders)
    if (syntax::same(name, c)) return true;
  return false;
}

FieldBlock fields_as_lines(const H2Fields& fields) {
  FieldBlock block;
  Oddities none(false);
  block.read(lines_of("", fields), 0, 0, fields.size(), none);
  return block;
}

ResponseHead H2Head::as_lines() const {
  ResponseHead head;
  head.status = status;
  std::string first = "HTTP/2 " + std::to_string(status) + "\r\n";
  size_t from = first.size();
  head.reason_at = static_cast<uint32_t>(from - 2);
  Oddities none(false);
  head.fields.read(lines_of(std::move(first), fields), from, 0, fields.size(), none);
  return head;
}

std::optional<int> judge_h2_head(const H2Fields& fields, uint64_t offset, Oddities& oddities) {
  std::optional<std::string_view> status;
  bool regular = false, repeated = false;
  for (const H2Field& f : fields) {
    if (!pseudo(f)) {
      regular = true;
      judge_field(f, offset, oddities);
      continue;
    }
    if (f.name != ":status" || regular) oddities.add(OddityId::H2_PSEUDO, offset, f.name);
    if (f.name != ":status") continue;
    repeated = repeated || status;
    if (!status) status = f.value;
  }
  if (!status || repeated || status->size() != 3 || !syntax::all(*status, syntax::kDigit) || (*status)[0] == '0') {
    oddities.add(OddityId::H2_STATUS, offset, status.value_or(std::string_view()));
    return std::nullopt;
  }
  int code = ((*status)[0] - '0') * 100 + ((*status)[1] - '0') * 10 + ((*status)[2] - '0');
  if (code > 599) oddities.add(OddityId::STATUS_RANGE, offset, *status);
  return code;
}

void judge_h2_trailers(const H2Fields& fields, uint64_t offset, Oddities& oddities) {
  oddities.add(OddityId::TRAILERS, offset);
  for (const H2Field& f : fields) {
    if (pseudo(f)) {
      oddities.add(OddityId::H2_PSEUDO_IN_TRAILERS, offset, f.name);
      continue;
    }
    judge_field(f, offset, oddities);
    if (forbidden_in_trailers(f.name)) oddities.add(OddityId::TRAILER_FRAMING, offset, f.name);
  }
}

std::optional<uint64_t> judge_h2_length(const H2Fields& fields, uint64_t offset, Oddities& oddities) {
  std::optional<std::string_view> kept;
  size_t lines = 0;
  bool differ = false, list = false;
  for (const H2Field& f : fields) {
    if (!syntax::same(f.name, "content-length")) continue;
    lines++;
    size_t elements = 0;
    syntax::each_element(f.value, [&](std::string_view e) {
      elements++;
      if (!kept) kept = e;
      differ = differ || e != *kept;
    });
    list = list || elements > 1;
  }
  if (!kept) return std::nullopt;
  if (lines > 1) oddities.add(OddityId::CL_REPEATED, offset, *kept);
  if (list) oddities.add(OddityId::CL_LIST, offset, *kept);
  if (differ) {
    oddities.add(OddityId::CL_CONFLICT, offset, *kept);
    return std::nullopt;
  }
  if (kept->empty() || !syntax::all(*kept, syntax::kDigit)) {
    oddities.add(OddityId::CL_INVALID, offset, *kept);
    return std::nullopt;
  }
  if (kept->size() > 1 && (*kept)[0] == '0') oddities.add(OddityId::CL_NOT_CANONICAL, offset, *kept);
  uint64_t n = 0;
  for (char c : *kept) {
    auto digit = static_cast<uint64_t>(c - '0');
    if (n > (static_cast<uint64_t>(INT64_MAX) - digit) / 10) {
      oddities.add(OddityId::CL_TOO_LARGE, offset, *kept);
      return std::nullopt;
    }
    n = n * 10 + digit;
  }
  return n;
}

}  // namespace h5i::websec
