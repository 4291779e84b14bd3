#include "core/evidence/exact.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "core/base/text.hpp"
#include "core/evidence/escapes.hpp"

namespace h5i::evidence {
namespace {

constexpr size_t kMinEncoded = 4;
constexpr size_t kMinLine = 16;  // a line of a longer value counts by itself: programs print files line by line

// What stays the same of a value's base64 when `before` other bytes precede it and any bytes follow. The characters
// beside it hold at most four bits of the value and are left.
std::string stable_base64(std::string_view value, size_t before) {
  std::string all = base64(std::string(before, '\0') + std::string(value));
  size_t from = (before * 8 + 5) / 6, to = (before + value.size()) * 8 / 6;
  return all.substr(from, to - from);
}

std::string url_alphabet(std::string s) {
  for (char& c : s) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return s;
}

std::string upper(std::string s) {
  for (char& c : s)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return s;
}

}  // namespace

// A text with everything taken out that may stand between two bytes of a value, and where each byte came from.
struct ExactMatcher::View {
  enum Mode { PLAIN, PERCENT, ESCAPES };
  std::string bytes;
  std::vector<uint32_t> from, to;  // in the text, of each byte
  size_t hold;                     // an escape that is not whole yet begins here
  bool decoded = false;
  std::string_view text;
  struct Dropped {
    size_t begin, end;  // in the text
    size_t at;          // in the bytes, what follows it
  };
  std::vector<Dropped> dropped;

