#include "plugins/websec-http/candidates/candidates.hpp"

#include <algorithm>
#include <set>

#include "h5i/json.hpp"
#include "plugins/websec-http/candidates/json_cursor.hpp"
#include "plugins/websec-http/candidates/yaml_tree.hpp"
#include "plugins/websec-http/url/url.hpp"
#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

bool is_token(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c > 0x20 && c < 0x7f && std::string_view("\"(),/:;<=>?@[\\]{}").find(c) == std::string_view::npos; });
}

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// What every format's entries go through.
class Gathering {
 public:
  explicit Gathering(const CandidateLimits& limits) : limits_(limits) {}

  // False: enough were looked at.
  bool look() {
    if (looked_ == limits_.entries) out.cut = true;
    return looked_++ < limits_.entries;
  }
  void add(std::string method, const std::string& url, const std::vector<std::string>& headers, uint64_t place) {
    if (method.size() > limits_.method || !is_token(method)) return leave_out("method");
    if (url.size() > limits_.url) return leave_out("url-too-long");
    auto parsed = Url::parse(to_valid_utf8(url));
    if (!parsed.ok() || !parsed->host()) return leave_out("url");
    if (parsed->has_credentials()) return leave_out("url-credentials");
    if (parsed->scheme() != "http" && parsed->scheme() != "https") return leave_out("scheme");
    Candidate c{std::move(method), parsed->href_without_fragment(), {}, place};
    if (c.url.size() > limits_.url) return leave_out("url-too-long");
    if (!known_.insert(c.method + " " + c.url).second) return leave_out("duplicate");
    std::set<std::string> seen;
    for (const std::string& name : headers)
      if (c.headers.size() < limits_.headers && name.size() <= limits_.header_name && is_token(name) && seen.insert(lower(name)).second) c.headers.push_back(name);
    out.candidates.push_back(std::move(c));
  }
  const CandidateLimits& limits() const { return limits_; }
  Imported out;

 private:
  void leave_out(const char* why) { out.left_out[why]++; }
  CandidateLimits limits_;
  std::set<std::string> known_;
  size_t looked_ = 0;
};

void read_har(std::string_view file, Gathering& g) {
  const CandidateLimits& l = g.limits();
  JsonCursor in(file);
  bool entries_seen = false;
  uint64_t place = 0;
  auto header = [&](std::vector<std::string>& names) {
    return in.object([&](const std::string& key) {
      std::string name;
      if (key != "name") return in.skip();
      if (!in.string(&name, l.header_name + 1)) return false;
      // HTTP/2 as browsers export it: ":authority" and such are no headers.
      if (names.size() < 2 * l.headers && !name.starts_with(':')) names.push_back(std::move(name));
      return true;
    });
  };
  auto entry = [&] {
    place++;
    if (!g.look()) return in.skip();
    std::string method, url;
    std::vector<std::string> names;
    bool request = false;
    bool good = in.object([&](const std::string& key) {
      if (key != "request" || request) return in.skip();
      request = true;
      return in.object([&](const std::string& part) {
        if (part == "method") return in.string(&method, l.method + 1);
        if (part == "url") return in.string(&url, l.url + 1);
        if (part == "headers") return in.array([&] { return header(names); });
        return in.skip();
      });
    });
    if (good) g.add(std::move(method), url, names, place);
    return good;
  };
  bool good = in.peek() == '{' && in.object([&](const std::string& key) {
    if (key != "log") return in.skip();
    return in.object([&](const std::string& part) {
      if (part != "entries" || in.peek() != '[') return in.skip();
      entries_seen = true;
      return in.array(entry);
    });
  });
  if (!good || !in.finished()) g.out.error = "no JSON from byte " + std::to_string(in.offset()) + " on, or deeper than " + std::to_string(JsonCursor::kMaxDepth);
  else if (!entries_seen) g.out.error = "no HAR: there is no log with entries";
}

