#include "plugins/websec-http/scope/rule.hpp"

#include <algorithm>
#include <cstring>

#include "plugins/websec-http/url/percent.hpp"

namespace h5i::websec {
namespace {

constexpr int kRounds = 8;

sdk::Failure invalid(std::string why) { return sdk::failure(H5I_E_INVALID, "scope rule: " + std::move(why)); }

std::string_view transport(std::string_view scheme) { return scheme == "ws" ? "http" : scheme == "wss" ? "https" : scheme; }

// A last dot names the same machine in DNS and another origin in a browser.
std::string_view without_last_dot(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  return host;
}

bool is_localhost(std::string_view name) { return name == "localhost" || name.ends_with(".localhost"); }  // RFC 6761, section 6.3

bool is_port(std::string_view s) {
  return s.size() > 1 && s[0] == ':' && std::all_of(s.begin() + 1, s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Each * is any run of characters; the pieces between them are looked for in order, which is linear.
bool glob(std::string_view pattern, std::string_view text) {
  size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (;;) {
    star = pattern.find('*');
    if (star == std::string_view::npos) return text.ends_with(pattern);
    if (star > 0) {
      const void* at = memmem(text.data(), text.size(), pattern.data(), star);
      if (!at) return false;
      text.remove_prefix(static_cast<size_t>(static_cast<const char*>(at) - text.data()) + star);
    }
    pattern.remove_prefix(star + 1);
  }
}

bool matches(std::string_view pattern, std::string_view path) {
  if (pattern.find('*') != std::string_view::npos) return glob(pattern, path);
  if (!path.starts_with(pattern)) return false;
  return path.size() == pattern.size() || pattern.ends_with('/') || path[pattern.size()] == '/';
}

std::string walked(std::string_view path) {
  std::string out;
  bool directory = true;
  for (bool more = true; more;) {
    size_t slash = path.find_first_of("/\\");
    more = slash != std::string_view::npos;
    std::string_view segment = path.substr(0, slash);
    if (more) path.remove_prefix(slash + 1);
    segment = segment.substr(0, segment.find(';'));
    directory = segment.empty() || segment == "." || segment == "..";
    if (segment == ".." && !out.empty()) out.resize(out.rfind('/'));
    if (directory) continue;
    out += '/';
    out += segment;
  }
  if (out.empty() || directory) out += '/';
  return out;
}

// Each name of a path without the dots and spaces that it ends with; "." and ".." are no names.
std::string without_ends(std::string_view path) {
  std::string out;
  for (size_t at = 0; at <= path.size();) {
    size_t end = std::min(path.find_first_of("/\\", at), path.size());
    std::string_view segment = path.substr(at, end - at);
    if (segment != "." && segment != "..") segment = segment.substr(0, segment.find_last_not_of(". ") + 1);
    out += segment;
    if (end < path.size()) out += path[end];
    at = end + 1;
  }
  return out;
}

// %2f and %2F are one thing to everybody.
std::string upper_escapes(std::string_view s) {
  std::string out(s);
  for (size_t i = 0; i + 2 < out.size(); i++)
    if (out[i] == '%' && is_hex(out[i + 1]) && is_hex(out[i + 2]))
      for (size_t j = i + 1; j <= i + 2; j++)
        if (out[j] >= 'a') out[j] = static_cast<char>(out[j] - 32);
  return out;
}

sdk::Result<Place> parse_place(std::string_view text) {
  if (text == "public") return Place{Place::Kind::PUBLIC, {}};
  if (text == "loopback") return Place{Place::Kind::LOOPBACK, {}};
  if (text == "private") return Place{Place::Kind::PRIVATE, {}};
  if (auto prefix = parse_prefix(text)) return Place{Place::Kind::PREFIX, *prefix};
  if (auto address = parse_address(text)) return Place{Place::Kind::PREFIX, {*address, address->v6 ? 128 : 32}};
  return invalid("after \"at\": public, loopback, private, an address, or a prefix such as 10.1.0.0/16");
}

}  // namespace

PathReadings::PathReadings(std::string_view path) {
  all.push_back(upper_escapes(path));
  auto add = [&](std::string reading) {
    if (std::find(all.begin() + 1, all.end(), reading) == all.end()) all.push_back(std::move(reading));
  };
  // Some servers decode again what was decoded; these rounds are more than any of them makes.
  std::string decoded(path);
  for (int round = 0; round < kRounds; round++) {
    std::string next = percent_decode(decoded);
    if (round > 0 && next == decoded) break;
    add(walked(next));
    // A file system ends a name at a zero byte, or does not see the dots and spaces at its end.
    if (size_t zero = next.find('\0'); zero != std::string::npos) add(walked(next.substr(0, zero)));
    if (std::string bare = without_ends(next); bare != next) add(walked(bare));
    decoded = std::move(next);
  }
}

bool Place::admits(const Address& address, const AddressClass& its_kind) const {
  switch (kind) {
    case Kind::PUBLIC: return its_kind.reach == Reach::PUBLIC;
    case Kind::LOOPBACK: return its_kind.reach == Reach::LOOPBACK;
    case Kind::PRIVATE: return its_kind.reach == Reach::PRIVATE;
    case Kind::PREFIX: break;
  }
  if (!prefix.contains(address)) return false;
  if (prefix.length == (prefix.base.v6 ? 128 : 32)) return true;  // that very address
  return classify(prefix).name == its_kind.name && !its_kind.carries_restricted;
}

std::string Place::text() const {
  switch (kind) {
    case Kind::PUBLIC: return "public";
    case Kind::LOOPBACK: return "loopback";
    case Kind::PRIVATE: return "private";
    case Kind::PREFIX: break;
  }
  return prefix.length == (prefix.base.v6 ? 128 : 32) ? prefix.base.text() : prefix.text();
}

namespace {

std::vector<Place> usual_places(const Host& host) {
  if (host.kind != Host::Kind::DOMAIN) return {};
  return {Place{is_localhost(host.text) ? Place::Kind::LOOPBACK : Place::Kind::PUBLIC, {}}};
}

}  // namespace

std::string Rule::text() const {
  std::string out = allow ? "allow " : "deny ";
  if (!scheme.empty()) out += scheme + "://";
  out += (wildcard ? "*." : "") + host.text;
  if (port && (scheme.empty() || default_port(scheme) != port)) out += ":" + std::to_string(*port);
  out += path;
  if (places == usual_places(host)) return out;
  for (size_t i = 0; i < places.size(); i++) out += (i ? "," : " at ") + places[i].text();
  return out;
}

bool Rule::matches_host(const Host& other) const {
  if (host.kind == Host::Kind::DOMAIN) {
    if (other.kind != Host::Kind::DOMAIN) return false;
    std::string_view name = allow ? std::string_view(other.text) : without_last_dot(other.text);
    if (!wildcard) return name == host.text;
    return name.size() > host.text.size() + 1 && name.ends_with(host.text) && name[name.size() - host.text.size() - 1] == '.';
  }
  if (host == other) return true;
  // Who forbids an address forbids the forms that carry it.
  auto address = address_of(other);
  if (allow || !address) return false;
  auto inner = carried_by(*address);
  return std::find(inner.begin(), inner.end(), *address_of(host)) != inner.end();
}

Rule::Match Rule::matches_origin(const Url& url, const Host& at) const {
  if (!matches_host(at)) return Match::OTHER_HOST;
  if (!scheme.empty() && scheme != transport(url.scheme())) return Match::OTHER_SCHEME;
  if (port && port != url.effective_port()) return Match::OTHER_PORT;
  return Match::YES;
}

bool Rule::matches_path(const PathReadings& readings) const {
  if (path.empty()) return true;
  std::string decoded = walked(percent_decode(path));
  for (size_t i = 0; i < readings.all.size(); i++)
    if (matches(i == 0 ? path : decoded, readings.all[i]) != allow) return !allow;
  return allow;
}

namespace {

sdk::Result<Rule> read_rule(std::string_view text) {
  Rule rule;
  if (text.starts_with("allow ")) text.remove_prefix(6);
  else if (text.starts_with("deny ")) rule.allow = false, text.remove_prefix(5);
  else return invalid("begins with \"allow \" or \"deny \"");

  std::string_view pattern = text, where;
  if (size_t at = text.find(" at "); at != std::string_view::npos) {
    pattern = text.substr(0, at);
    where = text.substr(at + 4);
    if (!rule.allow) return invalid("\"at\" belongs to an allow: a deny holds wherever the name leads");
    if (where.empty()) return invalid("nothing after \"at\"");
  }
  // Everything that the URL parser would forgive or read as another part.
  for (char c : pattern)
    if (static_cast<unsigned char>(c) <= 0x20 || std::string_view("\\@?#\x7f").find(c) != std::string_view::npos)
      return invalid("a pattern is scheme, host, port and path, without credentials, query, fragment, backslash or space");
  if (size_t end = pattern.find("://"); end != std::string_view::npos) {
    rule.scheme = pattern.substr(0, end);
    if (rule.scheme != "http" && rule.scheme != "https") return invalid("the scheme is http or https (which ws and wss follow)");
    pattern.remove_prefix(end + 3);
  } else if (rule.allow) {
    rule.scheme = "https";
  }
  size_t slash = std::min(pattern.find('/'), pattern.size());
  std::string_view machine = pattern.substr(0, slash), path = pattern.substr(slash);
  if (machine.starts_with("*.")) {
    rule.wildcard = true;
    machine.remove_prefix(2);
  }
  if (machine.empty()) return invalid("no host");
  size_t colon = machine.starts_with('[') ? machine.find(':', std::min(machine.find(']'), machine.size())) : machine.find(':');
  bool has_port = colon != std::string_view::npos;
  if (has_port && !is_port(machine.substr(colon))) return invalid("a port is a number");
  auto url = Url::parse((rule.scheme.empty() ? "https" : rule.scheme) + "://" + std::string(machine) + std::string(path));
  if (!url) return invalid(url.error().text);
  rule.host = *url->host();
  if (rule.host.text.find('*') != std::string::npos) return invalid("* stands only before the first dot of a host, as in *.example.com, or in a path");
  if (rule.host.text.ends_with('.')) return invalid("a host is written without its last dot");
  if (rule.host.is_address() && rule.wildcard) return invalid("an address has nothing below it");
  if (rule.host.is_address() && !path.empty() && text.find("://") == std::string_view::npos && path.size() > 1 &&
      std::all_of(path.begin() + 1, path.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return invalid("a network is no host: name the addresses, or allow a name \"at\" the network");
  if (rule.allow || !rule.scheme.empty() || has_port) rule.port = url->effective_port();
  // A URL's parser would walk them, and a rule would mean more than it says.
  for (std::string_view rest = path; !rest.empty();) {
    rest.remove_prefix(1);
    std::string_view segment = rest.substr(0, rest.find('/'));
    if (std::string plain = percent_decode(percent_decode(segment)); plain == "." || plain == "..") return invalid("a path with . or .. in it: write where it leads");
    rest.remove_prefix(segment.size());
  }
  if (!path.empty()) {
    rule.path = upper_escapes(url->path());
    if (rule.path.find("%2A") != std::string::npos) return invalid("%2A in a path: * is never a character of a path here");
  }

  rule.places = rule.allow ? usual_places(rule.host) : std::vector<Place>();
  if (where.empty()) return rule;
  if (rule.host.is_address()) return invalid("an address is where it is: \"at\" belongs to a name");
  rule.places.clear();
  for (bool more = true; more;) {
    size_t comma = where.find(',');
    more = comma != std::string_view::npos;
    if (rule.places.size() == kMaxPlaces) return sdk::failure(H5I_E_TOO_LARGE, "scope rule: more than " + std::to_string(kMaxPlaces) + " places");
    rule.places.push_back(H5I_SDK_TRY(parse_place(where.substr(0, comma))));
    if (more) where.remove_prefix(comma + 1);
  }
  std::sort(rule.places.begin(), rule.places.end(), [](const Place& a, const Place& b) { return a.text() < b.text(); });
  rule.places.erase(std::unique(rule.places.begin(), rule.places.end()), rule.places.end());
  return rule;
}

}  // namespace

sdk::Result<Rule> parse_rule(std::string_view text) {
  sdk::Failure too_long = sdk::failure(H5I_E_TOO_LARGE, "scope rule: longer than " + std::to_string(kMaxRule) + " bytes");
  if (text.size() > kMaxRule) return too_long;
  Rule rule = H5I_SDK_TRY(read_rule(text));
  if (rule.text().size() > kMaxRule) return too_long;  // percent-encoding made it so, and its text must read back
  return rule;
}

}  // namespace h5i::websec
