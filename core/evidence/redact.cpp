#include "core/evidence/redact.hpp"

#include <algorithm>
#include <cstring>

#include "core/evidence/escapes.hpp"
#include "core/evidence/exact.hpp"
#include "core/evidence/patterns.hpp"

namespace h5i::evidence {
namespace {

constexpr std::string_view kMarker = "‹redacted›";
constexpr size_t kLazyFrom = 128;  // with this much undecided, a few more characters of it are not worth a look
constexpr size_t kLazyStep = 32;
constexpr size_t kNeighbours = 34;  // a zero byte, a terminal sequence of the longest kind, the character before

// The text as patterns see it: without terminal sequences and the zero bytes of UTF-16. Empty `from` means unchanged.
struct Plain {
  std::string bytes;
  std::vector<uint32_t> from;
  std::vector<bool> gap;
  size_t end;  // of what was looked at: a terminal sequence that is not whole yet begins here

  Plain(std::string_view t, bool final) : end(t.size()) {
    for (size_t i = 0; i < t.size();) {
      Escape e = colour_sequence(t, i);
      // What follows a zero byte decides whether it is half a character.
      bool undecided = e.incomplete || (t[i] == '\0' && i + 1 == t.size());
      if (undecided && !final) {
        end = i;
        break;
      }
      bool dropped = e.length > 0 || (t[i] == '\0' && between_ascii(t, i));
      if (!dropped) {
        bytes += t[i];
        from.push_back(static_cast<uint32_t>(i));
        gap.push_back(gap_next_);
      }
      if (e.length > 0)
        gap_next_ = true;
      else if (!dropped)
        gap_next_ = false;
      i += e.length > 0 ? e.length : 1;
    }
    gap.push_back(gap_next_);
  }
  size_t raw(size_t i) const { return i < from.size() ? from[i] : end; }
  size_t raw_end(size_t i) const { return i == 0 ? 0 : from[i - 1] + 1; }

 private:
  bool gap_next_ = false;
};

// Nothing in it that ends a value, so nothing that what is undecided waits for.
bool inside_value(std::string_view s) {
  return s.find_first_of(" \t\r\n\"'`,;()[]{}<>&@\\%\x1b") == std::string_view::npos;
}

}  // namespace

struct Redactor::Impl {
  explicit Impl(const std::vector<std::string>& values) : exact(values) {
    if (exact.too_short() > 0) counts["too-short"] = exact.too_short();
  }

  std::string feed(std::string_view chunk) {
    buffer.append(chunk);
    unseen += chunk.size();
    if (buffer.size() - unseen > kLazyFrom && unseen < kLazyStep && inside_value(chunk)) return {};
    return step(false);
  }

  Sightings patterns(bool final) const {
    if (buffer.find('\x1b') == std::string::npos && buffer.find('\0') == std::string::npos)
      return find_patterns(buffer, state, final, nullptr);
    Plain p(buffer, final);
    Sightings s = find_patterns(p.bytes, state, final, &p.gap);
    for (Sighting& x : s.found) {
      x.context = x.continued ? 0 : p.raw(x.context);
      x.begin = x.continued ? 0 : p.raw(x.begin);
      x.end = p.raw_end(x.end);
    }
    // Whether a terminal sequence at the end stands inside the token is known when the next character is.
    if (!s.found.empty() && s.found.back().after == Swallow::TOKEN) {
      s.hold = s.look_again = s.found.back().end;
      return s;
    }
    // Nothing undecided: what was dropped at the end is done with as well.
    s.hold = s.hold < p.bytes.size() ? p.raw(s.hold) : p.end;
    s.look_again = s.look_again < p.bytes.size() ? p.raw(s.look_again) : p.end;
    return s;
  }

  // The character that a pattern sees before position i > 0; 0 after a terminal sequence.
  char character_before(size_t i) const {
    size_t esc = buffer.rfind('\x1b', i - 1);
    if (esc != std::string::npos && esc + colour_sequence(buffer, esc).length == i) return 0;
    if (buffer[i - 1] != '\0') return buffer[i - 1];
    return i > 1 ? buffer[i - 2] : state.before;  // half a character: the other half may be gone from the buffer already
  }

