#include "plugins/websec-http/http/edit.hpp"

#include <algorithm>

#include "plugins/websec-http/http/json_splice.hpp"
#include "plugins/websec-http/http/multipart.hpp"
#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

using Kind = Edit::Kind;

struct Word {
  std::string_view word;
  Kind kind;
  bool keyed;
};
constexpr Word kWords[] = {{"path", Kind::PATH, false},  {"query", Kind::QUERY, true}, {"header", Kind::HEADER, true},       {"cookie", Kind::COOKIE, true},
                           {"json", Kind::JSON, true},   {"form", Kind::FORM, true},   {"multipart", Kind::MULTIPART, true}, {"body", Kind::BODY, false}};

constexpr std::string_view kForm = "application/x-www-form-urlencoded";

Refused bad_edit(std::string what) { return Refusal{"edit", std::move(what)}; }

// Where the key ends: the first = that is not inside the quotes of a JSON path.
size_t key_end(std::string_view text, Kind kind) {
  if (kind != Kind::JSON) return text.find('=');
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '=') return i;
    if (text[i] == '[' && i + 1 < text.size() && (text[i + 1] == '\'' || text[i + 1] == '"')) {
      size_t end = text.find(std::string{text[i + 1], ']'}, i + 2);
      if (end == std::string_view::npos) return end;
      i = end + 1;
    }
  }
  return std::string_view::npos;
}

class Editing {
 public:
  explicit Editing(Request* r) : r_(*r) {}

  Refused apply(const Edit& e) {
    switch (e.kind) {
      case Kind::PATH: return path(e);
      case Kind::QUERY: return query(e);
      case Kind::HEADER: return header(e);
      case Kind::COOKIE: return cookie(e);
      case Kind::JSON: return json(e);
      case Kind::FORM: return form(e);
      case Kind::MULTIPART: return multipart(e);
      case Kind::BODY: return body(e);
    }
    return std::nullopt;
  }

  void frame() {
    bool transfer = r_.headers.find("transfer-encoding") != nullptr;
    if (length_named_) return;
    if (transfer || !r_.body) {
      if (transfer || body_changed_) r_.headers.remove("content-length");
      return;
    }
    if (!body_changed_) return;
    for (HeaderLine& h : r_.headers.lines())
      if (syntax::same(h.name(), "content-length")) h.set_value(std::to_string(r_.body->size()));
  }

 private:
  bool has_path() const { return r_.form == TargetForm::ORIGIN || r_.form == TargetForm::ABSOLUTE; }

  Refused path(const Edit& e) {
    if (!has_path()) return bad_edit("this request's target has no path");
    if (!e.value.starts_with('/')) return bad_edit("a path begins with a slash");
    for (char c : e.value)
      if (c <= ' ' || c > '~' || c == '?' || c == '#')
        return bad_edit("a path holds visible ASCII without ? and #; percent-encode the others, and set the query with query.NAME=");
    size_t mark = r_.target.find('?');
    r_.target = e.value + (mark == std::string::npos ? "" : r_.target.substr(mark));
    return std::nullopt;
  }

  Refused query(const Edit& e) {
    if (!has_path()) return bad_edit("this request's target has no query");
    size_t mark = std::min(r_.target.find('?'), r_.target.size());
    std::string list = mark < r_.target.size() ? r_.target.substr(mark + 1) : "";
    if (auto no = edit_pairs(&list, PairStyle::QUERY, e.act, e.key, e.value)) return no;
    r_.target.resize(mark);
    if (!list.empty()) r_.target += "?" + list;
    return std::nullopt;
  }

  Refused header(const Edit& e) {
    if (syntax::same(e.key, "content-length")) length_named_ = true;
    if (e.act == EditAct::ADD) return r_.headers.add(e.key, e.value);
    if (e.act == EditAct::SET) return r_.headers.set(e.key, e.value);
    if (r_.headers.remove(e.key) == 0) return Refusal{"nothing-to-remove", "there is no header of that name"};
    return std::nullopt;
  }

  Refused cookie(const Edit& e) {
    std::vector<HeaderLine>& lines = r_.headers.lines();
    auto is_cookie = [](const HeaderLine& h) { return syntax::same(h.name(), "cookie"); };
    auto place = std::find_if(lines.begin(), lines.end(), [&](const HeaderLine& h) { return is_cookie(h) && has_pair(h.value(), PairStyle::COOKIE, e.key); });
    bool there = place != lines.end();
    if (e.act == EditAct::REMOVE && !there) return Refusal{"nothing-to-remove", "there is no cookie of that name"};
    if (!there || e.act == EditAct::ADD) {
      place = std::find_if(lines.begin(), lines.end(), is_cookie);
      std::string list = place == lines.end() ? "" : std::string(place->value());
      if (auto no = edit_pairs(&list, PairStyle::COOKIE, EditAct::ADD, e.key, e.value)) return no;
      if (place == lines.end()) return r_.headers.add("Cookie", list);
      place->set_value(list);
      return std::nullopt;
    }
    // Set in the first header that has it; what other headers have of that name goes.
    EditAct act = e.act;
    for (HeaderLine& h : lines) {
      if (!is_cookie(h) || !has_pair(h.value(), PairStyle::COOKIE, e.key)) continue;
      std::string list(h.value());
      if (auto no = edit_pairs(&list, PairStyle::COOKIE, act, e.key, e.value)) return no;
      h.set_value(list);
      act = EditAct::REMOVE;
    }
    std::erase_if(lines, [&](const HeaderLine& h) { return is_cookie(h) && h.value().empty(); });
    return std::nullopt;
  }

