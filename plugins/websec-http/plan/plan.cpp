#include "plugins/websec-http/plan/plan.hpp"

#include <algorithm>

#include "plugins/websec-http/plan/members.hpp"
#include "plugins/websec-http/rate/rate.hpp"

namespace h5i::websec {
namespace members {

constexpr size_t kMostHeaders = 200;

sdk::Failure bad(std::string why) { return sdk::failure(H5I_E_INVALID, "plan: " + std::move(why)); }

sdk::Result<std::vector<std::string>> strings(const json::Value& v, const char* what, size_t most) {
  if (!v.is_array()) return bad(std::string(what) + " is no list");
  if (v.array().size() > most) return bad(std::string(what) + ": more than " + std::to_string(most));
  std::vector<std::string> out;
  for (const json::Value& e : v.array()) {
    if (!e.is_string()) return bad(std::string(what) + " holds what is no string");
    out.push_back(e.string());
  }
  return out;
}

sdk::Result<int64_t> number(const json::Value& v, const char* what, int64_t least, int64_t most) {
  if (!v.is_int() || v.integer() < least || v.integer() > most) return bad(std::string(what) + " is not a number from " + std::to_string(least) + " to " + std::to_string(most));
  return v.integer();
}

sdk::Result<std::string> text(const json::Value& v, const char* what) {
  if (!v.is_string()) return bad(std::string(what) + " is no string");
  return v.string();
}

sdk::Result<bool> yes(const json::Value& v, const char* what) {
  if (!v.is_bool()) return bad(std::string(what) + " is neither true nor false");
  return v.boolean();
}

sdk::Result<WrittenRequest> read_written(const json::Value& v) {
  if (!v.is_object()) return bad("request is no object");
  WrittenRequest r;
  for (const auto& [key, value] : v.object()) {
    if (key == "url") r.url = H5I_SDK_TRY(text(value, "request.url"));
    else if (key == "method") r.method = H5I_SDK_TRY(text(value, "request.method"));
    else if (key == "headers") r.headers = H5I_SDK_TRY(strings(value, "request.headers", kMostHeaders));
    else if (key == "body") r.body = H5I_SDK_TRY(text(value, "request.body"));
    else return bad("request has no member " + key.substr(0, 60));
  }
  if (r.url.empty()) return bad("request has no url");
  return r;
}

}  // namespace members

namespace {

using namespace members;

constexpr size_t kMostEdits = 100, kMostRequests = 200, kMostIdentities = 50;
sdk::Status read_members(const json::Value& document, Plan& p) {
  for (const auto& [key, v] : document.object()) {
    if (key == "schema") {
      if (v.string() != "h5i.websec-plan/1") return bad("its schema is not h5i.websec-plan/1");
    } else if (key == "name") {
      p.name = H5I_SDK_TRY(text(v, "name"));
      if (!plain_name(p.name)) return bad("a name is [a-z0-9._-]{1,64}");
    } else if (key == "replay") {
      p.replay = static_cast<uint64_t>(H5I_SDK_TRY(number(v, "replay", 1, INT64_MAX / 2)));
    } else if (key == "request") {
      p.request = H5I_SDK_TRY(read_written(v));
    } else if (key == "matrix") {
      if (!v.is_array() || v.array().empty() || v.array().size() > kMostRequests) return bad("matrix is no list of 1 to " + std::to_string(kMostRequests) + " sends");
      for (const json::Value& n : v.array()) p.matrix.push_back(static_cast<uint64_t>(H5I_SDK_TRY(number(n, "matrix", 1, INT64_MAX / 2))));
    } else if (key == "as") {
      p.as = H5I_SDK_TRY(strings(v, "as", kMostIdentities));
      for (const std::string& name : p.as)
        if (!plain_name(name)) return bad("a name in as is [a-z0-9._-]{1,64}");
    } else if (key == "edits") {
      p.edits = H5I_SDK_TRY(strings(v, "edits", kMostEdits));
    } else if (key == "inputs") {
      p.inputs = H5I_SDK_TRY(strings(v, "inputs", kMostInputs));
    } else if (key == "rate") {
      p.rate = H5I_SDK_TRY(text(v, "rate"));
      H5I_SDK_TRY(parse_rate(p.rate));
    } else if (key == "follow") {
      p.follow = H5I_SDK_TRY(number(v, "follow", 0, 20));
    } else if (key == "parallel") {
      p.parallel = H5I_SDK_TRY(number(v, "parallel", 1, kMostParallel));
    } else if (key == "timeout_s") {
      p.timeout_s = H5I_SDK_TRY(number(v, "timeout_s", 1, 3600));
    } else if (key == "max_errors") {
      p.max_errors = H5I_SDK_TRY(number(v, "max_errors", 1, kMostSends));
    } else if (key == "lenient") {
      p.lenient = H5I_SDK_TRY(yes(v, "lenient"));
    } else if (key == "insecure") {
      p.insecure = H5I_SDK_TRY(yes(v, "insecure"));
    } else if (key == "reuse") {
      p.reuse = H5I_SDK_TRY(yes(v, "reuse"));
    } else if (key == "stop_on") {
      for (const std::string& what : H5I_SDK_TRY(strings(v, "stop_on", 10))) {
        if (what != "uniform") return bad("stop_on knows uniform alone");
        p.stop_on_uniform = true;
      }
    } else {
      return bad("there is no member " + key.substr(0, 60));
    }
  }
  return {};
}

sdk::Status judge(const Plan& p) {
  const int bases = (p.replay != 0) + p.request.has_value() + p.is_matrix();
  if (bases != 1) return bad("it has one of replay, request and matrix");
  bool marked = false;
  for (const std::string& text : p.edits) {
    Edit e;
    if (auto no = parse_edit(text, &e)) return bad("edit " + edit_name(text).substr(0, 60) + ": " + no->what);
    if (!e.file.empty()) return bad("edit " + edit_name(text).substr(0, 60) + ": a plan's edits name no files");
    if (e.key.find(kMark) != std::string::npos) return bad("an input goes into the value of an edit, not into its name");
    marked = marked || e.value.find(kMark) != std::string::npos;
  }
  if (p.is_matrix()) {
    if (p.as.empty()) return bad("a matrix has identities in as; none is nobody");
    if (!p.inputs.empty() || marked) return bad("a matrix has no inputs");
    return {};
  }
  if (p.as.size() > 1) return bad("only a matrix has more than one identity");
  if (p.inputs.empty()) return bad("there is no input");
  if (p.inputs.size() > kMostInputs) return bad("more than " + std::to_string(kMostInputs) + " inputs");
  if (!marked) return bad("no edit has " + std::string(kMark) + " in its value: all inputs would be one request");
  for (const std::string& input : p.inputs)
    if (input.size() > kLongestInput) return bad("an input is longer than " + std::to_string(kLongestInput) + " bytes");
  return {};
}

}  // namespace

bool plain_name(std::string_view name) {
  if (name.empty() || name.size() > 64) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'; });
}

sdk::Result<Plan> parse_plan(std::string_view document, const std::optional<std::string>& inputs) {
  if (document.size() > kLargestDocument) return bad("longer than " + std::to_string(kLargestDocument) + " bytes");
  auto v = json::parse(document);
  if (!v || !v->is_object()) return bad("it is no JSON object");
  Plan p;
  H5I_SDK_TRY(read_members(*v, p));
  if (inputs) {
    if (!p.inputs.empty()) return bad("it has inputs already");
    for (std::string_view rest = *inputs; !rest.empty();) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      std::string_view line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (p.inputs.size() == kMostInputs) return bad("more than " + std::to_string(kMostInputs) + " inputs");
      p.inputs.emplace_back(line);
    }
  }
  H5I_SDK_TRY(judge(p));
  return p;
}

