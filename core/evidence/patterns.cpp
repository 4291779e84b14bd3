#include "core/evidence/patterns.hpp"

#include <array>
#include <cmath>
#include <cstring>

namespace h5i::evidence {
namespace {

// Bounds on how far a scanner looks. A value that is longer is decided by its beginning and swallowed to its end.
constexpr size_t kMaxValue = 256;
constexpr size_t kMaxSegment = 2048;  // of a JSON web token
constexpr size_t kMaxName = 40;       // of an identifier after its credential word
constexpr size_t kMaxUser = 256;
constexpr size_t kMaxPemLine = 512;

enum Class : unsigned char {
  kUpperDigit = 1,  // A-Z 0-9
  kAlnum = 2,       // A-Z a-z 0-9
  kWord = 4,        // alnum _
  kUrlToken = 8,    // alnum _ -
  kDotToken = 16,   // alnum _ - . : =
  kValue = 32,      // what an unquoted value is made of
  kAuthority = 64,  // of a user name or password in a URL
  kBase64 = 128,    // alnum + / =
};

constexpr std::array<unsigned char, 256> kClasses = [] {
  std::array<unsigned char, 256> t{};
  for (int c = 0; c < 256; c++) {
    bool up = c >= 'A' && c <= 'Z', low = c >= 'a' && c <= 'z', dig = c >= '0' && c <= '9';
    auto in = [&](const char* set) {
      for (; *set; set++)
        if (*set == c) return true;
      return false;
    };
    unsigned char m = 0;
    if (up || dig) m |= kUpperDigit;
    if (up || low || dig) m |= kAlnum | kWord | kUrlToken | kDotToken | kValue | kAuthority | kBase64;
    if (c == '_') m |= kWord;
    if (in("_-")) m |= kUrlToken;
    if (in("_-.:=~+/")) m |= kDotToken;
    if (in("+/=_.~$!@#%^*:?|-")) m |= kValue;
    if (in("-._~%!$&()*+,;=:^{}|[]")) m |= kAuthority;
    if (in("+/=")) m |= kBase64;
    t[static_cast<size_t>(c)] = m;
  }
  return t;
}();

bool is(char c, unsigned char mask) { return kClasses[static_cast<unsigned char>(c)] & mask; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

size_t run(std::string_view t, size_t i, unsigned char mask, size_t limit) {
  size_t end = std::min(t.size(), i + limit);
  while (i < end && is(t[i], mask)) i++;
  return i;
}

struct Token {
  const char* rule;
  std::string_view prefix;
  size_t least;        // characters after the prefix
  unsigned char mask;  // of which class
  bool boundary;       // only where no word goes before: the prefix is short
  bool mixed;          // needs a digit and an upper-case letter
};
constexpr Token kTokens[] = {
    {"AWS_ACCESS_KEY_ID", "AKIA", 16, kUpperDigit, false, false},
    {"AWS_ACCESS_KEY_ID", "ASIA", 16, kUpperDigit, false, false},
    {"GCP_API_KEY", "AIza", 35, kUrlToken, false, false},
    {"GCP_OAUTH_TOKEN", "ya29.", 20, kUrlToken, true, false},
    {"GITHUB_PAT", "ghp_", 36, kAlnum, false, false},
    {"GITHUB_PAT", "gho_", 36, kAlnum, false, false},
    {"GITHUB_PAT", "ghu_", 36, kAlnum, false, false},
    {"GITHUB_PAT", "ghs_", 36, kAlnum, false, false},
    {"GITHUB_PAT", "ghr_", 36, kAlnum, false, false},
    {"GITHUB_FINE_GRAINED_PAT", "github_pat_", 36, kWord, false, false},
    {"GITLAB_PAT", "glpat-", 20, kUrlToken, false, false},
    {"SLACK_TOKEN", "xoxa-", 10, kUrlToken, false, false},
    {"SLACK_TOKEN", "xoxb-", 10, kUrlToken, false, false},
    {"SLACK_TOKEN", "xoxe-", 10, kUrlToken, false, false},
    {"SLACK_TOKEN", "xoxp-", 10, kUrlToken, false, false},
    {"SLACK_TOKEN", "xoxr-", 10, kUrlToken, false, false},
    {"SLACK_TOKEN", "xoxs-", 10, kUrlToken, false, false},
    {"SLACK_TOKEN", "xapp-", 10, kUrlToken, false, false},
    {"STRIPE_SECRET_KEY", "sk_live_", 16, kAlnum, false, false},
    {"STRIPE_SECRET_KEY", "sk_test_", 16, kAlnum, false, false},
    {"STRIPE_SECRET_KEY", "rk_live_", 16, kAlnum, false, false},
    {"STRIPE_SECRET_KEY", "rk_test_", 16, kAlnum, false, false},
    {"ANTHROPIC_API_KEY", "sk-ant-", 20, kUrlToken, false, false},
    {"OPENAI_API_KEY", "sk-proj-", 20, kUrlToken, false, false},
    {"OPENAI_API_KEY", "sk-svcacct-", 20, kUrlToken, false, false},
    {"OPENAI_API_KEY", "sk-", 20, kUrlToken, true, true},
    {"NPM_TOKEN", "npm_", 36, kAlnum, true, false},
    {"PYPI_TOKEN", "pypi-AgE", 30, kUrlToken, false, false},
    {"HUGGINGFACE_TOKEN", "hf_", 30, kAlnum, true, false},
    {"SENDGRID_API_KEY", "SG.", 40, kDotToken, true, true},
    {"DIGITALOCEAN_TOKEN", "dop_v1_", 40, kAlnum, false, false},
};

// A name that has one of these in it, and then a value, is a credential. Whether a password or something generated
// decides how much of a value it takes.
struct Keyword {
  std::string_view text;
  bool password;
};
constexpr Keyword kKeywords[] = {
    {"password", true},     {"passwd", true},      {"passphrase", true},   {"pwd", true},
    {"secret", false},      {"token", false},      {"apikey", false},      {"api_key", false},
    {"api-key", false},     {"access_key", false}, {"accesskey", false},   {"access-key", false},
    {"private_key", false}, {"privatekey", false}, {"private-key", false}, {"account_key", false},
    {"accountkey", false},  {"credential", false}, {"signing_key", false}, {"encryption_key", false},
    {"auth_key", false},    {"authkey", false},    {"session_key", false},
};

struct Database {
  std::string_view scheme;
  const char* rule;
};
constexpr Database kDatabases[] = {
    {"postgres://", "POSTGRES_CONNECTION_STRING"}, {"postgresql://", "POSTGRES_CONNECTION_STRING"},
    {"mysql://", "MYSQL_CONNECTION_STRING"},       {"mariadb://", "MYSQL_CONNECTION_STRING"},
    {"mongodb://", "MONGODB_CONNECTION_STRING"},   {"mongodb+srv://", "MONGODB_CONNECTION_STRING"},
    {"redis://", "REDIS_CONNECTION_STRING"},       {"rediss://", "REDIS_CONNECTION_STRING"},
};

bool starts(std::string_view t, size_t i, std::string_view word) { return t.substr(i, word.size()) == word; }
bool starts_any_case(std::string_view t, size_t i, std::string_view word) {
  if (t.size() - i < word.size()) return false;
  for (size_t k = 0; k < word.size(); k++)
    if (lower(t[i + k]) != word[k]) return false;
  return true;
}
// The text ends inside what may become the word.
bool may_start(std::string_view t, size_t i, std::string_view word, bool any_case) {
  if (t.size() - i >= word.size()) return false;
  for (size_t k = 0; i + k < t.size(); k++)
    if ((any_case ? lower(t[i + k]) : t[i + k]) != word[k]) return false;
  return true;
}

// By the first two characters, whether anything at all may begin: most of any text is passed by one look here.
class Beginnings {
 public:
  Beginnings() {
    for (const Token& k : kTokens) set(k.prefix, false);
    for (const Keyword& k : kKeywords) set(k.text, true);
    for (const Database& d : kDatabases) set(d.scheme, false);
    for (const char* word : {"authorization", "bearer", "basic"}) set(word, true);
    for (const char* word : {"eyJ", "://", "-----BEGIN "}) set(word, false);
  }
  bool may(char a, char b) const { return pairs_[index(a, b)]; }

 private:
  static size_t index(char a, char b) {
    return static_cast<size_t>(static_cast<unsigned char>(a)) << 8 | static_cast<unsigned char>(b);
  }
  void set(std::string_view word, bool any_case) {
    auto other = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; };
    for (char a : {word[0], any_case ? other(word[0]) : word[0]})
      for (char b : {word[1], any_case ? other(word[1]) : word[1]}) pairs_[index(a, b)] = true;
  }
  std::array<bool, 65536> pairs_{};
};
const Beginnings& beginnings() {
  static const Beginnings b;
  return b;
}

bool has_digit_and_upper(std::string_view v) {
  bool digit = false, up = false;
  for (char c : v) {
    digit |= c >= '0' && c <= '9';
    up |= c >= 'A' && c <= 'Z';
  }
  return digit && up;
}

int kinds(std::string_view v) {
  bool low = false, up = false, dig = false, other = false;
  for (char c : v) {
    if (c >= 'a' && c <= 'z')
      low = true;
    else if (c >= 'A' && c <= 'Z')
      up = true;
    else if (c >= '0' && c <= '9')
      dig = true;
    else
      other = true;
  }
  return low + up + dig + other;
}

// Looks generated rather than written. Hexadecimal has fewer digits to choose from.
bool generated(std::string_view v) {
  if (v.size() < 20 || kinds(v) < 2) return false;
  bool hexadecimal = v.find_first_not_of("0123456789abcdefABCDEF-") == std::string_view::npos;
  return entropy(v) >= (hexadecimal ? 3.0 : 3.5);
}

enum class Verdict { NO, MORE, YES };

class Scanner {
 public:
  Scanner(std::string_view t, const PatternState& state, bool final, const std::vector<bool>* gap)
      : t_(t), state_(state), final_(final), gap_(gap) {}

