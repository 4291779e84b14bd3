// The YAML 1.2 core schema, less everything that makes one text mean what another part of it says.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <charconv>
#include <cmath>
#include <set>
#include <sstream>

#include "core/policy/adapters.hpp"

namespace h5i::policy {
namespace {

struct Refusal {  // thrown through yaml-cpp, caught below
  Error error;
};

// YAML 1.2 section 10.3.2, for plain scalars.
void resolve_plain(Node& n) {
  const std::string& s = n.text;
  if (s.empty() || s == "~" || s == "null" || s == "Null" || s == "NULL") {
    n.kind = Node::Kind::NONE;
    return;
  }
  if (s == "true" || s == "True" || s == "TRUE" || s == "false" || s == "False" || s == "FALSE") {
    n.kind = Node::Kind::BOOL;
    n.boolean = s[0] == 't' || s[0] == 'T';
    return;
  }
  n.kind = Node::Kind::TEXT;
  std::string_view digits = s;
  if (digits[0] == '+') digits.remove_prefix(1);
  const char* end = digits.data() + digits.size();
  auto whole = std::from_chars(digits.data(), end, n.integer);
  if (whole.ec == std::errc() && whole.ptr == end) {
    n.kind = Node::Kind::INTEGER;
    return;
  }
  bool looks_real = digits.find_first_not_of("0123456789+-.eE") == std::string_view::npos &&
                    digits.find_first_of("0123456789") != std::string_view::npos;
  auto real = std::from_chars(digits.data(), end, n.real);
  if (looks_real && real.ec == std::errc() && real.ptr == end && std::isfinite(n.real)) n.kind = Node::Kind::REAL;
}

class Builder : public YAML::EventHandler {
 public:
  Builder(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}
  Node take() { return std::move(root_); }
  bool seen() const { return seen_; }

  void OnDocumentStart(const YAML::Mark& m) override {
    if (seen_) refuse(Errc::POLICY_PARSE, m, "a second document", "a policy is one document");
    seen_ = true;
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& m, const std::string&) override { anchors(m); }
  void OnAlias(const YAML::Mark& m, YAML::anchor_t) override { anchors(m); }
  void OnNull(const YAML::Mark& m, YAML::anchor_t anchor) override {
    if (anchor) anchors(m);
    Node n;
    n.at = mark(m);
    if (at_source(m) == '~') n.text = "~";
    add(std::move(n));
  }
  void OnScalar(const YAML::Mark& m, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    if (anchor) anchors(m);
    char first = at_source(m);
    bool quoted = tag == "!" && (first == '"' || first == '\'' || first == '|' || first == '>');
    if (!quoted && tag != "?" && !tag.empty()) tags(m);
    Node n;
    n.at = mark(m);
    n.text = value;
    n.kind = Node::Kind::TEXT;
    bool is_key = wants_key();
    if (!quoted && !is_key) resolve_plain(n);
    if (is_key && !quoted && value == "<<") refuse(Errc::POLICY_PARSE, m, "a merge key", "write the keys out, or use extends");
    add(std::move(n));
  }
  void OnSequenceStart(const YAML::Mark& m, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(m, tag, anchor, Node::Kind::LIST);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& m, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(m, tag, anchor, Node::Kind::MAP);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    Node node;
    bool have_key = false;
    std::string key;
    Mark key_at;
    std::set<std::string> keys;
  };

  [[noreturn]] void refuse(Errc code, const YAML::Mark& m, const std::string& what, std::string why) {
    throw Refusal{make_error(code, place(name_, mark(m)) + ": " + what, std::move(why))};
  }
  [[noreturn]] void anchors(const YAML::Mark& m) {
    refuse(Errc::POLICY_PARSE, m, "an anchor or alias", "every value stands where it holds; write it out, or use extends");
  }
  [[noreturn]] void tags(const YAML::Mark& m) {
    refuse(Errc::POLICY_PARSE, m, "a tag", "types follow from the keys; quote what is meant as text");
  }