void read_urls(std::string_view file, Gathering& g) {
  uint64_t place = 0;
  for (size_t at = 0; at < file.size();) {
    size_t end = std::min(file.find('\n', at), file.size());
    std::string_view line = file.substr(at, end - at);
    at = end + 1;
    place++;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (line.empty() || line.front() == '#') continue;
    if (!g.look()) return;
    g.add("GET", std::string(line.substr(0, g.limits().url + 1)), {}, place);
  }
}

class OpenApi {
 public:
  OpenApi(const json::Value& root, Gathering& g) : root_(root), g_(g) {}

  void read() {
    if (!root_["openapi"].string().starts_with("3.")) {
      g_.out.error = "no OpenAPI 3: the member \"openapi\" is not 3.x";
      return;
    }
    const std::vector<std::string> base = servers(root_["servers"]);
    // Looked at once each: a reference costs no walk through a large object.
    for (const auto& [name, p] : root_["components"]["parameters"].object()) shared_[name] = parameter(p);
    for (const auto& [path, item] : root_["paths"].object())
      for (const auto& [verb, operation] : item.object()) {
        static constexpr std::string_view kVerbs[] = {"get", "put", "post", "delete", "options", "head", "patch", "trace"};
        if (std::find(std::begin(kVerbs), std::end(kVerbs), verb) == std::end(kVerbs)) continue;
        std::vector<std::string> at = servers(operation["servers"]);
        if (at.empty()) at = servers(item["servers"]);
        if (at.empty()) at = base;
        if (at.empty()) {
          g_.out.left_out["no-absolute-server"]++;
          continue;
        }
        for (const std::string& server : at) {
          place_++;
          if (!g_.look()) return;
          one(verb, server, path, item, operation);
        }
      }
  }

 private:
  static constexpr size_t kMostServers = 20, kMostParameters = 200;

  std::vector<std::string> servers(const json::Value& list) const {
    std::vector<std::string> out;
    for (const json::Value& s : list.array()) {
      std::string url = s["url"].string();
      if (url.size() > g_.limits().url || out.size() == kMostServers) continue;
      std::map<std::string, std::string> values;
      for (const auto& [name, v] : s["variables"].object()) values[name] = v["default"].string();
      url = filled(url, values);
      while (url.ends_with('/')) url.pop_back();
      if (Url::parse(url).ok()) out.push_back(std::move(url));
    }
    return out;
  }

  // "{name}" as its value; bounded by what a URL may be.
  std::string filled(std::string_view text, const std::map<std::string, std::string>& values) const {
    std::string out;
    for (size_t i = 0; i < text.size() && out.size() <= g_.limits().url;) {
      size_t close = text[i] == '{' ? text.find('}', i) : std::string_view::npos;
      if (close == std::string_view::npos) {
        out += text[i++];
        continue;
      }
      const std::string name(text.substr(i + 1, close - i - 1));
      auto at = values.find(name);
      out += at == values.end() || at->second.empty() ? name : at->second;
      i = close + 1;
    }
    return out;
  }

  struct Parameter {
    std::string name, in, example;
    bool required = false;
  };
  Parameter parameter(const json::Value& p) const {
    Parameter out{p["name"].string(), p["in"].string(), "", p["required"].boolean()};
    if (out.name.size() > g_.limits().header_name) out.name.clear();
    out.example = example_of(p).substr(0, g_.limits().url);
    return out;
  }
  // One step along a reference into this document.
  const Parameter& meant(const json::Value& v, Parameter& own) const {
    static constexpr std::string_view kHere = "#/components/parameters/";
    const std::string& ref = v["$ref"].string();
    if (ref.starts_with(kHere))
      if (auto at = shared_.find(std::string_view(ref).substr(kHere.size())); at != shared_.end()) return at->second;
    return own = parameter(v);
  }

  static std::string example_of(const json::Value& parameter) {
    for (const json::Value* v : {&parameter["example"], &parameter["schema"]["example"], &parameter["schema"]["default"]}) {
      if (v->is_string()) return v->string();
      if (v->is_int()) return std::to_string(v->integer());
    }
    const std::string& type = parameter["schema"]["type"].string();
    return type == "integer" || type == "number" ? "1" : parameter["name"].string();
  }