  std::string step(bool final) {
    unseen = 0;
    Sightings all = patterns(final), known = exact.match(buffer, final);
    size_t show = final ? buffer.size() : std::min(all.hold, known.hold);
    size_t again = final ? buffer.size() : std::min(all.look_again, known.look_again);
    all.found.insert(all.found.end(), known.found.begin(), known.found.end());
    std::sort(all.found.begin(), all.found.end(),
              [](const Sighting& a, const Sighting& b) { return a.begin < b.begin; });

    // Nothing is shown by halves: where the end cuts something, it waits with all that overlaps it.
    size_t undecided = show;
    for (auto s = all.found.rbegin(); s != all.found.rend(); ++s)
      if (s->end > show && s->begin < show) show = s->begin;
    if (buffer.size() - show > kHold / 2) show = again = let_go(all.found, undecided);
    for (const Sighting& s : all.found)
      if (s.begin >= show && s.end > shown) again = std::min(again, s.context);
    again = with_neighbours(all.found, again);
    return emit(all.found, std::max(show, shown), std::min(again, std::max(show, shown)));
  }

  // Whether a zero byte is half a character shows by what stands on both sides of it, so that stays in the buffer.
  size_t with_neighbours(const std::vector<Sighting>& found, size_t again) const {
    bool swallowing = std::any_of(found.begin(), found.end(), [&](const Sighting& s) { return s.end == again && s.after != Swallow::NONE; });
    bool zero = (again > 0 && buffer[again - 1] == '\0') || (again < buffer.size() && buffer[again] == '\0');
    return zero && !swallowing ? again - std::min(again, kNeighbours) : again;
  }

  // More would be held back than is promised: something pretends to be undecided for ever. A token that is still open
  // is cut there, and goes on being swallowed; anything else is shown as it is known now.
  size_t let_go(std::vector<Sighting>& found, size_t undecided) const {
    if (buffer.size() - undecided > kHold / 2) return buffer.size();
    for (Sighting& s : found) {
      if (s.begin >= undecided || s.end <= undecided) continue;
      if (s.after != Swallow::TOKEN) return buffer.size();
      s.end = undecided;
    }
    return undecided;
  }

  std::string emit(const std::vector<Sighting>& found, size_t show, size_t again) {
    std::string out;
    size_t at = shown;
    PatternState next;
    next.before = again > 0 ? character_before(again) : state.before;
    if (again == 0) next = state;
    for (size_t i = 0; i < found.size() && found[i].begin < show;) {
      // Everything that overlaps becomes one marker; each rule is counted.
      size_t b = found[i].begin, e = found[i].end;
      bool continued = found[i].continued;
      size_t k = i;
      for (; k < found.size() && (found[k].begin < e || k == i); k++) e = std::max(e, found[k].end);
      if (e > shown && e <= show) {
        if (b > at) out.append(buffer, at, b - at);
        if (!continued && b >= marked) {
          out += kMarker;
          marked = e;
        }
        at = std::max(at, e);
        for (; i < k; i++) {
          if (!found[i].continued) counts[found[i].rule]++;
          if (found[i].end == again && found[i].after != Swallow::NONE) {
            next.swallow = found[i].after;
            next.token_class = found[i].token_class;
          }
        }
      }
      i = k;
    }
    if (show > at) out.append(buffer, at, show - at);
    state = next;
    shown = show - again;
    marked -= std::min(marked, again);
    buffer.erase(0, again);
    return out;
  }

  ExactMatcher exact;
  std::map<std::string, uint64_t> counts;
  std::string buffer;  // what is undecided, and before it what is evidence for that
  size_t shown = 0;    // of the buffer, given out already
  size_t marked = 0;   // of the buffer, where what the last marker stands for ends
  size_t unseen = 0;   // at its end, not looked at yet
  PatternState state;
};

Redactor::Redactor(std::vector<std::string> values) : impl_(std::make_unique<Impl>(values)) {
  for (std::string& v : values) explicit_bzero(v.data(), v.size());
}
Redactor::~Redactor() = default;
Redactor::Redactor(Redactor&&) noexcept = default;

std::string Redactor::feed(std::string_view chunk) { return impl_->feed(chunk); }
std::string Redactor::finish() { return impl_->step(true); }
const std::map<std::string, uint64_t>& Redactor::counts() const { return impl_->counts; }

std::string redact(std::string_view text, std::map<std::string, uint64_t>* counts) {
  Redactor r;
  std::string out = r.feed(text);
  out += r.finish();
  if (counts)
    for (const auto& [rule, n] : r.counts()) (*counts)[rule] += n;
  return out;
}

std::vector<SecretFound> secrets_in(std::string_view text) {
  std::vector<SecretFound> out;
  size_t line = 1, at = 0;
  for (const Sighting& s : find_patterns(text, {}, true, nullptr).found) {
    if (placeholder(text.substr(s.begin, s.end - s.begin))) continue;
    if (out.size() == kMostSecrets) break;
    line += static_cast<size_t>(
        std::count(text.begin() + static_cast<long>(at), text.begin() + static_cast<long>(s.begin), '\n'));
    at = s.begin;
    out.push_back({s.rule, line});
  }
  return out;
}

}  // namespace h5i::evidence
