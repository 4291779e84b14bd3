#include <algorithm>
#include <vector>

#include "plugins/websec-http/facts/facts.hpp"
#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

using Id = PassiveId;
using syntax::same;

constexpr size_t kMaxAttributes = 64;  // of one tag; more are passed over

bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
bool letter(char c) { return syntax::lower(c) >= 'a' && syntax::lower(c) <= 'z'; }
bool word(char c) { return letter(c) || syntax::is(c, syntax::kDigit) || c == '_' || c == '-'; }

struct Attribute {
  std::string_view name, value;
  size_t offset = 0;  // of the value
};
struct Tag {
  std::string_view name;
  std::vector<Attribute> attributes;
  const Attribute* find(std::string_view wanted) const {
    for (const Attribute& a : attributes)
      if (same(a.name, wanted)) return &a;
    return nullptr;
  }
};

// Begin tags of a page in their order, by the rules of HTML as far as they tell where a tag and its attributes end. Every byte is looked at
// a bounded number of times.
class Tags {
 public:
  explicit Tags(std::string_view s) : s_(s) {}

  bool next(Tag* out) {
    while (at_ < s_.size()) {
      at_ = s_.find('<', at_);
      if (at_ == std::string_view::npos) return false;
      if (s_.substr(at_, 4) == "<!--") {
        at_ = past("-->", at_ + 4);
      } else if (at_ + 1 < s_.size() && letter(s_[at_ + 1])) {
        tag(out);
        // What these hold is text up to their own end tag.
        for (std::string_view raw : {"script", "style", "textarea", "title", "xmp", "noembed"})
          if (same(out->name, raw)) skip_text(raw);
        return true;
      } else {
        at_++;
      }
    }
    return false;
  }

 private:
  size_t past(std::string_view what, size_t from) const {
    size_t end = s_.find(what, from);
    return end == std::string_view::npos ? s_.size() : end + what.size();
  }
  void skip_text(std::string_view name) {
    for (;;) {
      at_ = s_.find("</", at_);
      if (at_ == std::string_view::npos) {
        at_ = s_.size();
        return;
      }
      if (same(s_.substr(at_ + 2, name.size()), name)) return;
      at_ += 2;
    }
  }
  void tag(Tag* out) {
    size_t i = at_ + 1, begin = i;
    while (i < s_.size() && !blank(s_[i]) && s_[i] != '>' && s_[i] != '/') i++;
    out->name = s_.substr(begin, i - begin);
    out->attributes.clear();
    while (i < s_.size() && s_[i] != '>') {
      if (blank(s_[i]) || s_[i] == '/') {
        i++;
        continue;
      }
      Attribute a;
      begin = i;
      i++;  // an = in front is part of the name
      while (i < s_.size() && !blank(s_[i]) && s_[i] != '=' && s_[i] != '>' && s_[i] != '/') i++;
      a.name = s_.substr(begin, i - begin);
      while (i < s_.size() && blank(s_[i])) i++;
      if (i < s_.size() && s_[i] == '=') {
        i++;
        while (i < s_.size() && blank(s_[i])) i++;
        if (i < s_.size() && (s_[i] == '"' || s_[i] == '\'')) {
          size_t end = std::min(s_.find(s_[i], i + 1), s_.size());
          a.offset = i + 1;
          a.value = s_.substr(i + 1, end - i - 1);
          i = std::min(end + 1, s_.size());
        } else {
          a.offset = begin = i;
          while (i < s_.size() && !blank(s_[i]) && s_[i] != '>') i++;
          a.value = s_.substr(begin, i - begin);
        }
      }
      if (out->attributes.size() < kMaxAttributes) out->attributes.push_back(a);
    }
    at_ = std::min(i + 1, s_.size());
  }

  std::string_view s_;
  size_t at_ = 0;
};

std::string_view without_blanks(std::string_view s) {
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  return s;
}
bool in_clear(std::string_view url) { return same(without_blanks(url).substr(0, 7), "http://"); }

// Scheme, host and port of an absolute or protocol-relative URL; empty for a relative one.
std::string_view host_of(std::string_view url) {
  url = without_blanks(url);
  size_t mark = url.starts_with("//") ? 0 : url.find("://");
  if (mark == std::string_view::npos || mark > 8) return {};
  url.remove_prefix(mark == 0 ? 2 : mark + 3);
  return url.substr(0, url.find_first_of("/?#\\"));
}