  Refused typed(std::string_view type) {
    body_changed_ = true;
    if (r_.headers.find("content-type")) return std::nullopt;
    return r_.headers.add("Content-Type", type);
  }
  bool has_body() const { return r_.body && !r_.body->empty(); }

  Refused json(const Edit& e) {
    std::vector<JsonStep> steps;
    if (auto no = parse_json_path(e.key, &steps)) return no;
    std::string text = has_body() ? *r_.body : steps.empty() ? "null" : std::holds_alternative<size_t>(steps[0]) ? "[]" : "{}";
    if (auto no = splice_json(&text, steps, e.act, e.value)) return no;
    r_.body = std::move(text);
    return typed("application/json");
  }

  Refused form(const Edit& e) {
    const HeaderLine* type = r_.headers.find("content-type");
    if (type && has_body() && !syntax::same(syntax::trimmed(type->value().substr(0, type->value().find(';'))), kForm))
      return Refusal{"not-a-form", "the body is no form: " + std::string(type->value())};
    std::string list = r_.body.value_or("");
    if (auto no = edit_pairs(&list, PairStyle::FORM, e.act, e.key, e.value)) return no;
    r_.body = std::move(list);
    return typed(kForm);
  }

  Refused multipart(const Edit& e) {
    const HeaderLine* type = r_.headers.find("content-type");
    std::optional<std::string> boundary = type ? multipart_boundary(type->value()) : std::nullopt;
    if (!boundary && (has_body() || type)) return Refusal{"not-multipart", "the body has no boundary in its Content-Type"};
    if (!boundary) boundary = free_boundary(e.value);
    std::string text = r_.body.value_or("");
    std::string_view name = std::string_view(e.file).substr(e.file.rfind('/') + 1);
    if (auto no = edit_multipart(&text, *boundary, e.act, e.key, e.value, name)) return no;
    r_.body = std::move(text);
    return typed("multipart/form-data; boundary=" + *boundary);
  }

  Refused body(const Edit& e) {
    body_changed_ = true;
    r_.body.reset();
    if (e.act != EditAct::REMOVE) r_.body = e.value;
    return std::nullopt;
  }

  Request& r_;
  bool body_changed_ = false, length_named_ = false;
};

}  // namespace

Refused parse_edit(std::string_view text, Edit* out) {
  Edit e;
  std::string_view rest = text;
  if (rest.starts_with('+')) e.act = EditAct::ADD;
  if (rest.starts_with('-')) e.act = EditAct::REMOVE;
  if (e.act != EditAct::SET) rest.remove_prefix(1);
  std::string_view word = rest.substr(0, rest.find_first_of(".="));
  const Word* known = std::find_if(std::begin(kWords), std::end(kWords), [&](const Word& w) { return w.word == word; });
  if (known == std::end(kWords)) return bad_edit("an edit is path=, query.N=, header.N=, cookie.N=, json.$.a=, form.N=, multipart.N= or body=");
  e.kind = known->kind;
  rest.remove_prefix(word.size());
  if (known->keyed != rest.starts_with('.')) return bad_edit(std::string(word) + (known->keyed ? " needs a name behind a dot" : " takes no name"));
  if (known->keyed) rest.remove_prefix(1);
  size_t equals = key_end(rest, e.kind);
  if (e.act == EditAct::REMOVE) {
    if (equals != std::string_view::npos) return bad_edit("what is taken out has no value");
    e.key = rest;
  } else {
    if (equals == std::string_view::npos) return bad_edit("a value is missing: =VALUE, or - in front to take it out");
    e.key = rest.substr(0, equals);
    e.value = rest.substr(equals + 1);
  }
  if (known->keyed && e.key.empty()) return bad_edit(std::string(word) + " needs a name behind a dot");
  if (e.kind == Kind::PATH && e.act != EditAct::SET) return bad_edit("a path is only set");
  if (e.kind == Kind::BODY && e.act == EditAct::ADD) return bad_edit("a body is only set or taken out");
  if ((e.kind == Kind::BODY || e.kind == Kind::MULTIPART) && e.value.starts_with('@')) {
    e.file = e.value.substr(1);
    e.value.clear();
    if (e.file.empty()) return bad_edit("behind @ stands a file");
  }
  *out = std::move(e);
  return std::nullopt;
}

Refused apply_edits(Request* request, const std::vector<Edit>& edits, size_t* at) {
  Request copy = *request;
  Editing editing(&copy);
  for (*at = 0; *at < edits.size(); ++*at)
    if (auto no = editing.apply(edits[*at])) return no;
  editing.frame();
  *request = std::move(copy);
  return std::nullopt;
}

}  // namespace h5i::websec