  static std::string encoded(std::string_view text) {
    std::string out;
    for (char c : text) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
      if (plain) {
        out += c;
      } else {
        out += '%';
        out += "0123456789ABCDEF"[static_cast<unsigned char>(c) >> 4];
        out += "0123456789ABCDEF"[static_cast<unsigned char>(c) & 15];
      }
    }
    return out;
  }

  void one(const std::string& verb, const std::string& server, const std::string& path, const json::Value& item, const json::Value& operation) {
    std::map<std::string, std::string> in_path;
    std::string query;
    std::vector<std::string> headers;
    size_t parameters = 0;
    for (const json::Value* list : {&item["parameters"], &operation["parameters"]})
      for (const json::Value& raw : list->array()) {
        if (++parameters > kMostParameters) break;
        Parameter own;
        const Parameter& p = meant(raw, own);
        if (p.name.empty()) continue;
        if (p.in == "path") in_path[p.name] = encoded(p.example);
        else if (p.in == "header") headers.push_back(p.name);
        else if (p.in == "query" && p.required && query.size() <= g_.limits().url) query += (query.empty() ? "?" : "&") + encoded(p.name) + "=" + encoded(p.example);
      }
    if (!operation["requestBody"].is_null()) headers.push_back("Content-Type");
    std::string method = verb;
    for (char& c : method) c = static_cast<char>(c - 'a' + 'A');
    g_.add(std::move(method), server + (path.starts_with('/') ? "" : "/") + filled(path, in_path) + query, headers, place_);
  }

  const json::Value& root_;
  Gathering& g_;
  std::map<std::string, Parameter, std::less<>> shared_;
  uint64_t place_ = 0;
};

// The tree's reader looks for a key that is there twice, which in an object of very many members takes long.
constexpr size_t kMostMembers = 4000;
bool few_members(JsonCursor& in) {
  size_t members = 0;
  switch (in.peek()) {
    case '{': return in.object([&](const std::string&) { return ++members <= kMostMembers && few_members(in); });
    case '[': return in.array([&] { return few_members(in); });
    default: return in.skip();
  }
}

void read_openapi(std::string_view file, Gathering& g) {
  if (file.size() > g.limits().openapi_bytes) {
    g.out.error = "a description of " + std::to_string(file.size()) + " bytes, at most " + std::to_string(g.limits().openapi_bytes);
    return;
  }
  if (const size_t first = file.find_first_not_of(" \t\r\n"); first == std::string_view::npos || file[first] != '{') {
    YamlTree tree = yaml_tree(file, {.members = kMostMembers});
    if (!tree.root) {
      g.out.error = tree.error;
      return;
    }
    if (tree.aliases > 0) g.out.left_out["alias"] += tree.aliases;
    OpenApi(*tree.root, g).read();
    return;
  }
  if (JsonCursor in(file); !few_members(in)) {
    g.out.error = "no JSON, deeper than " + std::to_string(JsonCursor::kMaxDepth) + ", or an object of more than " + std::to_string(kMostMembers) + " members, at byte " + std::to_string(in.offset());
    return;
  }
  json::ParseError why;
  auto root = json::parse(file, &why);
  if (!root) g.out.error = "no JSON from byte " + std::to_string(why.offset) + " on: " + why.message;
  else OpenApi(*root, g).read();
}

}  // namespace

std::optional<CandidateFormat> candidate_format(std::string_view name) {
  if (name == "har") return CandidateFormat::HAR;
  if (name == "openapi") return CandidateFormat::OPENAPI;
  if (name == "urls") return CandidateFormat::URLS;
  return std::nullopt;
}

Imported read_candidates(CandidateFormat format, std::string_view file, const CandidateLimits& limits) {
  Gathering g(limits);
  if (file.size() > limits.bytes) g.out.error = "a file of " + std::to_string(file.size()) + " bytes, at most " + std::to_string(limits.bytes);
  else if (format == CandidateFormat::HAR) read_har(file, g);
  else if (format == CandidateFormat::OPENAPI) read_openapi(file, g);
  else read_urls(file, g);
  if (!g.out.error.empty()) g.out.candidates.clear();
  return std::move(g.out);
}

}  // namespace h5i::websec