  // yaml-cpp counts bytes from 0; people count characters from 1.
  Mark mark(const YAML::Mark& m) const {
    if (m.is_null()) return {};
    size_t pos = std::min(static_cast<size_t>(std::max(m.pos, 0)), bytes_.size());
    size_t begin = bytes_.rfind('\n', pos ? pos - 1 : 0);
    begin = begin == std::string_view::npos || !pos ? 0 : begin + 1;
    int column = 1;
    for (size_t i = begin; i < pos; i++)
      if ((static_cast<unsigned char>(bytes_[i]) & 0xc0) != 0x80) column++;
    return {m.line + 1, column};
  }
  char at_source(const YAML::Mark& m) const {
    return m.pos >= 0 && static_cast<size_t>(m.pos) < bytes_.size() ? bytes_[static_cast<size_t>(m.pos)] : '\0';
  }
  bool wants_key() const {
    return !stack_.empty() && stack_.back().node.kind == Node::Kind::MAP && !stack_.back().have_key;
  }

  void open(const YAML::Mark& m, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    if (anchor) anchors(m);
    if (!tag.empty() && tag != "?") tags(m);
    // Thrown from the event, so the parser's own recursion never gets deeper than this either.
    if (stack_.size() >= kMaxNesting)
      refuse(Errc::POLICY_LIMIT, m, "nested too deeply", "limit " + std::to_string(kMaxNesting));
    if (wants_key()) refuse(Errc::POLICY_PARSE, m, "a key that is a list or map", "keys are plain text");
    stack_.emplace_back();
    stack_.back().node.kind = kind;
    stack_.back().node.at = mark(m);
  }
  void close() {
    Node done = std::move(stack_.back().node);
    stack_.pop_back();
    add(std::move(done));
  }
  void add(Node n) {
    if (stack_.empty()) {
      root_ = std::move(n);
      return;
    }
    Frame& f = stack_.back();
    if (f.node.kind == Node::Kind::LIST) {
      f.node.items.push_back(std::move(n));
    } else if (!f.have_key) {
      std::string where = place(name_, n.at);
      if (n.kind != Node::Kind::TEXT) throw Refusal{make_error(Errc::POLICY_PARSE, where + ": an empty key", "keys are plain text")};
      if (!f.keys.insert(n.text).second)
        throw Refusal{make_error(Errc::POLICY_PARSE, where + ": the key `" + n.text + "` stands twice",
                                 "of two values one would be ignored")};
      f.have_key = true;
      f.key = std::move(n.text);
      f.key_at = n.at;
    } else {
      f.have_key = false;
      f.node.entries.push_back({std::move(f.key), f.key_at, std::move(n)});
    }
  }

  std::string_view bytes_;
  const std::string& name_;
  Node root_;
  bool seen_ = false;
  std::vector<Frame> stack_;
};

Node empty_map() {
  Node n;
  n.kind = Node::Kind::MAP;
  n.at = {1, 1};
  return n;
}

// A line that begins with '%' is a directive: it could give tags and versions another meaning.
Result<void> check_directives(std::string_view bytes, const std::string& name) {
  int line = 1;
  for (size_t i = 0; i < bytes.size(); line++) {
    if (bytes[i] == '%')
      return make_error(Errc::POLICY_PARSE, place(name, {line, 1}) + ": a directive", "a policy has none; quote a text that begins with %");
    i = bytes.find('\n', i);
    if (i == std::string_view::npos) break;
    i++;
  }
  return {};
}

}  // namespace

Result<Node> read_yaml(std::string_view bytes, const std::string& name) {
  if (bytes.substr(0, 3) == "\xef\xbb\xbf") bytes.remove_prefix(3);
  H5I_TRY(check_bytes(bytes, name));
  H5I_TRY(check_directives(bytes, name));
  try {
    std::istringstream in{std::string(bytes)};
    YAML::Parser parser(in);
    Builder builder(bytes, name);
    while (parser.HandleNextDocument(builder)) {
    }
    if (!builder.seen()) return empty_map();
    Node root = builder.take();
    if (root.kind == Node::Kind::NONE) return empty_map();
    return root;
  } catch (const Refusal& r) {
    return r.error;
  } catch (const YAML::Exception& e) {
    Mark at{e.mark.line + 1, e.mark.column + 1};
    return make_error(Errc::POLICY_PARSE, place(name, e.mark.is_null() ? Mark{} : at) + ": not YAML", e.msg);
  } catch (const std::exception& e) {
    return make_error(Errc::POLICY_PARSE, name + ": not YAML", e.what());
  }
}

}  // namespace h5i::policy
