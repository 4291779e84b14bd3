// toml++ 3.3 checks some of its input by assertions only ("[@" is one): abort() in a debug build, undefined in a release
// one. In this file they are always checked, and a failed one is an exception like its other errors.
#undef NDEBUG
namespace h5i::policy {
struct TomlAssertion {};
[[noreturn, gnu::noinline]] static void toml_assertion() { throw TomlAssertion{}; }
}  // namespace h5i::policy
#define TOML_ASSERT(expr) ((expr) ? static_cast<void>(0) : ::h5i::policy::toml_assertion())
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "core/policy/adapters.hpp"

namespace h5i::policy {
namespace {

// toml++ builds and frees tables by recursion, and a dotted key or header is one level a dot: 256 KiB of "a.a.a..." would
// overflow the stack. So brackets and dots are counted here first, outside of strings and comments. There TOML has no
// character beyond ASCII either, and the library's test for white space is undefined for most of them (3.3: U+00A1 to U+0499).
class Precheck {
 public:
  Precheck(std::string_view s, const std::string& name) : s_(s), name_(name) {}

  Result<void> run() {
    while (i_ < s_.size()) {
      char c = s_[i_];
      if (c == '"' || c == '\'') {
        if (!skip_string(c)) return beyond_ascii();
        continue;
      }
      if (static_cast<unsigned char>(c) >= 0x80) return beyond_ascii();
      if (c == '#') {
        i_ = std::min(s_.find('\n', i_), s_.size());
        continue;
      }
      if (c == '\n') line_++;
      if (c == '[' || c == '{') depth_++;
      if ((c == ']' || c == '}') && depth_ > 0) depth_--;
      if (c == '.') dots_++;
      else if (c == '\n' || c == '=' || c == ',' || c == '[' || c == '{') dots_ = 0;
      if (depth_ > kMaxNesting || dots_ >= kMaxNesting)
        return make_error(Errc::POLICY_LIMIT, place(name_, {line_, 1}) + ": nested too deeply",
                          "limit " + std::to_string(kMaxNesting));
      i_++;
    }
    return {};
  }

 private:
  Error beyond_ascii() const {
    return make_error(Errc::POLICY_PARSE, place(name_, {line_, 1}) + ": not TOML", "a character beyond ASCII stands outside of quotes and comments");
  }

  // False when a line that ends in a backslash goes on with a character beyond ASCII: the library tests that as white space.
  bool skip_string(char quote) {
    bool many = s_.substr(i_, 3) == std::string(3, quote);
    i_ += many ? 3 : 1;
    while (i_ < s_.size()) {
      char c = s_[i_];
      if (c == '\n') {
        if (!many) return true;  // not TOML: the parser says so
        line_++;
      }
      if (c == '\\' && quote == '"') {
        i_++;
        bool space = false;
        for (; i_ < s_.size() && (s_[i_] == ' ' || s_[i_] == '\t' || s_[i_] == '\r' || s_[i_] == '\n'); i_++) {
          if (s_[i_] == '\n' && !many) return true;
          if (s_[i_] == '\n') line_++;
          space = true;
        }
        if (i_ < s_.size() && static_cast<unsigned char>(s_[i_]) >= 0x80) return false;
        if (!space) i_++;  // the escaped character itself
        continue;
      }
      if (c == quote && (!many || s_.substr(i_, 3) == std::string(3, quote))) {
        // Up to two quotes may stand before the closing three; taken for an opening one they would hide what follows.
        size_t end = i_ + 1;
        while (many && end < s_.size() && end < i_ + kMostClosing && s_[end] == quote) end++;
        i_ = end;
        return true;
      }
      i_++;
    }
    return true;
  }

  static constexpr size_t kMostClosing = 5;

  std::string_view s_;
  const std::string& name_;
  size_t i_ = 0;
  int line_ = 1, depth_ = 0, dots_ = 0;
};

struct TooDeep {};

Mark mark(const toml::source_region& r) { return {static_cast<int>(r.begin.line), static_cast<int>(r.begin.column)}; }

Node convert(const toml::node& from, int depth) {
  if (depth > kMaxNesting) throw TooDeep{};
  Node n;
  n.at = mark(from.source());
  if (const toml::table* t = from.as_table()) {
    n.kind = Node::Kind::MAP;
    for (auto&& [key, value] : *t) n.entries.push_back({std::string(key.str()), mark(key.source()), convert(value, depth + 1)});
    std::stable_sort(n.entries.begin(), n.entries.end(), [](const Entry& a, const Entry& b) {
      return a.key_at.line != b.key_at.line ? a.key_at.line < b.key_at.line : a.key_at.column < b.key_at.column;
    });
  } else if (const toml::array* a = from.as_array()) {
    n.kind = Node::Kind::LIST;
    for (auto&& item : *a) n.items.push_back(convert(item, depth + 1));
  } else if (auto* s = from.as_string()) {
    n.kind = Node::Kind::TEXT;
    n.text = s->get();
  } else if (auto* i = from.as_integer()) {
    n.kind = Node::Kind::INTEGER;
    n.integer = i->get();
    n.text = std::to_string(n.integer);
  } else if (auto* b = from.as_boolean()) {
    n.kind = Node::Kind::BOOL;
    n.boolean = b->get();
    n.text = n.boolean ? "true" : "false";
  } else if (auto* f = from.as_floating_point()) {
    n.kind = Node::Kind::REAL;
    n.real = f->get();
    n.text = std::to_string(n.real);
  } else {
    n.kind = Node::Kind::OTHER;
  }
  return n;
}

}  // namespace

Result<Node> read_toml(std::string_view bytes, const std::string& name) {
  if (bytes.substr(0, 3) == "\xef\xbb\xbf") bytes.remove_prefix(3);
  H5I_TRY(check_bytes(bytes, name));
  H5I_TRY(Precheck(bytes, name).run());
  try {
    toml::table root = toml::parse(bytes);
    return convert(root, 1);
  } catch (const TooDeep&) {
    return make_error(Errc::POLICY_LIMIT, name + ": nested too deeply", "limit " + std::to_string(kMaxNesting));
  } catch (const TomlAssertion&) {
    return make_error(Errc::POLICY_PARSE, name + ": not TOML", "a key or value begins with a character that begins none");
  } catch (const toml::parse_error& e) {
    return make_error(Errc::POLICY_PARSE, place(name, mark(e.source())) + ": not TOML", std::string(e.description()));
  } catch (const std::exception& e) {
    return make_error(Errc::POLICY_PARSE, name + ": not TOML", e.what());
  }
}

}  // namespace h5i::policy