  Sightings scan() {
    out_.look_again = out_.hold = t_.size();
    size_t i = resume();
    const Beginnings& any = beginnings();
    while (i < out_.look_again) {
      if (i + 1 < t_.size() && !any.may(t_[i], t_[i + 1])) {
        i++;
        continue;
      }
      Sighting s;
      undecided_ = t_.size();
      switch (at(i, s)) {
        case Verdict::NO:
          i++;
          break;
        case Verdict::MORE:
          out_.look_again = i;
          out_.hold = std::min(out_.hold, undecided_);
          hold_from(i + 1);
          break;
        case Verdict::YES:
          i = finish(s);
          break;
      }
    }
    return std::move(out_);
  }

 private:
  // What is undecided may be shown, but not what begins inside of it and is a secret by itself.
  void hold_from(size_t i) {
    for (; i < out_.hold; i++) {
      if (i + 1 < t_.size() && !beginnings().may(t_[i], t_[i + 1])) continue;
      Sighting s;
      undecided_ = t_.size();
      Verdict v = at(i, s);
      if (v != Verdict::NO) out_.hold = std::min(out_.hold, v == Verdict::YES ? s.begin : undecided_);
    }
  }

  size_t resume() {
    if (state_.swallow == Swallow::NONE) return 0;
    Sighting s;
    s.continued = true;
    if (state_.swallow == Swallow::TOKEN) {
      s.end = run(t_, 0, state_.token_class, t_.size());
      if (s.end == t_.size() && !final_) {
        s.after = Swallow::TOKEN;
        s.token_class = state_.token_class;
      }
    } else {
      pem_body(0, s);
    }
    return finish(s);
  }

