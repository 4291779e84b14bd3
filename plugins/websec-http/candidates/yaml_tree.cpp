#include "plugins/websec-http/candidates/yaml_tree.hpp"

#include <yaml.h>

#include <charconv>
#include <set>
#include <vector>

namespace h5i::websec {
namespace {

// What a plain scalar is in YAML's core schema, as far as a description of an API needs it: numbers with a point stay text.
json::Value plain(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  int64_t number = 0;
  const char* end = text.data() + text.size();
  if (auto read = std::from_chars(text.data(), end, number); read.ec == std::errc() && read.ptr == end) return number;
  return text;
}

class Builder {
 public:
  Builder(std::string_view text, const YamlLimits& limits) : limits_(limits) {
    good_ = yaml_parser_initialize(&parser_) == 1;
    if (!good_) return;
    if (constexpr std::string_view kMark = "\xef\xbb\xbf"; text.starts_with(kMark)) text.remove_prefix(kMark.size());
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~Builder() {
    if (good_) yaml_parser_delete(&parser_);
  }
  Builder(const Builder&) = delete;

  YamlTree build() {
    if (!good_) return {std::nullopt, "no memory for a reader of YAML", 0};
    for (bool more = true; more && out_.error.empty();) more = step();
    if (!out_.error.empty()) out_.root.reset();
    else if (!out_.root) out_.error = "no YAML document";
    return std::move(out_);
  }

 private:
  struct Open {
    json::Value value;
    bool mapping = false;
    std::optional<std::string> key;  // whose value comes next
    std::set<std::string> keys;
  };
  struct Event {
    yaml_event_t e{};
    ~Event() { yaml_event_delete(&e); }
  };

  bool step() {
    Event event;
    if (yaml_parser_parse(&parser_, &event.e) != 1) {
      out_.error = "no YAML" + at(parser_.problem_mark) + (parser_.problem ? std::string(": ") + parser_.problem : "");
      return false;
    }
    const yaml_event_t& e = event.e;
    switch (e.type) {
      case YAML_STREAM_END_EVENT: return false;
      case YAML_DOCUMENT_START_EVENT:
        if (documents_++ > 0) fail("more than one document", e);
        break;
      case YAML_MAPPING_START_EVENT: open(true, e); break;
      case YAML_SEQUENCE_START_EVENT: open(false, e); break;
      case YAML_MAPPING_END_EVENT:
      case YAML_SEQUENCE_END_EVENT: {
        json::Value done = std::move(open_.back().value);
        open_.pop_back();
        add(std::move(done), e);
        break;
      }
      case YAML_ALIAS_EVENT:
        out_.aliases++;
        if (wants_key()) fail("an alias where a key has to be", e);
        else add(nullptr, e);
        break;
      case YAML_SCALAR_EVENT: {
        const std::string_view text(reinterpret_cast<const char*>(e.data.scalar.value), e.data.scalar.length);
        if (wants_key()) key(text, e);
        else add(e.data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain(text) : json::Value(text), e);
        break;
      }
      default: break;
    }
    return true;
  }

  static std::string at(const yaml_mark_t& mark) { return " in line " + std::to_string(mark.line + 1); }
  void fail(const std::string& what, const yaml_event_t& e) {
    if (out_.error.empty()) out_.error = what + at(e.start_mark);
  }
  bool wants_key() const { return !open_.empty() && open_.back().mapping && !open_.back().key; }

  void key(std::string_view text, const yaml_event_t& e) {
    Open& o = open_.back();
    if (!o.keys.emplace(text).second) return fail("a key that is there twice", e);
    if (o.keys.size() > limits_.members) return fail("a mapping of more than " + std::to_string(limits_.members) + " members", e);
    o.key.emplace(text);
  }

  void open(bool mapping, const yaml_event_t& e) {
    if (wants_key()) return fail("a key that is no text", e);
    if (open_.size() >= limits_.depth) return fail("deeper than " + std::to_string(limits_.depth), e);
    open_.push_back(Open{mapping ? json::Value(json::Object{}) : json::Value(json::Array{}), mapping, std::nullopt, {}});
  }

  void add(json::Value v, const yaml_event_t& e) {
    if (++values_ > limits_.values) return fail("more than " + std::to_string(limits_.values) + " values", e);
    if (open_.empty()) {
      out_.root = std::move(v);
      return;
    }
    Open& o = open_.back();
    if (!o.mapping) {
      o.value.push(std::move(v));
      return;
    }
    o.value.make_object().append_unchecked(*std::move(o.key), std::move(v));
    o.key.reset();
  }

  const YamlLimits limits_;
  yaml_parser_t parser_{};
  bool good_ = false;
  std::vector<Open> open_;
  size_t documents_ = 0, values_ = 0;
  YamlTree out_;
};

}  // namespace

YamlTree yaml_tree(std::string_view text, const YamlLimits& limits) { return Builder(text, limits).build(); }

}  // namespace h5i::websec
