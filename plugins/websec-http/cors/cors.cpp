#include "plugins/websec-http/cors/cors.hpp"

#include <algorithm>
#include <optional>

namespace h5i::websec {
namespace {

constexpr size_t kMaxValue = 128, kMaxValues = 1024;       // bytes of one safelisted value, and of all
constexpr int64_t kUsualLifetime = 5, kMaxLifetimeOfPreflight = 7200;  // seconds

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alnum(char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); }
bool is_token(std::string_view s) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !s.empty() && std::all_of(s.begin(), s.end(), [&](char c) { return is_alnum(c) || kMarks.find(c) != std::string_view::npos; });
}

std::string lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

std::string_view trimmed(std::string_view s, std::string_view blanks = " \t") {
  size_t first = s.find_first_not_of(blanks);
  return first == std::string_view::npos ? std::string_view() : s.substr(first, s.find_last_not_of(blanks) - first + 1);
}

bool is_unsafe_byte(char c) {
  auto b = static_cast<unsigned char>(c);
  return (b < 0x20 && b != 0x09) || b == 0x7f || std::string_view("\"():<>?@[\\]{}").find(c) != std::string_view::npos;
}

// "text/plain" of "Text/Plain;charset=x"; "" when it is no media type.
std::string essence(std::string_view value) {
  value = trimmed(value, " \t\r\n");
  size_t slash = value.find('/');
  if (slash == std::string_view::npos) return "";
  std::string_view type = value.substr(0, slash), rest = value.substr(slash + 1);
  std::string_view subtype = trimmed(rest.substr(0, rest.find(';')), " \t\r\n");
  return is_token(type) && is_token(subtype) ? lower(type) + "/" + lower(subtype) : "";
}

// "bytes=0-" or "bytes=0-99", one range that says where it begins.
bool is_simple_range(std::string_view value) {
  constexpr std::string_view kUnit = "bytes=";
  if (!value.starts_with(kUnit)) return false;
  value.remove_prefix(kUnit.size());
  size_t dash = value.find('-');
  if (dash == std::string_view::npos || dash == 0) return false;
  std::string_view first = value.substr(0, dash), last = value.substr(dash + 1);
  if (!std::all_of(first.begin(), first.end(), is_digit) || !std::all_of(last.begin(), last.end(), is_digit)) return false;
  if (last.empty()) return true;
  auto digits = [](std::string_view s) { return s.substr(std::min(s.find_first_not_of('0'), s.size() - 1)); };
  first = digits(first), last = digits(last);
  return first.size() != last.size() ? first.size() < last.size() : first <= last;
}

// All values of a name, joined as Fetch's "get" does; none when there is no such field.
std::optional<std::string> joined(const Fields& fields, std::string_view lower_name) {
  std::optional<std::string> out;
  for (const Field& f : fields)
    if (lower(f.name) == lower_name) out = out ? *out + ", " + std::string(trimmed(f.value)) : std::string(trimmed(f.value));
  return out;
}

// The list of tokens of a name; empty when there is no such field, none when it cannot be read.
std::optional<std::vector<std::string>> tokens(const Fields& fields, std::string_view lower_name) {
  std::vector<std::string> out;
  auto value = joined(fields, lower_name);
  std::string_view rest = value ? std::string_view(*value) : std::string_view();
  while (!rest.empty()) {
    size_t comma = std::min(rest.find(','), rest.size());
    std::string_view token = trimmed(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (token.empty()) continue;
    if (!is_token(token)) return {};
    out.emplace_back(token);
  }
  return out;
}

bool has(const std::vector<std::string>& list, std::string_view s) { return std::find(list.begin(), list.end(), s) != list.end(); }

CorsVerdict refuse(std::string why) { return {false, std::move(why)}; }

CorsVerdict check_origin(const DocumentRequest& request, const Fields& response) {
  auto allowed = joined(response, "access-control-allow-origin");
  if (!allowed) return refuse("no Access-Control-Allow-Origin");
  if (!request.credentials && *allowed == "*") return {true, "every origin may read it"};
  if (*allowed == "*") return refuse("Access-Control-Allow-Origin is *, which does not hold for a request with credentials");
  if (*allowed != request.document.text()) return refuse("Access-Control-Allow-Origin names another origin than " + request.document.text());
  if (request.credentials && joined(response, "access-control-allow-credentials") != "true") return refuse("Access-Control-Allow-Credentials is not true");
  return {true, "Access-Control-Allow-Origin names the origin"};
}

}  // namespace

