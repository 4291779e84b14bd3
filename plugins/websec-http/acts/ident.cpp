#include <algorithm>

#include "plugins/websec-http/acts/list.hpp"
#include "plugins/websec-http/acts/identity.hpp"
#include "plugins/websec-http/engine/redirect.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kLines = 1 << 20;
constexpr size_t kMost = 200;

bool plain_name(std::string_view name) {
  if (name.empty() || name.size() > 64) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'; });
}

json::Value list_of(const std::vector<std::string>& words) {
  json::Value out = json::Array{};
  for (const std::string& w : words) out.push(w);
  return out;
}

std::vector<std::string> strings(const json::Value& list) {
  std::vector<std::string> out;
  for (const json::Value& v : list.array()) out.push_back(v.string());
  return out;
}

std::vector<std::string> split(const std::string& text) {
  json::Value lines = json::Array{};
  add_lines(text, lines);
  return strings(lines);
}

sdk::Result<Answer> listed(const sdk::Host& host) {
  json::Value list = json::Array{}, lines = json::Array{};
  for (const Identity& i : H5I_SDK_TRY(identities(host))) {
    list.push(json::Object{{"name", i.name}, {"headers", list_of(i.headers)}, {"secrets", list_of(i.secrets)}});
    std::string line = i.name + " ";
    for (const std::string& h : i.headers) line += " " + h;
    if (!i.secrets.empty()) line += "  with";
    for (const std::string& s : i.secrets) line += " $" + s;
    lines.push(line);
  }
  if (list.array().empty()) lines.push("no identity");
  return Answer{json::Object{{"identities", std::move(list)}, {"lines", std::move(lines)}}, 0};
}

}  // namespace

sdk::Result<std::vector<Identity>> identities(const sdk::Host& host) {
  std::vector<Identity> out;
  H5I_SDK_TRY(each_line(host, {"identity", "identity-removed"}, UINT64_MAX, [&](const json::Value& r) {
    const std::string& kind = r["kind"].string();
    const json::Value& body = r["body"];
    const std::string& name = body["name"].string();
    std::erase_if(out, [&](const Identity& i) { return i.name == name; });
    if (kind == "identity") out.push_back({name, strings(body["headers"]), strings(body["secrets"]), body["lines"].string()});
    return true;
  }));
  return out;
}

sdk::Result<Identities> Identities::of(const sdk::Host& host, const json::Value& words) {
  Identities out;
  for (const auto& [name, value] : words["secrets"].object()) out.secrets_[name] = value.string();
  out.all_ = H5I_SDK_TRY(identities(host));
  for (const Identity& i : out.all_) out.lines_[i.name] = split(H5I_SDK_TRY(host.get(i.lines, kLines)));
  return out;
}

sdk::Result<const Identity*> Identities::find(const std::string& name) const {
  for (const Identity& i : all_)
    if (i.name == name) return &i;
  return sdk::failure(H5I_E_NOT_FOUND, plain_name(name) ? "the session has no identity " + name : "that is no identity's name");
}

sdk::Status Identities::check(const std::string& name) const {
  if (name == kNobody) return {};
  for (const std::string& secret : (*H5I_SDK_TRY(find(name))).secrets)
    if (!secrets_.contains(secret)) return sdk::failure(H5I_E_NOT_FOUND, "there is no value for $" + secret);
  return {};
}

sdk::Status Identities::become(Request& request, const std::string& name, std::vector<std::string>* dropped) const {
  H5I_SDK_TRY(check(name));
  std::erase_if(request.headers.lines(), [&](const HeaderLine& h) {
    if (!is_credential(h.name())) return false;
    std::string gone(h.name());
    if (std::find(dropped->begin(), dropped->end(), gone) == dropped->end()) dropped->push_back(gone);
    return true;
  });
  if (name == kNobody) return {};
  HeaderList placed;
  for (const std::string& line : lines_.at(name)) {
    std::string filled;
    if (auto no = fill(line, secrets_, &filled)) return sdk::failure(H5I_E_NOT_FOUND, no->what);
    // The refusal of a line says what is wrong with it and never what it is.
    if (auto no = placed.add_line(filled)) return sdk::failure(H5I_E_INVALID, "a value of the identity " + name + " does not fit into a header: " + std::string(no->id));
    request.headers.remove(placed.lines().back().name());
  }
  for (HeaderLine& h : placed.lines()) request.headers.lines().push_back(std::move(h));
  return {};
}

json::Value hidden(json::Value v, const Secrets& secrets) {
  if (v.is_string()) return hide(v.string(), secrets);
  if (v.is_array())
    for (json::Value& e : v.make_array()) e = hidden(std::move(e), secrets);
  if (v.is_object())
    for (auto& [key, e] : v.make_object()) e = hidden(std::move(e), secrets);
  return v;
}

void Identities::keep_out_of(Recorder& recorder) const {
  if (!secrets_.empty()) recorder.hide([this](json::Value body) { return hidden(std::move(body)); });
}

sdk::Result<Answer> ident_act(const sdk::Host& host, const json::Value&, const json::Value& words) {
  const std::string &what = words["do"].string(), &name = words["name"].string();
  if (what == "list") return listed(host);
  if (!plain_name(name) || name == kNobody) return sdk::failure(H5I_E_INVALID, "an identity's name is [a-z0-9._-]{1,64}, and not \"none\", which is nobody");
  const std::vector<Identity> all = H5I_SDK_TRY(identities(host));
  const bool there = std::any_of(all.begin(), all.end(), [&](const Identity& i) { return i.name == name; });
  Recorder recorder(host);
  if (what == "remove") {
    if (!there) return sdk::failure(H5I_E_NOT_FOUND, "the session has no identity " + name);
    H5I_SDK_TRY(recorder.note("identity-removed", json::Object{{"name", name}}));
    return Answer{json::Object{{"name", name}, {"lines", json::Array{name + " is no identity of this session any more"}}}, 0};
  }
  if (what != "add") return sdk::failure(H5I_E_INVALID, "add, list or remove");
  if (there) return sdk::failure(H5I_E_EXISTS, "the session has an identity " + name + " already");
  if (all.size() >= kMost) return sdk::failure(H5I_E_TOO_LARGE, "a session has at most " + std::to_string(kMost) + " identities");
  const std::vector<std::string> lines = strings(words["headers"]);
  if (auto no = judge_identity(lines, is_credential)) return sdk::failure(H5I_E_INVALID, no->what);
  std::string text;
  std::vector<std::string> headers, secrets;
  for (const std::string& line : lines) {
    text += line + "\n";
    headers.push_back(line.substr(0, line.find(':')));
    for (std::string& s : placeholders(line))
      if (std::find(secrets.begin(), secrets.end(), s) == secrets.end()) secrets.push_back(std::move(s));
  }
  const std::string kept = H5I_SDK_TRY(host.put(text));
  H5I_SDK_TRY(recorder.note("identity", json::Object{{"name", name}, {"headers", list_of(headers)}, {"secrets", list_of(secrets)}, {"lines", kept}}));
  json::Value said = json::Array{};
  said.push(name + ": " + std::to_string(headers.size()) + (headers.size() == 1 ? " header" : " headers") + (secrets.empty() ? "" : ", whose values are read from the environment of each act that is theirs"));
  return Answer{json::Object{{"name", name}, {"headers", list_of(headers)}, {"secrets", list_of(secrets)}, {"lines", std::move(said)}}, 0};
}

}  // namespace h5i::websec