  // Where to go on. A block that the text cuts is looked at again from its first line that is not whole.
  size_t finish(const Sighting& s) {
    out_.found.push_back(s);
    if (s.after == Swallow::PEM) out_.look_again = out_.hold = s.end;
    return s.end;
  }

  // More is needed, and from `secret` on it may be something that must not be shown.
  Verdict more(size_t secret) {
    undecided_ = std::min(undecided_, secret);
    return Verdict::MORE;
  }
  Verdict more() { return Verdict::MORE; }

  bool boundary(size_t i, unsigned char mask) const {
    if (gap_ && (*gap_)[i]) return true;
    char c = i > 0 ? t_[i - 1] : state_.before;
    return c == 0 || !is(c, mask);
  }

  // The value ended at the text's end: is what we saw all of it?
  bool open_end(size_t end) const { return end == t_.size() && !final_; }

  void take(Sighting& s, size_t context, size_t begin, size_t end, const char* rule, unsigned char mask) {
    s.context = context;
    s.begin = begin;
    s.end = run(t_, end, mask, t_.size());
    s.rule = rule;
    if (s.end == t_.size() && !final_ && mask) {
      s.after = Swallow::TOKEN;
      s.token_class = mask;
    }
  }

  // At most one kind can be right at one place; undecided ones are asked again with more text.
  Verdict at(size_t i, Sighting& s) {
    using Kind = Verdict (Scanner::*)(size_t, Sighting&);
    static constexpr Kind kTokenKind = &Scanner::token, kWordKind = &Scanner::assignment;
    switch (lower(t_[i])) {
      case '-':
        return pem(i, s);
      case ':':
        return any_url(i, s);
      case 'e':
        return first_of(i, s, {&Scanner::jwt, kWordKind});
      case 'a':
        return first_of(i, s, {kTokenKind, &Scanner::authorization, kWordKind});
      case 'b':
        return authorization(i, s);
      case 'c':
      case 't':
        return assignment(i, s);
      case 'm':
        return connection(i, s);
      case 'r':
        return first_of(i, s, {kTokenKind, &Scanner::connection});
      case 'p':
        return first_of(i, s, {kTokenKind, &Scanner::connection, kWordKind});
      case 's':
        return first_of(i, s, {kTokenKind, kWordKind});
      case 'g':
      case 'x':
      case 'n':
      case 'h':
      case 'd':
      case 'y':
        return token(i, s);
      default:
        return Verdict::NO;
    }
  }

