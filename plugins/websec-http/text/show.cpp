#include "plugins/websec-http/text/show.hpp"

#include <algorithm>
#include <iterator>

#include "plugins/websec-http/text/characters.hpp"

namespace h5i::websec {
namespace {

struct Range {
  uint32_t first, last;
};
// Sorted. Unicode's Default_Ignorable_Code_Point, Bidi_Control, line separators, interlinear annotation, blank letters, private use.
constexpr Range kDeceptive[] = {
    {0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},     {0x61c, 0x61c},     {0x115f, 0x1160},     {0x17b4, 0x17b5},
    {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0x2800, 0x2800},   {0x3164, 0x3164},     {0xd800, 0xf8ff},
    {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},     {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0x1fffe, 0x1ffff}, {0x2fffe, 0x2ffff}, {0x3fffe, 0xdffff}, {0xe0000, 0xeffff}, {0xf0000, 0x10ffff},
};
constexpr Range kMarks[] = {{0x300, 0x36f}, {0x483, 0x489}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe20, 0xfe2f}};
// Marks on one letter: languages need a few, and more climb over the lines above.
constexpr size_t kMaxMarks = 4;
constexpr size_t kTab = 4;

template <size_t N>
bool in(const Range (&ranges)[N], uint32_t c) {
  const Range* r = std::lower_bound(std::begin(ranges), std::end(ranges), c, [](const Range& a, uint32_t b) { return a.last < b; });
  return r != std::end(ranges) && r->first <= c;
}

void append_hex(std::string* out, uint32_t n, int digits) {
  static const char kHex[] = "0123456789abcdef";
  int width = digits;
  while (width < 6 && n >> (4 * width)) width++;
  for (int i = width - 1; i >= 0; i--) *out += kHex[n >> (4 * i) & 15];
}

// The visible spelling of a byte or a character.
std::string escape(const Character& c) {
  if (c.code == '\n' && c.valid) return "\\n";
  if (c.code == '\r' && c.valid) return "\\r";
  if (c.code == '\t' && c.valid) return "\\t";
  std::string out = c.valid && c.code >= 0x80 ? "\\u{" : "\\x";
  append_hex(&out, c.code, c.valid && c.code >= 0x80 ? 1 : 2);
  if (c.valid && c.code >= 0x80) out += '}';
  return out;
}

std::string_view entity(uint32_t c) {
  switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return {};
  }
}

}  // namespace

bool deceptive_character(uint32_t c) { return c > 0x10ffff || in(kDeceptive, c); }
bool combining_mark(uint32_t c) { return in(kMarks, c); }

Shown show(std::string_view raw, const ShowRules& rules) {
  Shown out;
  size_t marks = 0;
  bool base = false;  // the character before is one that a selector or a mark may follow
  out.text.reserve(std::min(raw.size(), rules.cap));
  for (size_t i = 0; i < raw.size();) {
    // Most text is plain: as much of it as fits goes at once.
    size_t end = i;
    while (end < raw.size() && raw[end] >= 0x20 && raw[end] < 0x7f && (!rules.html || entity(static_cast<unsigned char>(raw[end])).empty())) end++;
    if (end > i) {
      size_t n = std::min(end - i, rules.cap - out.text.size());
      out.text.append(raw.substr(i, n));
      out.used = i += n;
      if (n > 0) {
        base = true;
        marks = 0;
      }
      if (i == end) continue;
      out.cut = true;
      break;
    }
    Character c = character_at(raw, i);
    bool mark = c.valid && combining_mark(c.code);
    // Text and emoji style, once behind a character: everywhere in writing. A row of selectors is a way to hide bytes.
    bool style = c.valid && (c.code == 0xfe0e || c.code == 0xfe0f) && base;
    bool plain = c.valid && (style || !deceptive_character(c.code)) && (!mark || (base && marks < kMaxMarks));
    std::string piece;
    bool dropped = false, escaped = false;
    if (rules.lines && c.valid && c.code == '\n') {
      piece = "\n";
    } else if (rules.lines && c.valid && c.code == '\t') {
      piece.assign(kTab, ' ');
    } else if (plain) {
      piece = raw.substr(i, c.size);
      if (std::string_view e = rules.html ? entity(c.code) : std::string_view(); !e.empty()) piece = e;
    } else if (rules.drop_invisible && c.valid && c.code >= 0xa0) {
      dropped = true;
    } else {
      piece = escape(c);
      escaped = true;
    }
    if (out.text.size() + piece.size() > rules.cap) {
      out.cut = true;
      break;
    }
    out.text += piece;
    out.dropped += dropped;
    out.escaped += escaped;
    i += c.size;
    out.used = i;
    marks = mark ? marks + 1 : 0;
    base = plain && !style;
  }
  return out;
}

std::string show_field(std::string_view raw, size_t cap) {
  Shown s = show(raw, {.cap = cap});
  return s.cut ? s.text + "..." : s.text;
}

}  // namespace h5i::websec