json::Value plan_document(const Plan& p) {
  auto list = [](const auto& values) {
    json::Value out = json::Array{};
    for (const auto& v : values) out.push(json::Value(v));
    return out;
  };
  json::Value out = json::Object{{"schema", "h5i.websec-plan/1"}, {"follow", p.follow}, {"parallel", p.parallel}, {"timeout_s", p.timeout_s}, {"edits", list(p.edits)}, {"as", list(p.as)}, {"lenient", p.lenient}, {"insecure", p.insecure}, {"reuse", p.reuse}};
  if (!p.name.empty()) out["name"] = p.name;
  if (p.replay != 0) out["replay"] = p.replay;
  if (p.is_matrix()) out["matrix"] = list(p.matrix);
  if (p.request) {
    json::Value r = json::Object{{"url", p.request->url}, {"method", p.request->method}, {"headers", list(p.request->headers)}};
    if (p.request->body) r["body"] = *p.request->body;
    out["request"] = std::move(r);
  }
  if (!p.rate.empty()) out["rate"] = p.rate;
  if (p.max_errors > 0) out["max_errors"] = p.max_errors;
  if (p.stop_on_uniform) out["stop_on"] = json::Array{"uniform"};
  return out;
}

std::string plan_inputs(const Plan& p) {
  std::string out;
  for (const std::string& input : p.inputs) {
    for (unsigned char c : input) {
      out += "0123456789abcdef"[c >> 4];
      out += "0123456789abcdef"[c & 15];
    }
    out += '\n';
  }
  return out;
}

sdk::Result<std::vector<std::string>> read_inputs(std::string_view lines) {
  std::vector<std::string> out;
  auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    if (end == std::string_view::npos || end % 2 != 0) return sdk::failure(H5I_E_CORRUPT, "the inputs of the plan are not what was kept");
    std::string input;
    for (size_t i = 0; i < end; i += 2) {
      if (digit(lines[i]) < 0 || digit(lines[i + 1]) < 0) return sdk::failure(H5I_E_CORRUPT, "the inputs of the plan are not what was kept");
      input += static_cast<char>(digit(lines[i]) * 16 + digit(lines[i + 1]));
    }
    out.push_back(std::move(input));
    lines.remove_prefix(end + 1);
  }
  return out;
}

std::string edit_name(std::string_view text) {
  Edit e;
  if (parse_edit(text, &e)) return std::string(text.substr(0, text.find('=')));
  const size_t value = e.value.empty() && e.file.empty() ? 0 : e.value.size() + (e.file.empty() ? 0 : e.file.size() + 1);
  std::string_view name = text.substr(0, text.size() - value);
  if (name.ends_with('=')) name.remove_suffix(1);
  return std::string(name);
}

sdk::Result<std::vector<Edit>> edits_with(const Plan& plan, std::string_view input) {
  std::vector<Edit> out;
  for (const std::string& text : plan.edits) {
    Edit e;
    if (auto no = parse_edit(text, &e)) return bad(no->what);
    // From the left, and what was put in is not looked at again.
    for (size_t at = 0; (at = e.value.find(kMark, at)) != std::string::npos; at += input.size()) e.value.replace(at, kMark.size(), input);
    out.push_back(std::move(e));
  }
  return out;
}

}  // namespace h5i::websec