  Verdict first_of(size_t i, Sighting& s, std::initializer_list<Verdict (Scanner::*)(size_t, Sighting&)> kinds) {
    Verdict best = Verdict::NO;
    for (auto kind : kinds) {
      Verdict v = (this->*kind)(i, s);
      if (v == Verdict::YES) return v;
      if (v == Verdict::MORE) best = v;
    }
    return best;
  }

  Verdict token(size_t i, Sighting& s) {
    Verdict v = Verdict::NO;
    for (const Token& k : kTokens) {
      if (t_[i] != k.prefix[0]) continue;
      if (k.boundary && !boundary(i, kUrlToken)) continue;
      if (!starts(t_, i, k.prefix)) {
        if (!final_ && may_start(t_, i, k.prefix, false)) v = more();
        continue;
      }
      size_t b = i + k.prefix.size(), e = run(t_, b, k.mask, k.mixed ? kMaxValue : k.least);
      if (open_end(e) && (k.mixed || e - b < k.least) && e - b < kMaxValue) {
        v = more(b);
        continue;
      }
      if (e - b < k.least || (k.mixed && !has_digit_and_upper(t_.substr(b, e - b)))) continue;
      take(s, i, b, e, k.rule, k.mask);
      return Verdict::YES;
    }
    return v;
  }

  // header.payload.signature, each base64url; the header is an object, so it begins with eyJ.
  Verdict jwt(size_t i, Sighting& s) {
    if (t_[i] == 'e' && boundary(i, kUrlToken)) {
      if (!starts(t_, i, "eyJ")) {
        if (!final_ && may_start(t_, i, "eyJ", false)) return more();
      } else {
        size_t e = run(t_, i, kUrlToken, kMaxSegment);
        if (open_end(e) && e - i < kMaxSegment) return more(i + 3);
        if (e - i >= 10 && e < t_.size() && t_[e] == '.') {
          size_t p = run(t_, e + 1, kUrlToken, 10);
          if (open_end(p) && p - e - 1 < 10) return more(i + 3);
          if (p - e - 1 >= 10) {
            take(s, i, i + 3, p, "JWT", kDotToken);
            return Verdict::YES;
          }
        }
      }
    }
    return Verdict::NO;
  }

