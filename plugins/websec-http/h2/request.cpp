#include "plugins/websec-http/h2/request.hpp"

#include <nghttp2/nghttp2.h>

#include <memory>

#include "plugins/websec-http/h2/frames.hpp"
#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kMaxDecoded = 1024 * 1024;  // a recorded head that says more was not written by us

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = syntax::lower(c);
  return out;
}

}  // namespace

Refused h2_request_fields(const Request& request, H2RequestFields* out) {
  if (request.method == "CONNECT") return Refusal{"h2-connect", "CONNECT is spoken over HTTP/1.1 alone"};
  // What HTTP/1.1 would refuse in a method, a target or a header is refused here in the same words.
  Request plain;
  plain.method = request.method;
  plain.form = request.form;
  plain.scheme = request.scheme;
  plain.authority = request.authority;
  plain.target = request.target;
  Written written;
  const HeaderLine* host = request.headers.find("host");
  if (host)
    if (auto no = plain.headers.add("Host", host->value())) return no;
  if (auto no = write_request(plain, &written)) return no;

  H2RequestFields made;
  std::vector<std::string> named;  // by Connection
  for (const HeaderLine& h : request.headers.lines())
    if (syntax::same(h.name(), "connection"))
      syntax::each_element(h.value(), [&](std::string_view e) {
        if (!e.empty()) named.push_back(lower(e));
      });

  std::string path = request.target;
  if (request.form == TargetForm::ASTERISK) path = "*";
  if (path.empty() || path[0] == '?') path.insert(0, "/");
  made.fields = {{":method", request.method},
                 {":scheme", lower(request.scheme)},
                 {":authority", host ? std::string(host->value()) : request.authority},
                 {":path", path}};
  if (host && host->value() != request.authority) made.notes.push_back("host-as-authority");

  bool length = false;
  size_t size = request.body ? request.body->size() : 0;
  for (const HeaderLine& h : request.headers.lines()) {
    if (&h == host) continue;
    std::string name = lower(h.name());
    bool drop = h2_connection_header(name) || name == "http2-settings" || (name == "te" && !syntax::same(h.value(), "trailers"));
    // Connection may not take away what says where a request goes or how long it is.
    for (const std::string& n : named) drop = drop || (n == name && name != "host" && name != "content-length" && name != "te");
    if (drop) {
      made.dropped.emplace_back(h.name());
      continue;
    }
    if (name == "content-length") {
      length = true;
      if (h.value() != std::to_string(size)) made.notes.push_back("content-length-differs");
    }
    made.fields.push_back({std::move(name), std::string(h.value())});
  }
  if (!length && (request.body || request.method == "POST" || request.method == "PUT" || request.method == "PATCH")) {
    made.fields.push_back({"content-length", std::to_string(size)});
    made.computed.push_back("content-length: " + std::to_string(size));
  }
  *out = std::move(made);
  return std::nullopt;
}

bool read_h2_request_head(std::string_view frames, H2Fields* out) {
  std::string block;
  uint32_t stream = 0;
  bool ended = false;
  for (bool first = true; !frames.empty(); first = false) {
    if (ended || frames.size() < kH2FrameHeader) return false;
    H2Frame f = h2_frame(frames);
    frames.remove_prefix(kH2FrameHeader);
    if (f.type != (first ? kH2Headers : kH2Continuation) || f.length > frames.size() || f.flags & (kH2Padded | kH2HasPriority)) return false;
    if (first) stream = f.stream;
    if (f.stream != stream || stream == 0) return false;
    block.append(frames.substr(0, f.length));
    frames.remove_prefix(f.length);
    ended = f.flags & kH2EndHeaders;
  }
  if (!ended) return false;
  nghttp2_hd_inflater* made = nullptr;
  if (nghttp2_hd_inflate_new(&made) != 0) return false;
  std::unique_ptr<nghttp2_hd_inflater, void (*)(nghttp2_hd_inflater*)> inflater(made, nghttp2_hd_inflate_del);
  H2Fields fields;
  size_t size = 0;
  const auto* at = reinterpret_cast<const uint8_t*>(block.data());
  for (size_t left = block.size();;) {
    nghttp2_nv nv{};
    int flags = 0;
    ssize_t used = nghttp2_hd_inflate_hd2(inflater.get(), &nv, &flags, at, left, 1);
    if (used < 0) return false;
    at += used;
    left -= static_cast<size_t>(used);
    if (flags & NGHTTP2_HD_INFLATE_EMIT && (size += nv.namelen + nv.valuelen + 32) > kMaxDecoded) return false;
    if (flags & NGHTTP2_HD_INFLATE_EMIT)
      fields.push_back({std::string(reinterpret_cast<char*>(nv.name), nv.namelen), std::string(reinterpret_cast<char*>(nv.value), nv.valuelen)});
    if (flags & NGHTTP2_HD_INFLATE_FINAL) break;
    if (used == 0 && !(flags & NGHTTP2_HD_INFLATE_EMIT)) return false;
  }
  *out = std::move(fields);
  return true;
}

std::optional<std::string> h2_request_lines(std::string_view frames) {
  H2Fields fields;
  if (!read_h2_request_head(frames, &fields)) return std::nullopt;
  auto value_of = [&](std::string_view name) {
    for (const H2Field& f : fields)
      if (f.name == name) return f.value;
    return std::string();
  };
  std::string out = value_of(":method") + " " + value_of(":path") + " HTTP/2\r\n";
  for (const H2Field& f : fields) {
    if (f.name == ":method" || f.name == ":path") continue;
    out += (f.name.starts_with(':') ? f.name.substr(1) : f.name) + ": ";
    for (char c : f.value) out += c == '\r' || c == '\n' ? ' ' : c;
    out += "\r\n";
  }
  return out + "\r\n";
}

bool read_h2_request_data(std::string_view frames, std::string* out) {
  std::string data;
  while (!frames.empty()) {
    if (frames.size() < kH2FrameHeader) return false;
    H2Frame f = h2_frame(frames);
    frames.remove_prefix(kH2FrameHeader);
    if (f.type != kH2Data || f.length > frames.size() || f.flags & kH2Padded) return false;
    data.append(frames.substr(0, f.length));
    frames.remove_prefix(f.length);
  }
  *out = std::move(data);
  return true;
}

}  // namespace h5i::websec
