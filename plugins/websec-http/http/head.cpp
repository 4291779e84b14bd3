#include "plugins/websec-http/http/head.hpp"

#include <algorithm>

#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

using syntax::is;

// One line of the buffer, without its end.
struct Line {
  size_t begin, end, next;
};

Line line_at(std::string_view bytes, size_t at, uint64_t offset, Oddities& oddities) {
  size_t lf = std::min(bytes.find('\n', at), bytes.size());
  size_t end = lf;
  if (end > at && bytes[end - 1] == '\r') {
    end--;
  } else {
    oddities.add(OddityId::BARE_LF, offset + lf);
  }
  return {at, end, std::min(lf + 1, bytes.size())};
}

// Every byte that may not stand in a line, where it stands.
void judge_bytes(std::string_view bytes, size_t begin, size_t end, uint64_t offset, Oddities& oddities) {
  uint8_t seen = 0;
  for (size_t i = begin; i < end; i++) seen |= syntax::kClasses[static_cast<unsigned char>(bytes[i])];
  if ((seen & (syntax::kControl | syntax::kEight)) == 0) return;
  for (size_t i = begin; i < end; i++) {
    char c = bytes[i];
    if (c == '\0') {
      oddities.add(OddityId::NUL_BYTE, offset + i);
    } else if (c == '\r') {
      oddities.add(OddityId::BARE_CR, offset + i);
    } else if (is(c, syntax::kControl)) {
      oddities.add(OddityId::CONTROL_BYTE, offset + i);
    } else if (is(c, syntax::kEight)) {
      oddities.add(OddityId::EIGHT_BIT, offset + i);
    }
  }
}

}  // namespace

FieldView FieldBlock::field(size_t i) const {
  const Span& f = fields_[i];
  std::string_view all = bytes_;
  return {all.substr(f.name, f.name_size), all.substr(f.value, f.value_size), offset_ + f.name};
}

std::optional<FieldView> FieldBlock::first(std::string_view name) const {
  for (size_t i = 0; i < fields_.size(); i++)
    if (FieldView f = field(i); syntax::same(f.name, name)) return f;
  return std::nullopt;
}

size_t FieldBlock::count(std::string_view name) const {
  size_t n = 0;
  for (size_t i = 0; i < fields_.size(); i++) n += syntax::same(field(i).name, name);
  return n;
}

void FieldBlock::read(std::string bytes, size_t from, uint64_t offset, size_t max_fields, Oddities& oddities) {
  bytes_ = std::move(bytes);
  offset_ = offset;
  fields_.clear();
  fields_.reserve(16);
  std::string_view all = bytes_;
  bool foldable = false;  // the line before was a header
  for (size_t at = from; at < all.size();) {
    Line l = line_at(all, at, offset, oddities);
    at = l.next;
    if (l.begin == l.end) break;
    std::string_view line = all.substr(l.begin, l.end - l.begin);
    judge_bytes(all, l.begin, l.end, offset, oddities);
    if (is(line[0], syntax::kSpace)) {
      if (!foldable) {
        oddities.add(OddityId::FOLD_WITHOUT_HEADER, offset + l.begin, line);
        continue;
      }
      oddities.add(OddityId::OBS_FOLD, offset + l.begin, line);
      std::string_view more = syntax::trimmed(line);
      if (more.empty()) continue;
      Span& f = fields_.back();
      auto begins = static_cast<uint32_t>(more.data() - all.data());
      if (f.value_size == 0) f.value = begins;
      f.value_size = static_cast<uint32_t>(begins + more.size() - f.value);
      continue;
    }
    foldable = false;
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      oddities.add(OddityId::NO_COLON, offset + l.begin, line);
      continue;
    }
    std::string_view name = line.substr(0, colon);
    if (!name.empty() && is(name.back(), syntax::kSpace)) {
      oddities.add(OddityId::SPACE_BEFORE_COLON, offset + l.begin, name);
      name = syntax::trimmed(name);
    }
    if (name.empty()) {
      oddities.add(OddityId::EMPTY_NAME, offset + l.begin, line);
      continue;
    }
    if (!syntax::token(name)) oddities.add(OddityId::BAD_NAME, offset + l.begin, name);
    if (fields_.size() == max_fields) {
      oddities.add(OddityId::TOO_MANY_HEADERS, offset + l.begin, name);
      return;
    }
    std::string_view value = syntax::trimmed(line.substr(colon + 1));
    fields_.push_back({static_cast<uint32_t>(name.data() - all.data()), static_cast<uint32_t>(name.size()),
                       static_cast<uint32_t>(value.data() - all.data()), static_cast<uint32_t>(value.size())});
    foldable = true;
  }
}