  // RFC 7468 and the older forms; everything to the END line, or as far as it still looks like the inside.
  Verdict pem(size_t i, Sighting& s) {
    constexpr std::string_view kBegin = "-----BEGIN ";
    if (!starts(t_, i, kBegin)) return !final_ && may_start(t_, i, kBegin, false) ? more() : Verdict::NO;
    size_t e = i + kBegin.size(), limit = std::min(t_.size(), e + 40);
    while (e < limit && (is(t_[e], kUpperDigit) || t_[e] == ' ')) e++;
    if (open_end(e) && e - i < 51) return more();
    std::string_view label = t_.substr(i + kBegin.size(), e - i - kBegin.size());
    if (label.find("PRIVATE KEY") == std::string_view::npos) return Verdict::NO;
    if (t_.size() - e < 5 && !final_) return more();
    if (!starts(t_, e, "-----")) return Verdict::NO;
    s.context = i;
    s.begin = e + 5;
    s.rule = "PRIVATE_KEY_PEM";
    pem_body(e + 5, s);
    if (s.end == s.begin) return s.after == Swallow::PEM ? more(s.begin) : Verdict::NO;
    return Verdict::YES;
  }

  static bool pem_header(std::string_view line) {
    for (std::string_view h : {"Proc-Type:", "DEK-Info:", "Comment:", "Version:", "Subject:", "Content-Domain:"})
      if (line.substr(0, h.size()) == h || h.substr(0, line.size()) == line) return true;
    return false;
  }

  // From `i`, inside the block. Sets the end, and PEM as what follows when the text ends before the block does.
  void pem_body(size_t i, Sighting& s) {
    constexpr std::string_view kEnd = "-----END ";
    s.end = i;
    while (true) {
      size_t b = s.end;
      while (b < t_.size() && (t_[b] == ' ' || t_[b] == '\t' || t_[b] == '\r')) b++;
      if (starts(t_, b, kEnd)) {
        s.end = b;
        return;
      }
      size_t e = b, limit = std::min(t_.size(), b + kMaxPemLine);
      // A backslash and an n: the block as a string of JSON.
      while (e < limit && (is(t_[e], kBase64) || t_[e] == '\\' || t_[e] == '\r')) e++;
      bool whole_line = e < t_.size() && t_[e] == '\n';
      if (!whole_line && e < t_.size() && e - b < kMaxPemLine) {
        size_t nl = t_.find('\n', b);
        std::string_view line = t_.substr(b, std::min(nl, t_.size()) - b);
        if (line.size() < kMaxPemLine && pem_header(line)) {
          if (nl == std::string_view::npos) {
            if (final_) s.end = t_.size();
            break;
          }
          s.end = nl + 1;
          continue;
        }
        if (t_[e] == '-' && e > b) {  // the END on the same line
          s.end = e;
          if (may_start(t_, e, kEnd, false) && !final_) break;
          if (starts(t_, e, kEnd)) continue;
          return;
        }
        if (may_start(t_, b, kEnd, false) && !final_) break;
        // Something else begins on this line: base64 that ends in a quote still belongs to the block.
        if (e - b >= 16 || (e > b && (t_[e] == '"' || t_[e] == '\''))) s.end = e;
        return;
      }
      if (whole_line || e - b >= kMaxPemLine) {
        s.end = whole_line ? e + 1 : e;
        continue;
      }
      // The text ends here.
      if (final_) s.end = e;
      break;
    }
    if (!final_) s.after = Swallow::PEM;
  }

  // A database's scheme, and then as any other URL.
  Verdict connection(size_t i, Sighting& s) {
    Verdict v = Verdict::NO;
    for (const auto& [scheme, rule] : kDatabases) {
      if (starts(t_, i, scheme)) return url(i + scheme.size(), i, rule, s);
      if (!final_ && may_start(t_, i, scheme, false)) v = more();
    }
    return v;
  }

  // "://" at i, then user:password@host
  Verdict any_url(size_t i, Sighting& s) {
    if (!starts(t_, i, "://")) return !final_ && may_start(t_, i, "://", false) ? more() : Verdict::NO;
    return url(i + 3, i, "HTTP_BASIC_AUTH_URL", s);
  }