bool is_safelisted_method(std::string_view method) { return method == "GET" || method == "HEAD" || method == "POST"; }

bool is_safelisted_field(const Field& field) {
  if (field.value.size() > kMaxValue) return false;
  std::string name = lower(field.name);
  std::string_view value = field.value;
  if (name == "accept") return std::none_of(value.begin(), value.end(), is_unsafe_byte);
  if (name == "accept-language" || name == "content-language")
    return std::all_of(value.begin(), value.end(), [](char c) { return is_alnum(c) || std::string_view(" *,-.;=").find(c) != std::string_view::npos; });
  if (name == "content-type") {
    if (std::any_of(value.begin(), value.end(), is_unsafe_byte)) return false;
    std::string type = essence(value);
    return type == "application/x-www-form-urlencoded" || type == "multipart/form-data" || type == "text/plain";
  }
  return name == "range" && is_simple_range(value);
}

std::vector<std::string> unsafe_names(const Fields& fields) {
  std::vector<std::string> out, safelisted;
  size_t bytes = 0;
  for (const Field& f : fields) {
    bool safe = is_safelisted_field(f);
    (safe ? safelisted : out).push_back(lower(f.name));
    if (safe) bytes += f.value.size();
  }
  if (bytes > kMaxValues) out.insert(out.end(), safelisted.begin(), safelisted.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

CorsPlan plan_cors(const DocumentRequest& request) {
  CorsPlan plan;
  plan.origin = request.document.text();
  if (request.url && request.document.same(request.url->origin())) return plan;
  plan.kind = CorsPlan::Kind::SIMPLE;
  if (!is_safelisted_method(request.method)) plan.because.push_back("method " + std::string(request.method));
  for (const std::string& name : unsafe_names(request.fields)) {
    plan.because.push_back("field " + name);
    plan.request_headers += (plan.request_headers.empty() ? "" : ",") + name;
  }
  if (plan.because.empty()) return plan;
  plan.kind = CorsPlan::Kind::PREFLIGHT;
  plan.request_method = request.method;
  return plan;
}

CorsVerdict check_response(const DocumentRequest& request, const Fields& response) {
  if (request.url && request.document.same(request.url->origin())) return {true, "the same origin"};
  return check_origin(request, response);
}

CorsVerdict check_preflight(const DocumentRequest& request, int status, const Fields& response) {
  if (CorsVerdict origin = check_origin(request, response); !origin.allowed) return origin;
  if (status < 200 || status > 299) return refuse("the preflight was answered with status " + std::to_string(status));
  auto methods = tokens(response, "access-control-allow-methods"), names = tokens(response, "access-control-allow-headers");
  if (!methods) return refuse("Access-Control-Allow-Methods is no list of methods");
  if (!names) return refuse("Access-Control-Allow-Headers is no list of names");
  auto any = [&](const std::vector<std::string>& list) { return !request.credentials && has(list, "*"); };
  if (!is_safelisted_method(request.method) && !has(*methods, request.method) && !any(*methods))
    return refuse("Access-Control-Allow-Methods is without " + std::string(request.method));
  for (std::string& name : *names) name = lower(name);
  for (const std::string& name : unsafe_names(request.fields))
    if (!has(*names, name) && (name == "authorization" || !any(*names))) return refuse("Access-Control-Allow-Headers is without " + name);
  return {true, "the preflight allows it"};
}

int64_t preflight_lifetime(const Fields& response) {
  auto value = joined(response, "access-control-max-age");
  if (!value || value->empty() || !std::all_of(value->begin(), value->end(), is_digit)) return kUsualLifetime;
  int64_t seconds = 0;
  for (char c : *value) seconds = std::min(kMaxLifetimeOfPreflight, seconds * 10 + (c - '0'));
  return seconds;
}

}  // namespace h5i::websec