  // `drop`: terminal sequences are taken out.
  View(std::string_view t, Mode mode, bool drop, bool final) : hold(t.size()), text(t) {
    bytes.reserve(t.size());
    from.reserve(t.size());
    to.reserve(t.size());
    bool line_begins = false;
    for (size_t i = 0; i < t.size();) {
      Escape e = mode == PERCENT ? percent_escape(t, i) : mode == ESCAPES ? backslash_escape(t, i) : Escape{};
      if (drop && e.length == 0 && !e.incomplete) {
        e = terminal_sequence(t, i);
        char escape = mode == PERCENT ? '%' : '\\';
        if (mode != PLAIN && t.substr(i, e.length).find(escape) != std::string_view::npos) e = {};  // one begins in it
        if (e.length > 0) dropped.push_back({i, i + e.length, bytes.size()});
      }
      if (e.incomplete && !final) {
        hold = i;
        return;
      }
      if (e.incomplete) e = {};
      size_t n = e.length ? e.length : 1;
      std::string_view one = e.length ? std::string_view(e.bytes, e.size) : t.substr(i, 1);
      decoded |= e.length > 0 && e.size > 0;
      if (one.size() == 1 && one[0] == '\0' && between_ascii(t, i)) one = {};
      for (char c : one) {
        if (c == '\n' || c == '\r') {
          line_begins = true;
        } else if (!(line_begins && (c == ' ' || c == '\t'))) {
          line_begins = false;
          bytes += c;
          from.push_back(static_cast<uint32_t>(i));
          to.push_back(static_cast<uint32_t>(i + n));
        }
      }
      i += n;
    }
  }
};

ExactMatcher::ExactMatcher(const std::vector<std::string>& values) {
  for (const std::string& v : values) {
    if (v.size() < kMinValue)
      too_short_++;
    else
      add_value(v);
  }
}

ExactMatcher::~ExactMatcher() {
  for (Pattern& p : patterns_) explicit_bzero(p.bytes.data(), p.bytes.size());
}

void ExactMatcher::add_value(std::string_view value) {
  // As the text is looked at: without line breaks and what they indent.
  std::string whole = View(value, View::PLAIN, false, true).bytes;
  std::vector<std::string> parts;
  if (whole.size() <= kPiece) {
    parts.push_back(whole);
  } else {
    for (size_t i = 0; i + kPiece <= whole.size(); i += kPiece) parts.push_back(whole.substr(i, kPiece));
    parts.push_back(whole.substr(whole.size() - kPiece));
  }
  if (whole.size() < value.size())
    for (size_t i = 0; i < value.size();) {
      size_t end = std::min(value.find('\n', i), value.size());
      std::string line = View(value.substr(i, end - i), View::PLAIN, false, true).bytes;
      if (line.size() >= kMinLine && line.size() <= kPiece) parts.push_back(line);
      i = end + 1;
    }
  for (const std::string& p : parts) add(p, "EXACT", true);
  // Encoders see the value with its line breaks.
  for (size_t i = 0; i < value.size(); i += kPiece) {
    std::string_view piece =
        value.substr(value.size() - i < kPiece && value.size() > kPiece ? value.size() - kPiece : i, kPiece);
    add(hex(piece.data(), piece.size()), "EXACT_HEX", false);
    add(upper(hex(piece.data(), piece.size())), "EXACT_HEX", false);
    for (size_t before = 0; before < 3; before++) {
      std::string s = stable_base64(piece, before);
      add(s, "EXACT_BASE64", false);
      add(url_alphabet(s), "EXACT_BASE64", false);
    }
  }
}

void ExactMatcher::add(std::string bytes, const char* rule, bool plain) {
  if (bytes.size() < (plain ? kMinValue : kMinEncoded)) return;
  for (const Pattern& p : patterns_)
    if (p.bytes == bytes) return;
  Pattern p{std::move(bytes), rule, plain, {}};
  p.prefix.resize(p.bytes.size());
  for (size_t i = 1, k = 0; i < p.bytes.size(); i++) {
    while (k > 0 && p.bytes[i] != p.bytes[k]) k = p.prefix[k - 1];
    if (p.bytes[i] == p.bytes[k]) k++;
    p.prefix[i] = static_cast<uint32_t>(k);
  }
  begins_.set(static_cast<unsigned char>(p.bytes[0]));
  patterns_.push_back(std::move(p));
}

// A value may begin inside of what was taken out for a terminal sequence, most likely with its last letter.
void ExactMatcher::match_from_dropped(const View& v, const char* rule_of_plain, bool only_plain, Sightings& out) const {
  std::string_view bytes = v.bytes;
  for (const View::Dropped& d : v.dropped)
    for (size_t begin = d.begin; begin < d.end; begin++) {
      if (!begins_[static_cast<unsigned char>(v.text[begin])]) continue;
      for (const Pattern& p : patterns_) {
        std::string_view head = v.text.substr(begin, d.end - begin), rest = bytes.substr(d.at), whole = p.bytes;
        if ((only_plain && !p.plain) || head.size() >= whole.size() || !whole.starts_with(head)) continue;
        whole.remove_prefix(head.size());
        if (rest.starts_with(whole))
          out.found.push_back({begin, begin, v.to[d.at + whole.size() - 1], p.plain ? rule_of_plain : p.rule});
        else if (whole.starts_with(rest))
          out.hold = std::min(out.hold, begin);
      }
    }
}

void ExactMatcher::match_view(const View& v, const char* rule_of_plain, bool only_plain, Sightings& out) const {
  const std::string& t = v.bytes;
  for (const Pattern& p : patterns_) {
    if (only_plain && !p.plain) continue;
    size_t n = p.bytes.size();
    auto step = [&](size_t k, char c) {
      while (k > 0 && (k == n || c != p.bytes[k])) k = p.prefix[k - 1];
      return c == p.bytes[k] ? k + 1 : k;
    };
    size_t mine = out.found.size();
    auto record = [&](size_t from, size_t to) {
      if (out.found.size() > mine && out.found.back().end > v.from[from])
        out.found.back().end = v.to[to - 1];
      else
        out.found.push_back({v.from[from], v.from[from], v.to[to - 1], p.plain ? rule_of_plain : p.rule});
    };
    for (size_t at = 0; at + n <= t.size();) {
      // glibc's memmem is two-way search: linear whatever the text. Overlapping repetitions are followed step by step.
      auto* hit = static_cast<const char*>(memmem(t.data() + at, t.size() - at, p.bytes.data(), n));
      if (!hit) break;
      at = static_cast<size_t>(hit - t.data()) + n;
      record(at - n, at);
      for (size_t k = p.prefix[n - 1]; k > 0 && at < t.size();) {
        k = step(k, t[at++]);
        if (k == n) record(at - n, at);
      }
    }
    // The longest end of the text that begins the pattern.
    size_t k = 0;
    for (size_t i = t.size() - std::min(n - 1, t.size()); i < t.size(); i++) k = step(k, t[i]);
    if (k > 0) out.hold = std::min<size_t>(out.hold, v.from[t.size() - k]);
  }
  out.hold = std::min(out.hold, v.hold);
  match_from_dropped(v, rule_of_plain, only_plain, out);
}

Sightings ExactMatcher::match(std::string_view text, bool final) const {
  Sightings out;
  out.hold = out.look_again = text.size();
  if (patterns_.empty() || text.empty()) return out;
  bool sequences = text.find('\x1b') != std::string_view::npos;
  for (bool drop : {false, true}) {
    if (drop && !sequences) break;
    match_view(View(text, View::PLAIN, drop, final), "EXACT", false, out);
    if (text.find('%') != std::string_view::npos) {
      View v(text, View::PERCENT, drop, final);
      if (v.decoded || v.hold < text.size()) match_view(v, "EXACT_PERCENT", true, out);
    }
    if (text.find('\\') != std::string_view::npos) {
      View v(text, View::ESCAPES, drop, final);
      if (v.decoded || v.hold < text.size()) match_view(v, "EXACT_ESCAPED", true, out);
    }
  }
  // What stands there in both forms is one.
  auto key = [](const Sighting& x) { return std::tuple(x.begin, x.end, std::string_view(x.rule)); };
  std::sort(out.found.begin(), out.found.end(), [&](const Sighting& a, const Sighting& b) { return key(a) < key(b); });
  out.found.erase(std::unique(out.found.begin(), out.found.end(),
                              [&](const Sighting& a, const Sighting& b) { return key(a) == key(b); }),
                  out.found.end());
  if (final) out.hold = text.size();
  out.look_again = out.hold;
  return out;
}

}  // namespace h5i::evidence