  // user:password@host at b
  Verdict url(size_t b, size_t context, const char* rule, Sighting& s) {
    size_t e = run(t_, b, kAuthority, kMaxUser + kMaxValue);
    if (open_end(e) && e - b < kMaxUser + kMaxValue) return more(b);
    if (e >= t_.size() || t_[e] != '@') return Verdict::NO;
    // An @ in the password itself: the last one before the path ends it.
    for (;;) {
      size_t next = run(t_, e + 1, kAuthority, kMaxValue);
      if (open_end(next) && next - e - 1 < kMaxValue && next - b < kMaxUser + kMaxValue) return more(b);
      if (next >= t_.size() || t_[next] != '@' || next - b > kMaxUser + kMaxValue) break;
      e = next;
    }
    size_t colon = t_.substr(0, e).find(':', b);
    size_t secret = colon == std::string_view::npos ? b : colon + 1;
    if (secret == e) return Verdict::NO;
    if (colon == std::string_view::npos && (e - b < 20 || entropy(t_.substr(b, e - b)) < 3.0)) return Verdict::NO;
    take(s, context, secret, e, rule, 0);
    return Verdict::YES;
  }

  size_t blanks(size_t i) const {
    size_t end = std::min(t_.size(), i + 8);
    while (i < end && (t_[i] == ' ' || t_[i] == '\t')) i++;
    return i;
  }
  // After a quote, also one behind backslashes, as in JSON within JSON; the same place when there is none. False when
  // the text ends before that is clear.
  bool quote(size_t* i) const {
    size_t k = *i;
    while (k < t_.size() && k - *i < 3 && t_[k] == '\\') k++;
    if (open_end(k)) return false;
    if (k < t_.size() && (t_[k] == '"' || t_[k] == '\'' || t_[k] == '`')) *i = k + 1;
    return true;
  }

  // Authorization: Bearer VALUE, and Bearer or Basic alone before something that looks generated.
  Verdict authorization(size_t i, Sighting& s) {
    size_t v;
    bool named = starts_any_case(t_, i, "authorization");
    if (named) {
      v = i + 13;
      if (!quote(&v)) return more();
      v = blanks(v);
      if (open_end(v)) return more();
      if (v >= t_.size() || (t_[v] != ':' && t_[v] != '=')) return Verdict::NO;
      v = blanks(v + 1);
      if (open_end(v) || !quote(&v) || open_end(v)) return more();
      // The scheme, when there is one, is not secret; a value without one is.
      size_t word = run(t_, v, kUrlToken, 24);
      if (open_end(word)) return more(v);
      size_t after = blanks(word);
      if (after > word && open_end(after)) return more();
      if (after > word && word > v) v = after;
    } else {
      size_t word = starts_any_case(t_, i, "bearer") ? 6 : starts_any_case(t_, i, "basic") ? 5 : 0;
      if (word == 0) {
        bool may = may_start(t_, i, "authorization", true) || may_start(t_, i, "bearer", true) ||
                   may_start(t_, i, "basic", true);
        return !final_ && may ? more() : Verdict::NO;
      }
      if (!boundary(i, kUrlToken)) return Verdict::NO;
      v = blanks(i + word);
      if (open_end(v)) return more();
      if (v == i + word) return Verdict::NO;
    }
    size_t e = run(t_, v, kDotToken, kMaxValue);
    if (open_end(e) && e - v < kMaxValue) return more(v);
    std::string_view value = t_.substr(v, e - v);
    bool yes = named ? value.size() >= 8 : value.size() >= 16 && entropy(value) >= 3.0 && kinds(value) >= 2;
    if (!yes) return Verdict::NO;
    take(s, i, v, e, "AUTHORIZATION_HEADER", kDotToken);
    return Verdict::YES;
  }

  // NAME = VALUE, "name": "value", --name=value, name => value
  Verdict assignment(size_t i, Sighting& s) {
    const Keyword* k = nullptr;
    for (const Keyword& w : kKeywords) {
      if (starts_any_case(t_, i, w.text)) {
        k = &w;
        break;
      }
      if (!final_ && may_start(t_, i, w.text, true)) return more();
    }
    if (!k) return Verdict::NO;
    size_t p = run(t_, i + k->text.size(), kUrlToken, kMaxName);
    if (open_end(p) || !quote(&p) || open_end(p)) return more();
    if (p < t_.size() && t_[p] == ']') p++;  // config["secret"] = ...
    p = blanks(p);
    if (open_end(p)) return more();
    if (p >= t_.size() || (t_[p] != '=' && t_[p] != ':')) return Verdict::NO;
    bool colon = t_[p++] == ':';
    if (open_end(p)) return more();
    if (p < t_.size() && (t_[p] == '=' || t_[p] == '>')) p++;
    size_t v = blanks(p);
    if (open_end(v)) return more();
    bool spaced = v > p;
    size_t q = v;
    if (!quote(&q) || open_end(q)) return more();
    return q > v ? quoted(i, q, *k, s) : unquoted(i, v, *k, colon && !spaced, s);
  }

