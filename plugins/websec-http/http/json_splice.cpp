#include "plugins/websec-http/http/json_splice.hpp"

#include <algorithm>

#include "h5i/json.hpp"
#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

constexpr int kMaxDepth = 256;  // the walk below calls itself once a level

struct Item {
  size_t begin = 0;        // of the member's name or the element
  size_t value = 0, end = 0;
  std::string name;        // of a member
};

// Walks over a text once. Only what it needs to know where a value ends is judged.
class Walk {
 public:
  explicit Walk(std::string_view s) : s_(s) {}

  void space() {
    while (at_ < s_.size() && (s_[at_] == ' ' || s_[at_] == '\t' || s_[at_] == '\n' || s_[at_] == '\r')) at_++;
  }
  bool string() {
    if (!eat('"')) return false;
    for (; at_ < s_.size(); at_++) {
      if (s_[at_] == '\\') {
        at_++;
      } else if (s_[at_] == '"') {
        at_++;
        return true;
      }
    }
    return false;
  }
  bool value(int depth) {
    space();
    if (at_ >= s_.size() || depth > kMaxDepth) return false;
    if (s_[at_] == '"') return string();
    if (s_[at_] == '{' || s_[at_] == '[') return items(depth, nullptr);
    size_t begin = at_;
    while (at_ < s_.size() && std::string_view(",:]} \t\r\n\"{[").find(s_[at_]) == std::string_view::npos) at_++;
    return at_ > begin && json::parse(s_.substr(begin, at_ - begin)).has_value();
  }
  // An object or an array; what is in it, when somebody asks.
  bool items(int depth, std::vector<Item>* out) {
    bool object = s_[at_] == '{';
    char close = object ? '}' : ']';
    at_++;
    space();
    if (eat(close)) return true;
    for (;;) {
      space();
      Item item;
      item.begin = at_;
      if (object) {
        if (!string()) return false;
        if (out) {
          std::string_view written = s_.substr(item.begin, at_ - item.begin);
          auto name = json::parse(written);
          item.name = name ? name->string() : std::string(written.substr(1, written.size() - 2));  // a name that no text can be
        }
        space();
        if (!eat(':')) return false;
        space();
      }
      item.value = at_;
      if (!value(depth + 1)) return false;
      item.end = at_;
      if (out) out->push_back(std::move(item));
      space();
      if (eat(close)) return true;
      if (!eat(',')) return false;
    }
  }
  bool eat(char c) {
    if (at_ >= s_.size() || s_[at_] != c) return false;
    at_++;
    return true;
  }
  size_t at() const { return at_; }
  void go(size_t at) { at_ = at; }
  bool at_end() const { return at_ == s_.size(); }

 private:
  std::string_view s_;
  size_t at_ = 0;
};

std::string as_json(std::string_view value) {
  if (json::parse(value)) return std::string(value);
  std::string out;
  json::detail::write_string(out, value);
  return out;
}

Refused no_path(std::string what) { return Refusal{"json-path", std::move(what)}; }

}  // namespace

Refused parse_json_path(std::string_view path, std::vector<JsonStep>* out) {
  out->clear();
  if (!path.starts_with('$')) return no_path("a path begins with $");
  for (size_t at = 1; at < path.size();) {
    if (path[at] == '.') {
      size_t end = std::min(path.find_first_of(".[", at + 1), path.size());
      if (end == at + 1) return no_path("a name in the path is empty; write it as ['']");
      out->emplace_back(std::string(path.substr(at + 1, end - at - 1)));
      at = end;
    } else if (path[at] == '[' && at + 1 < path.size() && (path[at + 1] == '\'' || path[at + 1] == '"')) {
      char quote = path[at + 1];
      size_t end = path.find(std::string{quote, ']'}, at + 2);
      if (end == std::string_view::npos) return no_path("a quoted name in the path does not end");
      out->emplace_back(std::string(path.substr(at + 2, end - at - 2)));
      at = end + 2;
    } else if (path[at] == '[') {
      size_t end = std::min(path.find(']', at), path.size());
      std::string_view digits = path.substr(at + 1, end - at - 1);
      if (end == path.size() || digits.empty() || digits.size() > 9 || !syntax::all(digits, syntax::kDigit))
        return no_path("an index in the path is no number");
      size_t n = 0;
      for (char c : digits) n = n * 10 + static_cast<size_t>(c - '0');
      out->emplace_back(n);
      at = end + 1;
    } else {
      return no_path("after $ a path has .name, [index] or ['name']");
    }
  }
  return std::nullopt;
}

Refused splice_json(std::string* text, const std::vector<JsonStep>& path, EditAct act, std::string_view value) {
  std::string_view all = *text;
  Walk whole(all);
  if (!whole.value(0) || (whole.space(), !whole.at_end())) return Refusal{"not-json", "the body is not JSON"};

  Walk walk(all);
  walk.space();
  size_t begin = walk.at();
  walk.value(0);
  size_t end = walk.at();
  auto replace = [&](size_t from, size_t to, const std::string& with) { text->replace(from, to - from, with); };
  auto is_container = [&](size_t at) { return all[at] == '{' || all[at] == '['; };
  auto append = [&](size_t close, bool empty, const std::string& what) { replace(close, close, (empty ? "" : ",") + what); };

  for (size_t step = 0; step < path.size(); step++) {
    bool last = step + 1 == path.size();
    const std::string* name = std::get_if<std::string>(&path[step]);
    if (!is_container(begin) || (all[begin] == '{') != (name != nullptr))
      return no_path(name ? "a name in the path leads into something that is no object" : "an index in the path leads into something that is no array");
    std::vector<Item> items;
    Walk inside(all);
    inside.go(begin);
    inside.items(0, &items);
    size_t found = items.size();
    if (name) {
      for (size_t i = 0; i < items.size(); i++)
        if (items[i].name == *name) found = i;
    } else {
      found = std::min(std::get<size_t>(path[step]), items.size());
    }
    if (found == items.size()) {
      bool next = name || std::get<size_t>(path[step]) == items.size();
      if (!last || act != EditAct::SET || !next) return no_path("the path leads to nothing");
      std::string made;
      if (name) {
        json::detail::write_string(made, *name);
        made += ':';
      }
      // Behind the last item, so that the space before the closing bracket stays.
      append(items.empty() ? inside.at() - 1 : items.back().end, items.empty(), made + as_json(value));
      return std::nullopt;
    }
    if (last && act == EditAct::REMOVE) {
      if (found + 1 < items.size()) {
        replace(items[found].begin, items[found + 1].begin, "");
      } else {
        replace(found > 0 ? items[found - 1].end : items[found].begin, items[found].end, "");
      }
      return std::nullopt;
    }
    begin = items[found].value;
    end = items[found].end;
  }
  if (act == EditAct::REMOVE) return no_path("the whole body is not removed by a path");
  if (act == EditAct::ADD) {
    if (all[begin] != '[') return no_path("only an array gets one more");
    std::vector<Item> items;
    Walk inside(all);
    inside.go(begin);
    inside.items(0, &items);
    append(items.empty() ? inside.at() - 1 : items.back().end, items.empty(), as_json(value));
    return std::nullopt;
  }
  replace(begin, end, as_json(value));
  return std::nullopt;
}

}  // namespace h5i::websec
