#include "plugins/websec-http/http/request.hpp"

#include <algorithm>
#include <charconv>

#include "plugins/websec-http/http/chunked.hpp"
#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

constexpr std::string_view kRaw = "; exact bytes are sent with --raw";

bool visible(std::string_view s) {
  for (char c : s)
    if (c <= ' ' || c > '~') return false;
  return true;
}

Refused refuse(std::string_view id, std::string what) { return Refusal{id, std::move(what) + std::string(kRaw)}; }

Refused judge_target(const Request& r) {
  if (!visible(r.target) || !visible(r.authority) || !visible(r.scheme))
    return refuse("target-bytes", "a request target holds visible ASCII characters only; percent-encode the others");
  if (r.target.find('#') != std::string::npos) return refuse("target-fragment", "a fragment is not sent");
  switch (r.form) {
    case TargetForm::ORIGIN:
      if (r.target.empty() || r.target[0] != '/') return refuse("target-form", "a path begins with a slash");
      break;
    case TargetForm::ABSOLUTE:
      if (r.authority.empty() || r.scheme.empty() || (!r.target.empty() && r.target[0] != '/' && r.target[0] != '?'))
        return refuse("target-form", "an absolute target needs a scheme, a host and a path");
      break;
    case TargetForm::AUTHORITY:
      if (r.method != "CONNECT" || r.authority.find(':') == std::string::npos)
        return refuse("target-form", "host and port as a target belong to CONNECT alone");
      break;
    case TargetForm::ASTERISK:
      if (r.method != "OPTIONS") return refuse("target-form", "* as a target belongs to OPTIONS alone");
      break;
  }
  if (r.method == "CONNECT" && r.form != TargetForm::AUTHORITY)
    return refuse("target-form", "CONNECT takes host and port as its target");
  return std::nullopt;
}

// Whether the last transfer coding named is chunked.
bool ends_chunked(const HeaderList& headers) {
  bool last = false;
  for (const HeaderLine& h : headers.lines())
    if (syntax::same(h.name(), "transfer-encoding"))
      syntax::each_element(h.value(), [&](std::string_view e) {
        if (!e.empty()) last = syntax::same(e, "chunked");
      });
  return last;
}

// Methods whose content has a meaning: without a body they say Content-Length: 0 (RFC 9110 section 8.6).
bool expects_body(std::string_view method) { return method == "POST" || method == "PUT" || method == "PATCH"; }

void append_number(std::string* out, uint64_t n, int base = 10) {
  char digits[24];
  auto end = std::to_chars(digits, digits + sizeof digits, n, base);
  out->append(digits, end.ptr);
}

}  // namespace

