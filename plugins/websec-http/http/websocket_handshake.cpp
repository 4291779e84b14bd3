#include "plugins/websec-http/http/websocket_handshake.hpp"

#include <openssl/evp.h>

#include <algorithm>

#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

std::string base64_of(const uint8_t* bytes, int n) {
  std::string out(static_cast<size_t>((n + 2) / 3 * 4) + 1, '\0');
  out.resize(static_cast<size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes, n)));
  return out;
}

// Sixteen bytes in base64: 22 characters, of which the last has four bits, and two signs that fill up.
bool proper_key(std::string_view key) {
  if (key.size() != 24 || key.substr(22) != "==") return false;
  for (char c : key.substr(0, 22))
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !syntax::is(c, syntax::kDigit) && c != '+' && c != '/') return false;
  return std::string_view("AQgw").find(key[21]) != std::string_view::npos;
}

bool lists(const FieldBlock& fields, std::string_view name, std::string_view element) {
  bool found = false;
  for (size_t i = 0; i < fields.size(); i++)
    if (FieldView f = fields.field(i); syntax::same(f.name, name))
      syntax::each_element(f.value, [&](std::string_view e) { found = found || syntax::same(e, element); });
  return found;
}
bool lists(const HeaderList& headers, std::string_view name, std::string_view element) {
  bool found = false;
  for (const HeaderLine& h : headers.lines())
    if (syntax::same(h.name(), name)) syntax::each_element(h.value(), [&](std::string_view e) { found = found || syntax::same(e, element); });
  return found;
}

Refused no(std::string what) { return Refusal{"websocket-handshake", std::move(what)}; }

}  // namespace

std::string websocket_key(const std::array<uint8_t, 16>& random) { return base64_of(random.data(), 16); }

std::string websocket_accept(std::string_view key) {
  std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455 section 1.3
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &n, EVP_sha1(), nullptr) != 1) return {};
  return base64_of(digest, static_cast<int>(n));
}

Refused open_websocket(Request* request, const std::array<uint8_t, 16>& random, const std::vector<std::string>& protocols, WsHandshake* out) {
  const HeaderList& have = request->headers;
  if (request->minor != 1) return no("a WebSocket is opened over HTTP/1.1");
  if (request->body) return no("the request that opens a WebSocket has no body");
  if (have.count("sec-websocket-extensions") > 0) return no("no extension can be asked for: its frames could not be read");
  if (have.count("sec-websocket-key") > 1) return no("more than one Sec-WebSocket-Key");
  if (!protocols.empty() && have.find("sec-websocket-protocol")) return no("protocols are named twice: as protocols and in a header");

  WsHandshake made;
  made.protocols = protocols;
  for (const HeaderLine& h : have.lines())
    if (syntax::same(h.name(), "sec-websocket-protocol"))
      syntax::each_element(h.value(), [&](std::string_view e) { made.protocols.emplace_back(e); });
  std::string list;
  for (size_t i = 0; i < made.protocols.size(); i++) {
    const std::string& p = made.protocols[i];
    if (!syntax::token(p)) return no("a protocol is a token");
    if (std::find(made.protocols.begin(), made.protocols.begin() + static_cast<ptrdiff_t>(i), p) != made.protocols.begin() + static_cast<ptrdiff_t>(i))
      return no("a protocol stands twice");
    list += (i > 0 ? ", " : "") + p;
  }

  if (request->method != "GET") made.notes.push_back("method");
  if (have.find("upgrade") && !lists(have, "upgrade", "websocket")) made.notes.push_back("upgrade");
  if (have.find("connection") && !lists(have, "connection", "upgrade")) made.notes.push_back("connection");
  if (const HeaderLine* v = have.find("sec-websocket-version"); v && (v->value() != "13" || have.count("sec-websocket-version") > 1))
    made.notes.push_back("version");
  const HeaderLine* key = have.find("sec-websocket-key");
  made.key = key ? std::string(key->value()) : websocket_key(random);
  if (!proper_key(made.key)) made.notes.push_back("key");

  HeaderList headers = have;
  auto add = [&](std::string_view name, const std::string& value) -> Refused {
    if (headers.find(name)) return std::nullopt;
    if (auto bad = headers.add(name, value)) return bad;
    made.computed.push_back(headers.lines().back().line());
    return std::nullopt;
  };
  if (auto bad = add("Upgrade", "websocket")) return bad;
  if (auto bad = add("Connection", "Upgrade")) return bad;
  if (auto bad = add("Sec-WebSocket-Version", "13")) return bad;
  if (auto bad = add("Sec-WebSocket-Key", made.key)) return bad;
  if (!list.empty())
    if (auto bad = add("Sec-WebSocket-Protocol", list)) return bad;
  request->headers = std::move(headers);
  *out = std::move(made);
  return std::nullopt;
}

WsAnswer judge_websocket(const ResponseHead& head, const WsHandshake& asked, bool strict) {
  WsAnswer answer;
  answer.oddities = Oddities(strict);
  const FieldBlock& fields = head.fields;
  auto odd = [&](OddityId id, std::string_view name, std::string_view detail = {}) {
    auto f = fields.first(name);
    answer.oddities.add(id, f ? f->offset : fields.offset(), !detail.empty() || !f ? detail : f->value);
  };
  if (head.status != 101) {
    odd(OddityId::WS_NOT_OPENED, "", std::to_string(head.status));
    return answer;
  }
  if (!lists(fields, "upgrade", "websocket")) odd(OddityId::WS_UPGRADE, "upgrade");
  if (!lists(fields, "connection", "upgrade")) odd(OddityId::WS_UPGRADE, "connection");
  auto accept = fields.first("sec-websocket-accept");
  std::string wanted = websocket_accept(asked.key);
  if (!accept || wanted.empty() || fields.count("sec-websocket-accept") != 1 || accept->value != wanted) odd(OddityId::WS_ACCEPT, "sec-websocket-accept");
  if (fields.first("sec-websocket-extensions")) odd(OddityId::WS_EXTENSION, "sec-websocket-extensions");
  if (auto chosen = fields.first("sec-websocket-protocol")) {
    answer.protocol = chosen->value;
    bool among = std::find(asked.protocols.begin(), asked.protocols.end(), chosen->value) != asked.protocols.end();
    if (!among || fields.count("sec-websocket-protocol") != 1) odd(OddityId::WS_PROTOCOL, "sec-websocket-protocol");
  } else if (!asked.protocols.empty()) {
    odd(OddityId::WS_NO_PROTOCOL, "");
  }
  answer.open = !answer.oddities.refused();
  return answer;
}

}  // namespace h5i::websec
