#include "plugins/websec-http/plan/sequence.hpp"

#include <algorithm>

#include "plugins/websec-http/http/json_splice.hpp"
#include "plugins/websec-http/plan/members.hpp"
#include "plugins/websec-http/rate/rate.hpp"

namespace h5i::websec {
namespace {

using namespace members;
constexpr size_t kMostSteps = 100, kMostTakes = 50, kMostExpected = 50, kMostStepEdits = 100;
constexpr size_t kLargestValue = 64u << 10;

sdk::Result<Take> read_take(const json::Value& v) {
  if (!v.is_object()) return bad("take holds what is no object");
  Take t;
  int places = 0;
  for (const auto& [key, value] : v.object()) {
    if (key == "name") t.name = H5I_SDK_TRY(text(value, "take.name"));
    else if (key == "secret") t.secret = H5I_SDK_TRY(yes(value, "take.secret"));
    else if (key == "json" || key == "regex" || key == "header") {
      t.from = key == "json" ? Take::From::JSON : key == "regex" ? Take::From::REGEX : Take::From::HEADER;
      t.where = H5I_SDK_TRY(text(value, "take"));
      places++;
    } else return bad("take has no member " + key.substr(0, 60));
  }
  if (!plain_name(t.name) || t.name == "input") return bad("what is taken has a name of [a-z0-9._-]{1,64}, and not input");
  if (places != 1 || t.where.empty()) return bad(t.name + " is taken from one of json, regex and header");
  std::vector<JsonStep> path;
  if (t.from == Take::From::JSON)
    if (auto no = parse_json_path(t.where, &path)) return bad(t.name + ": " + no->what);
  if (t.from == Take::From::REGEX) {
    const Pattern pattern = H5I_SDK_TRY(Pattern::compile(t.where));
    if (pattern.groups() < 1) return bad(t.name + ": its pattern has no group");
  }
  return t;
}

sdk::Result<Step> read_step(const json::Value& v) {
  if (!v.is_object()) return bad("steps holds what is no object");
  Step s;
  for (const auto& [key, value] : v.object()) {
    if (key == "name") s.name = H5I_SDK_TRY(text(value, "step.name"));
    else if (key == "replay") s.replay = static_cast<uint64_t>(H5I_SDK_TRY(number(value, "replay", 1, INT64_MAX / 2)));
    else if (key == "request") s.request = H5I_SDK_TRY(read_written(value));
    else if (key == "edits") s.edits = H5I_SDK_TRY(strings(value, "edits", kMostStepEdits));
    else if (key == "follow") s.follow = H5I_SDK_TRY(number(value, "follow", 0, 20));
    else if (key == "expect") {
      s.expect = H5I_SDK_TRY(strings(value, "expect", kMostExpected));
      for (const std::string& e : s.expect) H5I_SDK_TRY(Matcher::parse(e));
    } else if (key == "take") {
      if (!value.is_array() || value.array().size() > kMostTakes) return bad("take is no list of at most " + std::to_string(kMostTakes));
      for (const json::Value& t : value.array()) s.take.push_back(H5I_SDK_TRY(read_take(t)));
    } else return bad("a step has no member " + key.substr(0, 60));
  }
  if (!s.name.empty() && !plain_name(s.name)) return bad("a step's name is [a-z0-9._-]{1,64}");
  if ((s.replay != 0) + s.request.has_value() != 1) return bad("a step has one of replay and request");
  return s;
}

// Each "{{...}}" of a text, in its order.
std::vector<std::string> marks(std::string_view value) {
  std::vector<std::string> out;
  for (size_t at = 0; (at = value.find("{{", at)) != std::string_view::npos;) {
    const size_t end = value.find("}}", at + 2);
    if (end == std::string_view::npos) break;
    out.emplace_back(value.substr(at + 2, end - at - 2));
    at = end + 2;
  }
  return out;
}

sdk::Status judge_edits(const Step& s, const std::map<std::string, bool>& known, const IsSecret& secret_header) {
  for (const std::string& text : s.edits) {
    Edit e;
    const std::string name = edit_name(text).substr(0, 60);
    if (auto no = parse_edit(text, &e)) return bad("edit " + name + ": " + no->what);
    if (!e.file.empty()) return bad("edit " + name + ": a plan's edits name no files");
    for (const std::string& mark : marks(e.value)) {
      auto found = known.find(mark);
      if (found == known.end()) return bad("edit " + name + ": nothing was taken before that is called " + mark.substr(0, 60));
      if (found->second && (e.kind == Edit::Kind::PATH || e.kind == Edit::Kind::QUERY || (e.kind == Edit::Kind::HEADER && !secret_header(e.key))))
        return bad("edit " + name + ": " + mark + " is a secret, and this would be shown; \"secret\": false where it is taken says that it is none");
    }
  }
  return {};
}

}  // namespace

sdk::Result<Sequence> parse_sequence(std::string_view document, const IsSecret& secret_header) {
  if (document.size() > kLargestDocument) return bad("longer than " + std::to_string(kLargestDocument) + " bytes");
  auto v = json::parse(document);
  if (!v || !v->is_object()) return bad("it is no JSON object");
  Sequence out;
  for (const auto& [key, value] : v->object()) {
    if (key == "schema") {
      if (value.string() != "h5i.websec-sequence-plan/1") return bad("its schema is not h5i.websec-sequence-plan/1");
    } else if (key == "name" || key == "as") {
      std::string& into = key == "name" ? out.name : out.as;
      into = H5I_SDK_TRY(text(value, key.c_str()));
      if (!plain_name(into)) return bad("a name is [a-z0-9._-]{1,64}");
    } else if (key == "rate") {
      out.rate = H5I_SDK_TRY(text(value, "rate"));
      H5I_SDK_TRY(parse_rate(out.rate));
    } else if (key == "timeout_s") out.timeout_s = H5I_SDK_TRY(number(value, "timeout_s", 1, 3600));
    else if (key == "lenient") out.lenient = H5I_SDK_TRY(yes(value, "lenient"));
    else if (key == "insecure") out.insecure = H5I_SDK_TRY(yes(value, "insecure"));
    else if (key == "steps") {
      if (!value.is_array() || value.array().size() > kMostSteps) return bad("steps is no list of at most " + std::to_string(kMostSteps));
      for (const json::Value& s : value.array()) out.steps.push_back(H5I_SDK_TRY(read_step(s)));
    } else return bad("there is no member " + key.substr(0, 60));
  }
  if (out.steps.empty()) return bad("there is no step");
  std::map<std::string, bool> known;  // and whether it is a secret: once one, always one
  for (const Step& s : out.steps) {
    H5I_SDK_TRY(judge_edits(s, known, secret_header));
    for (const Take& t : s.take) known[t.name] = known[t.name] || t.secret;
  }
  return out;
}

sdk::Result<std::vector<Edit>> edits_with(const Step& step, const Taken& taken) {
  std::vector<Edit> out;
  for (const std::string& text : step.edits) {
    Edit e;
    if (auto no = parse_edit(text, &e)) return bad(no->what);
    std::string value;
    for (size_t at = 0; at < e.value.size();) {
      const size_t begin = std::min(e.value.find("{{", at), e.value.size()), end = e.value.find("}}", begin);
      if (begin == e.value.size() || end == std::string::npos) {
        value += e.value.substr(at);
        break;
      }
      value += e.value.substr(at, begin - at);
      auto found = taken.find(e.value.substr(begin + 2, end - begin - 2));
      if (found == taken.end()) return sdk::failure(H5I_E_NOT_FOUND, "edit " + edit_name(text) + ": a value was not taken");
      value += found->second;
      at = end + 2;
    }
    e.value = std::move(value);
    out.push_back(std::move(e));
  }
  return out;
}

sdk::Result<std::string> take_from(const Take& take, std::string_view head, std::string_view body) {
  auto none = [&](const char* why) { return sdk::failure(H5I_E_NOT_FOUND, take.name + ": " + why); };
  std::string out;
  if (take.from == Take::From::HEADER) {
    const std::vector<std::string_view> values = header_values(head, take.where);
    if (values.empty()) return none("the answer has no such header");
    out = values[0];
  } else if (take.from == Take::From::REGEX) {
    const Pattern pattern = H5I_SDK_TRY(Pattern::compile(take.where));
    auto found = pattern.find(body);
    if (!found || !found->first) return none("the body has nothing that the pattern matches");
    out = *found->first;
  } else {
    std::vector<JsonStep> path;
    if (auto no = parse_json_path(take.where, &path)) return none("no path");
    auto document = json::parse(body);
    if (!document) return none("the body is no JSON");
    const json::Value* at = &*document;
    for (const JsonStep& step : path) {
      if (auto* name = std::get_if<std::string>(&step)) at = at->object().find(*name);
      else at = std::get<size_t>(step) < at->array().size() ? &at->array()[std::get<size_t>(step)] : nullptr;
      if (!at) return none("the body has no such member");
    }
    if (at->is_array() || at->is_object() || at->is_null()) return none("what stands there is no value");
    out = at->is_string() ? at->string() : json::canonical(*at);
  }
  if (out.size() > kLargestValue) return none("the value is longer than 64 KiB");
  return out;
}

}  // namespace h5i::websec