  Verdict quoted(size_t context, size_t v, const Keyword& k, Sighting& s) {
    char mark = t_[v - 1];
    size_t e = v, limit = std::min(t_.size(), v + kMaxValue);
    while (e < limit && t_[e] != mark && t_[e] != '\n') e++;
    if (open_end(e) && e - v < kMaxValue) return more(v);
    size_t end = e;
    while (end > v && t_[end - 1] == '\\') end--;
    std::string_view value = t_.substr(v, end - v);
    if (value.find(' ') != std::string_view::npos && !k.password) return Verdict::NO;  // a sentence
    bool random = generated(value);
    bool password =
        k.password && value.size() >= 4 && entropy(value) >= 1.5 && value.find(' ') == std::string_view::npos;
    if (!random && !password) return Verdict::NO;
    s.context = context;
    s.begin = v;
    s.end = end;
    s.rule = random ? "GENERIC_HIGH_ENTROPY" : "PASSWORD_ASSIGNMENT";
    if (e - v == kMaxValue) take(s, context, v, e, s.rule, kValue);
    return Verdict::YES;
  }

  Verdict unquoted(size_t context, size_t v, const Keyword& k, bool code, Sighting& s) {
    size_t e = run(t_, v, kValue, kMaxValue);
    if (open_end(e) && e - v < kMaxValue) return more(v);
    // Parameters of a URL follow each other.
    std::string_view value = t_.substr(v, e - v);
    if (e < t_.size() && (t_[e] == '(' || t_[e] == '[')) return Verdict::NO;  // an expression of some language
    if (code && !value.empty() && value[0] == ':') return Verdict::NO;        // Token::Kind
    bool path = !value.empty() && (value[0] == '/' || value[0] == '.' || value[0] == '$') &&
                value.find('/') != std::string_view::npos;
    bool digit = value.find_first_of("0123456789") != std::string_view::npos;
    bool random = digit && !path && value.find("://") == std::string_view::npos &&
                  value.find("::") == std::string_view::npos && generated(value);
    bool password = k.password && value.size() >= 6 && kinds(value) >= 2 && !path && entropy(value) >= 2.0;
    if (!random && !password) return Verdict::NO;
    take(s, context, v, e, random ? "GENERIC_HIGH_ENTROPY_UNQUOTED" : "PASSWORD_ASSIGNMENT",
         e - v == kMaxValue ? kValue : 0);
    return Verdict::YES;
  }

  std::string_view t_;
  const PatternState& state_;
  bool final_;
  const std::vector<bool>* gap_;
  size_t undecided_ = 0;
  Sightings out_;
};

}  // namespace

Sightings find_patterns(std::string_view text, const PatternState& state, bool final, const std::vector<bool>* gap) {
  return Scanner(text, state, final, gap).scan();
}

double entropy(std::string_view value) {
  if (value.empty()) return 0;
  unsigned count[256] = {};
  for (char c : value) count[static_cast<unsigned char>(c)]++;
  double h = 0, n = static_cast<double>(value.size());
  for (unsigned c : count)
    if (c) h -= c / n * std::log2(c / n);
  return h;
}

bool placeholder(std::string_view value) {
  constexpr std::string_view kWords[] = {"example", "changeme", "change-me", "change_me", "placeholder", "your",
                                         "dummy",   "todo",     "foo",       "bar",       "xxx",         "redacted",
                                         "sample",  "***",      "insert",    "replace",   "fake",        "1234567890"};
  if (value.empty()) return true;
  if (value.front() == '<' || value.front() == '$' || value.front() == '{' || value.front() == '%') return true;
  std::string low;
  for (char c : value) low += lower(c);
  for (std::string_view w : kWords)
    if (low.find(w) != std::string::npos) return true;
  return entropy(value) < 1.5;
}

}  // namespace h5i::evidence