bool read_response_head(std::string&& bytes, uint64_t offset, size_t max_fields, Oddities& oddities, ResponseHead* out) {
  std::string_view all = bytes;
  size_t at = 0;
  while (at < all.size() && (all[at] == '\n' || all.substr(at, 2) == "\r\n")) {
    oddities.add(OddityId::BYTES_BEFORE_HEAD, offset + at);
    at += all[at] == '\n' ? 1 : 2;
  }
  Line l = line_at(all, at, offset, oddities);
  judge_bytes(all, l.begin, l.end, offset, oddities);
  std::string_view line = all.substr(l.begin, l.end - l.begin);
  out->minor = 1;
  out->status = 0;
  out->reason_at = static_cast<uint32_t>(l.end);
  out->reason_size = 0;
  auto bad = [&] { oddities.add(OddityId::BAD_STATUS_LINE, offset + l.begin, line); };

  // "HTTP/" DIGIT "." DIGIT SP 3DIGIT SP [reason]; lenient mode takes several spaces and tabs for one and other versions for 1.1.
  std::string_view rest = line;
  if (!syntax::same(rest.substr(0, 5), "HTTP/")) {
    oddities.add(OddityId::NOT_HTTP, offset + l.begin, line);
    return false;
  }
  size_t space = rest.find_first_of(" \t");
  if (space == std::string_view::npos) {
    oddities.add(OddityId::NOT_HTTP, offset + l.begin, line);
    return false;
  }
  if (!rest.starts_with("HTTP/")) bad();
  std::string_view version = rest.substr(5, space - 5);
  if (version == "1.0") out->minor = 0;
  if (version != "1.0" && version != "1.1") oddities.add(OddityId::BAD_VERSION, offset + l.begin + 5, version);
  rest.remove_prefix(space);
  size_t spaces = std::min(rest.find_first_not_of(" \t"), rest.size());
  if (spaces != 1 || rest[0] != ' ') bad();
  rest.remove_prefix(spaces);
  size_t digits = 0;
  while (digits < rest.size() && is(rest[digits], syntax::kDigit)) digits++;
  if (digits == 0 || digits > 9 || (digits < rest.size() && !is(rest[digits], syntax::kSpace))) {
    oddities.add(OddityId::NOT_HTTP, offset + l.begin, line);
    return false;
  }
  for (char c : rest.substr(0, digits)) out->status = out->status * 10 + (c - '0');
  if (digits != 3) bad();
  if (out->status < 100 || out->status > 599) oddities.add(OddityId::STATUS_RANGE, offset + l.begin, rest.substr(0, digits));
  rest.remove_prefix(digits);
  if (rest.empty()) {
    oddities.add(OddityId::NO_REASON_SPACE, offset + l.end);
  } else {
    if (rest[0] != ' ') bad();
    rest.remove_prefix(1);
    out->reason_at = static_cast<uint32_t>(rest.data() - all.data());
    out->reason_size = static_cast<uint32_t>(rest.size());
  }
  out->fields.read(std::move(bytes), l.next, offset, max_fields, oddities);
  return true;
}

std::string unfolded(std::string_view value) {
  std::string out;
  for (size_t i = 0; i < value.size();) {
    if (value[i] != '\r' && value[i] != '\n') {
      out += value[i++];
      continue;
    }
    while (!out.empty() && is(out.back(), syntax::kSpace)) out.pop_back();
    while (i < value.size() && (value[i] == '\r' || value[i] == '\n' || is(value[i], syntax::kSpace))) i++;
    out += ' ';
  }
  return out;
}

std::optional<size_t> HeadEnd::find(std::string_view in) {
  for (size_t at = 0; at < in.size();) {
    size_t lf = in.find('\n', at);
    size_t end = std::min(lf, in.size());
    if (end > at) {
      only_cr_ = only_cr_ && line_ == 0 && end - at == 1 && in[at] == '\r';
      line_ += end - at;
    }
    if (lf == std::string_view::npos) return std::nullopt;
    bool empty = line_ == 0 || only_cr_;
    line_ = 0;
    only_cr_ = true;
    at = lf + 1;
    if (!empty) {
      lines_++;
    } else if (lines_ > 0) {
      return at;
    }
  }
  return std::nullopt;
}

}  // namespace h5i::websec