Refused write_request(const Request& r, Written* out) {
  if (!syntax::token(r.method)) return refuse("method", "a method is a token");
  if (r.minor != 0 && r.minor != 1) return refuse("version", "a version is HTTP/1.0 or HTTP/1.1");
  if (auto no = judge_target(r)) return no;
  const HeaderLine *host = nullptr, *length = nullptr;
  bool transfer = false;
  size_t bytes = r.method.size() + r.scheme.size() + r.authority.size() * 2 + r.target.size() + 64;
  for (const HeaderLine& h : r.headers.lines()) {
    bytes += h.line().size() + 2;
    if (syntax::same(h.name(), "host")) host = &h;
    if (syntax::same(h.name(), "content-length")) length = &h;
    if (syntax::same(h.name(), "transfer-encoding")) transfer = true;
  }
  if (length && transfer) return refuse("te-and-cl", "Content-Length and Transfer-Encoding are not sent together");
  if (transfer && r.minor == 0) return refuse("te-on-1.0", "HTTP/1.0 knows no Transfer-Encoding");
  if (!host && r.minor == 1 && r.authority.empty()) return refuse("no-host", "without a Host header the host must be known");

  out->head.clear();
  out->framed.clear();
  out->computed.clear();
  out->notes.clear();
  out->head.reserve(bytes);
  std::string& head = out->head;
  head.append(r.method).push_back(' ');
  switch (r.form) {
    case TargetForm::ORIGIN: head.append(r.target); break;
    case TargetForm::ABSOLUTE: head.append(r.scheme).append("://").append(r.authority).append(r.target); break;
    case TargetForm::AUTHORITY: head.append(r.authority); break;
    case TargetForm::ASTERISK: head.push_back('*'); break;
  }
  head.append(r.minor == 1 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
  auto computed = [&](std::string line) {
    head.append(line).append("\r\n");
    out->computed.push_back(std::move(line));
  };
  if (!host && !r.authority.empty()) computed("Host: " + r.authority);
  for (const HeaderLine& h : r.headers.lines()) head.append(h.line()).append("\r\n");
  if (!length && !transfer && (r.body || expects_body(r.method)))
    computed("Content-Length: " + std::to_string(r.body ? r.body->size() : 0));
  head.append("\r\n");

  if (transfer && ends_chunked(r.headers)) {
    std::string_view body = r.body ? std::string_view(*r.body) : std::string_view();
    out->framed.reserve(body.size() + 32);
    if (!body.empty()) {
      append_number(&out->framed, body.size(), 16);
      out->framed.append("\r\n").append(body).append("\r\n");
    }
    out->framed.append("0\r\n\r\n");
    out->body = out->framed;
  } else {
    out->body = r.body ? std::string_view(*r.body) : std::string_view();
    if (transfer) out->notes.push_back("body-unframed");
    if (length && length->value() != std::to_string(out->body.size())) out->notes.push_back("content-length-differs");
  }
  return std::nullopt;
}

RawSplit split_raw(std::string_view bytes) {
  RawSplit out;
  for (size_t at = 0; at < bytes.size();) {
    size_t lf = bytes.find('\n', at);
    if (lf == std::string_view::npos) break;
    bool empty = lf == at || (lf == at + 1 && bytes[at] == '\r');
    at = lf + 1;
    if (!empty) continue;
    out.whole_head = true;
    out.head = bytes.substr(0, at);
    out.body = bytes.substr(at);
    break;
  }
  if (!out.whole_head) out.head = bytes;
  out.method = out.head.substr(0, out.head.find_first_of(" \t\r\n"));
  return out;
}

Refused fix_content_length(std::string* bytes) {
  RawSplit split = split_raw(*bytes);
  size_t head = split.head.size();
  std::string length = std::to_string(split.body.size()), out;
  bool any = false;
  for (size_t at = 0; at < head;) {
    size_t next = std::min(bytes->find('\n', at), head - 1) + 1;
    std::string_view line = std::string_view(*bytes).substr(at, next - at);
    size_t colon = line.find(':'), end = line.find_last_not_of(" \t\r\n") + 1;
    if (at > 0 && colon != std::string_view::npos && syntax::same(syntax::trimmed(line.substr(0, colon)), "content-length")) {
      size_t value = std::min(line.find_first_not_of(" \t", colon + 1), std::max(end, colon + 1));
      out.append(line.substr(0, value)).append(length).append(line.substr(std::max(end, value)));
      any = true;
    } else {
      out.append(line);
    }
    at = next;
  }
  if (!any || !split.whole_head) return Refusal{"no-length", "there is no Content-Length in a head that ends"};
  bytes->replace(0, head, out);
  return std::nullopt;
}

Refused read_request(std::string_view head, std::string_view body, std::string_view scheme, Request* out) {
  auto no = [](std::string what) { return Refusal{"not-structured", std::move(what) + "; it can only be replayed as exact bytes"}; };
  RawSplit split = split_raw(head);
  if (!split.whole_head || !split.body.empty()) return no("the head does not end with one empty line");
  Request r;
  r.scheme = scheme;
  size_t at = 0;
  std::string_view line;
  auto next = [&] {
    size_t end = head.find("\r\n", at);
    if (end == std::string_view::npos) return false;
    line = head.substr(at, end - at);
    at = end + 2;
    return true;
  };
  if (!next()) return no("a line of the head does not end with CRLF");
  size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return no("the first line is not method, target and version");
  r.method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1), version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return no("the version is neither HTTP/1.0 nor HTTP/1.1");
  r.minor = version.back() - '0';
  while (next() && !line.empty())
    if (auto bad = r.headers.add_line(line)) return no(bad->what);
  if (at != head.size()) return no("a line of the head does not end with CRLF");

  if (const HeaderLine* host = r.headers.find("host")) r.authority = host->value();
  if (r.method == "CONNECT") {
    r.form = TargetForm::AUTHORITY;
    r.authority = target;
    r.target.clear();
  } else if (target == "*") {
    r.form = TargetForm::ASTERISK;
    r.target.clear();
  } else if (size_t mark = target.find("://"); mark != std::string_view::npos && target[0] != '/') {
    r.form = TargetForm::ABSOLUTE;
    r.scheme = target.substr(0, mark);
    target.remove_prefix(mark + 3);
    size_t path = std::min(target.find_first_of("/?"), target.size());
    r.authority = target.substr(0, path);
    r.target = target.substr(path);
  } else {
    r.target = target;
  }

  const HeaderLine* length = r.headers.find("content-length");
  if (r.headers.find("transfer-encoding")) {
    if (length) return no("Content-Length and Transfer-Encoding stand together");
    if (ends_chunked(r.headers)) {
      Oddities oddities(true);
      ChunkDecoder decoder({});
      StringSink whole;
      size_t used = decoder.feed(body, 0, whole, oddities);
      if (decoder.state() != ChunkDecoder::State::DONE || used != body.size() || !decoder.trailers().empty())
        return no("the body is not plainly chunked");
      r.body = std::move(whole.bytes);
    } else {
      r.body = std::string(body);
    }
  } else if (length || !body.empty()) {
    r.body = std::string(body);
  }
  Written again;
  if (auto bad = write_request(r, &again)) return no(bad->what);
  // A line that we would add is shown as computed when it is sent; everything else must come out the same.
  for (const std::string& ours : again.computed) again.head.erase(again.head.find("\r\n" + ours + "\r\n"), ours.size() + 2);
  if (again.head != head) return no("the head would not be written the same way again");
  *out = std::move(r);
  return std::nullopt;
}

}  // namespace h5i::websec