void page_facts(const Exchange& x, PassiveFacts* out) {
  struct Loads {
    std::string_view tag, attribute;
    bool active;
  };
  constexpr Loads kLoads[] = {{"script", "src", true}, {"iframe", "src", true}, {"frame", "src", true},  {"embed", "src", true},  {"object", "data", true},
                              {"img", "src", false},   {"audio", "src", false}, {"video", "src", false}, {"source", "src", false}};
  std::string_view own = host_of(x.origin);
  Tags tags(x.body);
  auto add = [&](Id id, const Attribute& a) { out->add(id, FactPlace::BODY, a.offset, host_of(a.value)); };
  for (Tag t; tags.next(&t);) {
    for (const Loads& l : kLoads) {
      if (!same(t.name, l.tag)) continue;
      const Attribute* a = t.find(l.attribute);
      if (a && x.secure && in_clear(a->value)) add(l.active ? Id::MIXED_ACTIVE : Id::MIXED_PASSIVE, *a);
    }
    if (same(t.name, "link")) {
      const Attribute *rel = t.find("rel"), *href = t.find("href");
      if (rel && href && x.secure && same(syntax::trimmed(rel->value), "stylesheet") && in_clear(href->value)) add(Id::MIXED_ACTIVE, *href);
    }
    if (same(t.name, "form"))
      if (const Attribute* a = t.find("action"); a && x.secure && in_clear(a->value)) add(Id::MIXED_FORM, *a);
    if (same(t.name, "input"))
      if (const Attribute* a = t.find("type"); a && !x.secure && same(a->value, "password")) out->add(Id::PASSWORD_IN_CLEAR, FactPlace::BODY, a->offset);
    if (same(t.name, "script")) {
      const Attribute* a = t.find("src");
      if (a && !host_of(a->value).empty() && !same(host_of(a->value), own) && !t.find("integrity")) add(Id::NO_INTEGRITY, *a);
    }
  }
}

struct Mark {
  std::string_view text;
  Id id;
};
// What programs print when they should not. Plain words: a pattern on hostile bytes must not cost more than reading them.
constexpr Mark kMarks[] = {
    {"Traceback (most recent call last)", Id::LEAK_TRACE},
    {"Fatal error: Uncaught", Id::LEAK_TRACE},
    {"You have an error in your SQL syntax", Id::LEAK_TRACE},
    {"ORA-00933", Id::LEAK_TRACE},
    {"Unclosed quotation mark after the character string", Id::LEAK_TRACE},
    {"unterminated quoted string at or near", Id::LEAK_TRACE},
    {"SQLSTATE[", Id::LEAK_TRACE},
    {"Exception in thread \"", Id::LEAK_TRACE},
    {"at java.lang.", Id::LEAK_TRACE},
    {"at System.Web.", Id::LEAK_TRACE},
    {"goroutine 1 [running]", Id::LEAK_TRACE},
    {"panicked at ", Id::LEAK_TRACE},
    {"<title>Index of /", Id::LEAK_LISTING},
    {"<title>Directory listing for ", Id::LEAK_LISTING},
    {"sourceMappingURL=", Id::LEAK_SOURCE_MAP},
};

void marks(std::string_view body, PassiveFacts* out) {
  for (const Mark& m : kMarks)
    for (size_t at = body.find(m.text); at != std::string_view::npos; at = body.find(m.text, at + m.text.size()))
      out->add(m.id, FactPlace::BODY, at, m.text);
  for (size_t at = body.find("-----BEGIN "); at != std::string_view::npos; at = body.find("-----BEGIN ", at + 11)) {
    std::string_view label = body.substr(at + 11, 40);
    label = label.substr(0, label.find("-----"));
    if (label.ends_with("PRIVATE KEY")) out->add(Id::LEAK_PRIVATE_KEY, FactPlace::BODY, at, label);
  }
  for (std::string_view prefix : {"AKIA", "ASIA"})
    for (size_t at = body.find(prefix); at != std::string_view::npos; at = body.find(prefix, at + 4)) {
      size_t end = at + 4;
      while (end < body.size() && end - at <= 20 && (syntax::is(body[end], syntax::kDigit) || (body[end] >= 'A' && body[end] <= 'Z'))) end++;
      bool alone = (at == 0 || !word(body[at - 1])) && (end == body.size() || !word(body[end]));
      if (end - at == 20 && alone) out->add(Id::LEAK_CLOUD_KEY, FactPlace::BODY, at, prefix);
    }
  // Three parts of base64url with dots, the first two JSON objects: {" is eyJ.
  for (size_t at = body.find("eyJ"); at != std::string_view::npos;) {
    size_t end = at, dots = 0, second = 0;
    while (end < body.size() && (word(body[end]) || body[end] == '.')) {
      if (body[end] == '.' && ++dots == 1) second = end + 1;
      end++;
    }
    if (dots == 2 && body.substr(second, 3) == "eyJ" && (at == 0 || !word(body[at - 1]))) out->add(Id::LEAK_TOKEN, FactPlace::BODY, at);
    at = body.find("eyJ", std::max(end, at + 3));
  }
}

}  // namespace

void facts_of_body(const Exchange& x, bool page, PassiveFacts* out) {
  if (page) page_facts(x, out);
  marks(x.body, out);
  facts_of_addresses(x.body, FactPlace::BODY, 0, out);
}

}  // namespace h5i::websec
