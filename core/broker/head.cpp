#include "core/broker/head.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace h5i::broker {
namespace {

constexpr size_t kMaxMethod = 32;
constexpr int kMaxSizeDigits = 15;  // of a chunk: no number of that many overflows

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return lower(c); });
  return out;
}
bool digit(char c) { return c >= '0' && c <= '9'; }
bool token_char(char c) {
  return digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool token(std::string_view s) { return !s.empty() && std::all_of(s.begin(), s.end(), token_char); }
bool visible(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}
std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// Every line ends in CRLF and neither of the two stands alone; no NUL. The end of the head, or npos.
size_t head_end(std::string_view bytes, std::string_view* fault) {
  for (size_t i = 0; i < bytes.size(); i++) {
    if (bytes[i] == '\0') return *fault = "field", std::string_view::npos;
    if (bytes[i] == '\n' && (i == 0 || bytes[i - 1] != '\r')) return *fault = "bare-line-end", std::string_view::npos;
    if (bytes[i] == '\r' && i + 1 < bytes.size() && bytes[i + 1] != '\n') return *fault = "bare-line-end", std::string_view::npos;
    if (bytes[i] == '\n' && i >= 3 && bytes[i - 2] == '\n') return i + 1;
  }
  return std::string_view::npos;
}

std::string_view request_line(std::string_view line, RequestHead& head, std::string& target) {
  size_t a = line.find(' '), b = line.rfind(' ');
  if (a == std::string_view::npos || a == b) return "request-line";
  std::string_view method = line.substr(0, a), where = line.substr(a + 1, b - a - 1), version = line.substr(b + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return "version";
  if (!token(method) || method.size() > kMaxMethod) return "method";
  if (where.empty() || !visible(where)) return "target";
  head.method = method;
  head.connect = method == "CONNECT";
  head.http10 = version == "HTTP/1.0";
  if (method == "TRACE") return "method";  // it would show what is meant for the origin alone
  target = where;
  return {};
}

// Authority-form for CONNECT, absolute-form for the rest (RFC 9112 section 3.2): a request for this host itself names none.
std::string_view read_target(std::string_view where, RequestHead& head) {
  std::string_view authority = where;
  if (!head.connect) {
    if (lower(where.substr(0, 7)) != "http://") return "target";
    where.remove_prefix(7);
    size_t end = std::min(where.find_first_of("/?"), where.size());
    authority = where.substr(0, end);
    head.path = where.substr(end);
    if (head.path.find('#') != std::string::npos) return "target";
    if (head.path.empty() || head.path[0] == '?') head.path.insert(0, "/");
  }
  auto t = parse_target(authority, head.connect ? 0 : 80);
  if (!t) return "target";
  head.target = std::move(*t);
  return {};
}

struct Framing {
  std::optional<std::string> host, length, coding;
  std::set<std::string> of_connection;
};

std::string_view field_line(std::string_view line, RequestHead& head, Framing& framing) {
  size_t colon = line.find(':');
  if (colon == std::string_view::npos || !token(line.substr(0, colon))) return "field";  // also white space before the colon, and folded lines
  std::string name = lower(line.substr(0, colon));
  std::string_view value = trimmed(line.substr(colon + 1));
  for (char c : value)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) return "field";
  auto once = [&](std::optional<std::string>& to, std::string_view fault) -> std::string_view {
    if (to) return fault;
    to = value;
    return {};
  };
  if (name == "host") return once(framing.host, "host");
  if (name == "content-length") return once(framing.length, "length");
  if (name == "transfer-encoding") return once(framing.coding, "coding");
  if (name == "upgrade" || name == "http2-settings") return "upgrade";
  if (name == "connection" || name == "proxy-connection") {
    for (std::string_view rest = value; !rest.empty();) {
      size_t comma = std::min(rest.find(','), rest.size());
      std::string one = lower(trimmed(rest.substr(0, comma)));
      if (!one.empty() && !token(one)) return "field";
      if (one == "host" || one == "content-length" || one == "transfer-encoding") return "field";
      framing.of_connection.insert(one);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return {};
  }
  head.fields.push_back({std::string(line.substr(0, colon)), std::string(value)});
  return {};
}

std::string_view settle(RequestHead& head, const Framing& framing) {
  // One place only, whoever reads it: the authority in the request line and the Host field are one.
  if (!framing.host && !head.http10) return "host";
  if (framing.host) {
    auto host = parse_target(*framing.host, head.connect ? 443 : 80);
    // A CONNECT's Host often leaves out the port, whatever it is.
    if (!host || host->host_text() != head.target.host_text()) return "host";
    if (host->port != head.target.port && !(head.connect && *framing.host == head.target.host_text())) return "host";
  }
  if (framing.coding) {
    if (framing.length || head.http10 || head.connect || lower(*framing.coding) != "chunked") return "coding";
    head.body = RequestHead::Body::CHUNKED;
  }
  if (framing.length) {
    const std::string& n = *framing.length;
    if (head.connect || n.empty() || n.size() > 18 || !std::all_of(n.begin(), n.end(), digit)) return "length";
    for (char c : n) head.length = head.length * 10 + static_cast<uint64_t>(c - '0');
    head.body = head.length ? RequestHead::Body::LENGTH : RequestHead::Body::NONE;
  }
  // What is said to the next hop, or to a proxy, stays here (RFC 9110 section 7.6.1).
  auto stays = [&](const RequestHead::Field& f) {
    std::string name = lower(f.name);
    return framing.of_connection.count(name) || name.rfind("proxy-", 0) == 0 || name == "keep-alive" || name == "te" || name == "trailer";
  };
  head.fields.erase(std::remove_if(head.fields.begin(), head.fields.end(), stays), head.fields.end());
  if (framing.length) head.fields.push_back({"Content-Length", *framing.length});
  if (framing.coding) head.fields.push_back({"Transfer-Encoding", "chunked"});
  return {};
}

}  // namespace

std::string RequestHead::to_origin() const {
  std::string out = method + " " + path + (http10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
  out += "Host: " + target.host_text() + (target.port == 80 ? "" : ":" + std::to_string(target.port)) + "\r\n";
  for (const Field& f : fields) out += f.name + ": " + f.value + "\r\n";
  return out + "Connection: close\r\n\r\n";
}

HeadRead read_head(std::string_view bytes) {
  HeadRead out;
  std::string_view seen = bytes.substr(0, kMaxHead);
  size_t end = head_end(seen, &out.fault);
  if (end == std::string_view::npos) {
    if (out.fault.empty() && bytes.size() >= kMaxHead) out.fault = "too-long";
    return out;
  }
  std::string_view lines = seen.substr(0, end - 2);
  Framing framing;
  std::string target;
  bool first = true;
  for (size_t count = 0; !lines.empty() && out.fault.empty(); count++) {
    size_t cut = lines.find("\r\n");
    std::string_view line = lines.substr(0, cut);
    lines.remove_prefix(cut + 2);
    if (first) out.fault = request_line(line, out.head, target);
    else out.fault = count > kMaxFields ? "too-many-fields" : field_line(line, out.head, framing);
    first = false;
  }
  if (first) out.fault = "request-line";
  if (out.fault.empty()) out.fault = read_target(target, out.head);
  if (out.fault.empty()) out.fault = settle(out.head, framing);
  if (out.fault.empty()) out.used = end;
  return out;
}

size_t ChunkWatch::take(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size() && state_ != State::END && state_ != State::BROKEN) {
    if (state_ == State::DATA) {
      size_t n = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size() - i));
      left_ -= n;
      i += n;
      if (left_ == 0) state_ = State::DATA_CR;
      continue;
    }
    char c = bytes[i], l = lower(c);
    auto expect = [&](char want, State next) { state_ = c == want ? next : State::BROKEN; };
    switch (state_) {
      case State::SIZE:
        if (digit(c) || (l >= 'a' && l <= 'f')) {
          left_ = left_ * 16 + static_cast<uint64_t>(digit(c) ? c - '0' : l - 'a' + 10);
          if (++digits_ > kMaxSizeDigits) state_ = State::BROKEN;
        } else {
          state_ = c == '\r' && digits_ > 0 ? State::SIZE_LF : State::BROKEN;
        }
        break;
      case State::SIZE_LF:
        expect('\n', left_ ? State::DATA : State::LAST_CR);
        digits_ = 0;
        break;
      case State::DATA_CR: expect('\r', State::DATA_LF); break;
      case State::DATA_LF: expect('\n', State::SIZE); break;
      case State::LAST_CR: expect('\r', State::LAST_LF); break;
      case State::LAST_LF: expect('\n', State::END); break;
      default: break;
    }
    if (state_ != State::BROKEN) i++;
  }
  return i;
}

}  // namespace h5i::broker
