#include "tests/policy/sbpl.hpp"

#include <algorithm>
#include <set>

namespace h5i::sbpl {
namespace {

constexpr int kDepth = 16;

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::optional<std::vector<Node>> all() {
    std::vector<Node> out;
    for (skip(); !rest_.empty(); skip()) {
      auto n = node(0);
      if (!n || n->kind != Node::Kind::LIST) return std::nullopt;
      out.push_back(std::move(*n));
    }
    return out;
  }

 private:
  static bool space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  void skip() {
    for (; !rest_.empty() && (space(rest_[0]) || rest_[0] == ';'); rest_.remove_prefix(1))
      if (rest_[0] == ';') {
        size_t end = rest_.find('\n');
        if (end == std::string_view::npos) end = rest_.size() - 1;
        rest_.remove_prefix(end);
      }
  }
  std::optional<Node> node(int depth) {
    if (depth > kDepth) return std::nullopt;
    skip();
    if (rest_.empty() || rest_[0] == ')') return std::nullopt;
    Node out;
    if (rest_[0] == '(') {
      rest_.remove_prefix(1);
      for (skip(); !rest_.empty() && rest_[0] != ')'; skip()) {
        auto n = node(depth + 1);
        if (!n) return std::nullopt;
        out.items.push_back(std::move(*n));
      }
      if (rest_.empty()) return std::nullopt;
      rest_.remove_prefix(1);
      return out;
    }
    if (rest_[0] == '"') return string();
    out.kind = Node::Kind::SYMBOL;
    while (!rest_.empty() && !space(rest_[0]) && std::string_view("()\";").find(rest_[0]) == std::string_view::npos) {
      out.text += rest_[0];
      rest_.remove_prefix(1);
    }
    return out;
  }
  std::optional<Node> string() {
    Node out;
    out.kind = Node::Kind::STRING;
    for (rest_.remove_prefix(1); !rest_.empty(); rest_.remove_prefix(1)) {
      char c = rest_[0];
      if (c == '"') {
        rest_.remove_prefix(1);
        return out;
      }
      if (c == '\\') {
        rest_.remove_prefix(1);
        if (rest_.empty()) return std::nullopt;
        switch (rest_[0]) {
          case 'n': c = '\n'; break;
          case 't': c = '\t'; break;
          case 'r': c = '\r'; break;
          case '"': case '\\': c = rest_[0]; break;
          default: return std::nullopt;
        }
      }
      out.text += c;
    }
    return std::nullopt;
  }

  std::string_view rest_;
};

const std::set<std::string> kOperations = {"default", "process-fork", "process-exec*", "process-info*", "signal", "sysctl-read", "mach-lookup",
                                           "file-read*", "file-read-metadata", "file-write*", "file-write-data", "file-write-unlink",
                                           "file-write-setugid", "file-map-executable", "network*", "network-outbound"};

// Which filters an operation takes.
bool takes(const std::string& operation, const std::string& filter) {
  if (operation.starts_with("file-") || operation == "process-exec*") return filter == "literal" || filter == "subpath";
  if (operation == "signal" || operation == "process-info*") return filter == "target";
  if (operation == "sysctl-read") return filter == "sysctl-name";
  if (operation == "mach-lookup") return filter == "global-name";
  return operation == "network-outbound" && filter == "remote tcp";
}

bool symbol(const Node& n, std::string_view text) { return n.kind == Node::Kind::SYMBOL && n.text == text; }

// The address of `remote tcp`: localhost and a number that is one port.
bool one_loopback_port(std::string_view text) {
  if (!text.starts_with("localhost:")) return false;
  text.remove_prefix(10);
  if (text.empty() || text.size() > 5 || text[0] == '0') return false;
  int port = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    port = port * 10 + (c - '0');
  }
  return port <= 65535;
}

}  // namespace

std::optional<std::vector<Node>> parse(std::string_view text) { return Reader(text).all(); }

std::optional<Rules> read(std::string_view text, const std::map<std::string, std::string>& parameters, std::string* why) {
  auto fail = [&](const std::string& what) {
    if (why) *why = what;
    return std::nullopt;
  };
  auto nodes = parse(text);
  if (!nodes) return fail("not well formed");
  if (nodes->empty() || nodes->front().items.size() != 2 || !symbol(nodes->front().items[0], "version") || !symbol(nodes->front().items[1], "1"))
    return fail("does not begin with version 1");
  Rules out;
  for (size_t i = 1; i < nodes->size(); i++) {
    const std::vector<Node>& n = (*nodes)[i].items;
    if (n.size() < 2 || (!symbol(n[0], "allow") && !symbol(n[0], "deny"))) return fail("a form that is no rule");
    Rule rule;
    rule.allow = n[0].text == "allow";
    size_t at = 1;
    for (; at < n.size() && n[at].kind == Node::Kind::SYMBOL; at++) {
      if (!kOperations.count(n[at].text)) return fail("operation " + n[at].text);
      rule.operations.push_back(n[at].text);
    }
    if (rule.operations.empty()) return fail("a rule without an operation");
    for (; at < n.size(); at++) {
      const std::vector<Node>& f = n[at].items;
      if (f.size() < 2 || f[0].kind != Node::Kind::SYMBOL) return fail("a filter without a value");
      Filter filter{f[0].text, "", false};
      const Node* value = &f[1];
      if (filter.kind == "remote") {
        if (f.size() != 3 || !symbol(f[1], "tcp") || f[2].kind != Node::Kind::STRING || !one_loopback_port(f[2].text)) return fail("an address");
        filter.kind += " tcp";
        value = &f[2];
      } else if (f.size() != 2) {
        return fail("a filter of many values");
      }
      if (value->kind == Node::Kind::LIST) {
        if (value->items.size() != 2 || !symbol(value->items[0], "param") || value->items[1].kind != Node::Kind::STRING) return fail("no parameter");
        auto p = parameters.find(value->items[1].text);
        if (p == parameters.end()) return fail("parameter " + value->items[1].text + " is not given");
        filter.value = p->second;
        filter.parameter = true;
        out.used.push_back(p->first);
      } else {
        if ((value->kind == Node::Kind::SYMBOL) != (filter.kind == "target")) return fail("a value of the wrong kind");
        filter.value = value->text;
      }
      for (const std::string& o : rule.operations)
        if (!takes(o, filter.kind)) return fail(o + " takes no " + filter.kind);
      rule.filters.push_back(std::move(filter));
    }
    out.rules.push_back(std::move(rule));
  }
  return out;
}

bool Rules::may(std::string_view operation, std::string_view subject) const {
  auto covers = [&](const std::string& o) {
    if (o == "default") return true;
    return o.ends_with('*') ? operation.starts_with(std::string_view(o).substr(0, o.size() - 1)) : operation == o;
  };
  auto matches = [&](const Filter& f) {
    if (f.kind != "subpath") return f.value == subject;
    return f.value == "/" || subject == f.value || (subject.starts_with(f.value) && subject[f.value.size()] == '/');
  };
  for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
    if (std::none_of(rule->operations.begin(), rule->operations.end(), covers)) continue;
    if (rule->filters.empty() || std::any_of(rule->filters.begin(), rule->filters.end(), matches)) return rule->allow;
  }
  return false;
}

}  // namespace h5i::sbpl
