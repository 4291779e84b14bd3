// HTTP/2 over the wire: the frames that arrive are those whose digest is in the log, and nothing falls back to another protocol.
#include <nghttp2/nghttp2.h>

#include "core/base/sha256.hpp"
#include "tests/websec_send/boxed.hpp"
#include "tests/websec_send/tls_site.hpp"
#include "tests/websec_send/trace.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

// A server of HTTP/2 that answers each request with its path; "/moved" leads to "/end", "/reset" is reset. What arrived is in files as it came.
class H2Origin : public Listener {
 public:
  explicit H2Origin(const Identity* identity) : secure_(identity != nullptr) {
    begin([&] { serve(identity); });
  }
  std::string url(const std::string& path = "/") const { return (secure_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_) + path; }
  int connections() const {
    int n = 0;
    while (std::filesystem::exists(seen_.path() + "/bytes" + std::to_string(n))) n++;
    return n;
  }
  std::string bytes(int n) const { return read_file(seen_.path() + "/bytes" + std::to_string(n)); }
  std::string bodies() const { return read_file(seen_.path() + "/bodies"); }

  // The HEADERS frames among what arrived.
  std::vector<std::string> heads(int n) const {
    std::string all = bytes(n).substr(24);
    std::vector<std::string> out;
    for (size_t at = 0; at + 9 <= all.size();) {
      size_t size = 9 + (static_cast<size_t>(static_cast<uint8_t>(all[at])) << 16 | static_cast<size_t>(static_cast<uint8_t>(all[at + 1])) << 8 | static_cast<uint8_t>(all[at + 2]));
      if (all[at + 3] == 1) out.push_back(all.substr(at, size));
      at += size;
    }
    return out;
  }

 private:
  struct Server {
    std::map<int32_t, std::string> paths;
    std::string bodies;
  };
  static ssize_t give(nghttp2_session*, int32_t, uint8_t*, size_t, uint32_t* flags, nghttp2_data_source*, void*) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return 0;
  }
  static int on_header(nghttp2_session*, const nghttp2_frame* f, const uint8_t* name, size_t n, const uint8_t* value, size_t v, uint8_t, void* self) {
    if (std::string(reinterpret_cast<const char*>(name), n) == ":path") static_cast<Server*>(self)->paths[f->hd.stream_id] = std::string(reinterpret_cast<const char*>(value), v);
    return 0;
  }
  static int on_data(nghttp2_session*, uint8_t, int32_t, const uint8_t* data, size_t n, void* self) {
    static_cast<Server*>(self)->bodies.append(reinterpret_cast<const char*>(data), n);
    return 0;
  }
  static int on_frame(nghttp2_session* s, const nghttp2_frame* f, void* self) {
    if (!(f->hd.flags & NGHTTP2_FLAG_END_STREAM) || (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA)) return 0;
    const std::string path = static_cast<Server*>(self)->paths[f->hd.stream_id];
    if (path == "/reset") return nghttp2_submit_rst_stream(s, 0, f->hd.stream_id, NGHTTP2_REFUSED_STREAM);
    auto nv = [](const char* name, const char* value) {
      return nghttp2_nv{reinterpret_cast<uint8_t*>(const_cast<char*>(name)), reinterpret_cast<uint8_t*>(const_cast<char*>(value)), strlen(name), strlen(value), 0};
    };
    std::vector<nghttp2_nv> fields = {nv(":status", path == "/moved" ? "302" : "200"), nv("set-cookie", "a=1"), nv("set-cookie", "b=2"), nv("set-cookie", "c=3")};
    if (path == "/moved") fields.push_back(nv("location", "/end"));
    nghttp2_data_provider none{{0}, give};
    return nghttp2_submit_response(s, f->hd.stream_id, fields.data(), fields.size(), &none);
  }
  static int h2_only(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* in, unsigned in_size, void*) {
    for (unsigned i = 0; i < in_size; i += in[i] + 1u)
      if (in[i] == 2 && memcmp(in + i + 1, "h2", 2) == 0) {
        *out = in + i + 1;
        *size = 2;
        return SSL_TLSEXT_ERR_OK;
      }
    return SSL_TLSEXT_ERR_NOACK;
  }
  [[noreturn]] void serve(const Identity* identity) {
    SSL_CTX* context = identity ? SSL_CTX_new(TLS_server_method()) : nullptr;
    if (context) {
      SSL_CTX_use_certificate(context, identity->certificate.get());
      SSL_CTX_use_PrivateKey(context, identity->key.get());
      SSL_CTX_set_alpn_select_cb(context, h2_only, nullptr);
    }
    for (int n = 0;; n++) {
      UniqueFd c(accept(fd_.get(), nullptr, nullptr));
      if (!c) _exit(1);
      SSL* ssl = context ? SSL_new(context) : nullptr;
      std::ofstream file(seen_.path() + "/bytes" + std::to_string(n), std::ios::binary);
      if (ssl && (SSL_set_fd(ssl, c.get()), SSL_accept(ssl)) != 1) continue;
      nghttp2_session_callbacks* callbacks = nullptr;
      nghttp2_session_callbacks_new(&callbacks);
      nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
      nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
      Server server;
      nghttp2_session* session = nullptr;
      nghttp2_session_server_new(&session, callbacks, &server);
      nghttp2_submit_settings(session, 0, nullptr, 0);
      auto flush = [&] {
        const uint8_t* data = nullptr;
        for (ssize_t size; (size = nghttp2_session_mem_send(session, &data)) > 0;) {
          if (ssl) SSL_write(ssl, data, static_cast<int>(size));
          else (void)!::send(c.get(), data, static_cast<size_t>(size), MSG_NOSIGNAL);
        }
      };
      char piece[65536];
      for (flush();;) {
        ssize_t got = ssl ? SSL_read(ssl, piece, sizeof piece) : recv(c.get(), piece, sizeof piece, 0);
        if (got <= 0) break;
        file.write(piece, got).flush();
        if (nghttp2_session_mem_recv(session, reinterpret_cast<uint8_t*>(piece), static_cast<size_t>(got)) < 0) break;
        std::ofstream(seen_.path() + "/bodies", std::ios::binary) << server.bodies;
        flush();
      }
      nghttp2_session_del(session);
      nghttp2_session_callbacks_del(callbacks);
      if (ssl) SSL_free(ssl);
    }
  }

  bool secure_;
};

}  // namespace

TEST_CASE("over HTTP/2 the HEADERS frames that arrive are those whose digest is in the log, in TLS and without") {
  const Identity self = certificate("127.0.0.1", "IP:127.0.0.1", nullptr);
  for (const Identity* identity : {&self, static_cast<const Identity*>(nullptr)}) {
    CAPTURE(identity != nullptr);
    H2Origin origin(identity);
    User user(people().back());
    user.open("s", {origin.url("")});
    const std::string body(200'000, 'b');  // more than the peer's first window
    std::ofstream(user.home() + "/body") << body;
    std::vector<std::string> words = {"send", "s", origin.url("/x"), "--http2", "-H", "X-Mixed: One", "-H", "X-Mixed: Two", "-H", "Connection: close", "--data-file", user.home() + "/body", "--method", "POST"};
    if (identity) words.push_back("--insecure");
    Ended e = user.run(words);
    CAPTURE(e.out, e.err);
    REQUIRE(e.status == 0);
    auto heads = origin.heads(0);
    REQUIRE(heads.size() == 1);
    Json send = user.records("s", "send")[0]["body"], outcome = user.records("s", "outcome")[0]["body"];
    CHECK(send["protocol"].string() == "h2");
    CHECK(send["head_sha256"].string() == sha256_hex(heads[0]));
    CHECK(send["body_sha256"].string() == sha256_hex(body));
    CHECK(json::canonical(send["left_out"]) == R"(["Connection"])");
    CHECK(origin.bodies() == body);
    CHECK(outcome["status"].integer() == 200);
    CHECK(json::canonical(outcome["set_cookie"]) == R"(["a","b","c"])");
    if (identity) CHECK(outcome["tls"]["alpn"].string() == "h2");
  }
}

TEST_CASE("hops over HTTP/2 each have their line, and connections serve more than one where that is asked for") {
  H2Origin origin(nullptr);
  User user(people().back());
  user.open("s", {origin.url("")}, {"--capture"});
  CHECK(user.run({"send", "s", origin.url("/moved"), "--http2", "--follow", "2"}).status == 0);
  auto sends = user.records("s", "send");
  REQUIRE(sends.size() == 2);
  CHECK(sends[1]["body"]["parent"].integer() == sends[0]["seq"].integer());
  CHECK(origin.connections() == 2);
  // Kept frames are shown as lines, and what says who asks is masked in them.
  Ended secret = user.run({"send", "s", origin.url("/x"), "--http2", "-H", "Authorization: Bearer PASSWD1", "-H", "X-Seen: yes", "-H", "Cookie: a=PASSWD2"});
  CHECK(secret.status == 0);
  Ended shown = user.run({"show", "s", std::to_string(user.records("s", "send").back()["seq"].integer()), "--bytes"});
  CAPTURE(shown.out);
  CHECK(shown.status == 0);
  CHECK((has(shown.out, "GET /x HTTP/2") && has(shown.out, "x-seen: yes") && has(shown.out, "authorization: [14 bytes]")));
  CHECK(!has(shown.out + shown.err + secret.out, "PASSWD"));
  CHECK(user.run({"send", "s", origin.url("/reset"), "--http2"}).status == 1);
  CHECK(user.records("s", "outcome").back()["body"]["ended"].string() == "reset");
}

TEST_CASE("what was recorded for HTTP/2 is never said in another protocol") {
  const Identity self = certificate("127.0.0.1", "IP:127.0.0.1", nullptr);
  TlsOrigin one(self, [](const std::string&) { return ok(); });
  Origin plain([](const std::string&) { return ok(); });
  User user(people().back());
  user.open("s", {one.url(""), plain.url("")});
  Ended e = user.run({"send", "s", one.url("/"), "--http2", "--insecure"});
  CAPTURE(e.out, e.err);
  CHECK(e.status == 2);
  const std::string ended = user.records("s", "outcome")[0]["body"]["ended"].string();
  CHECK((ended == "alpn-refused" || ended == "tls-failed"));  // this peer breaks off at an offer that it does not know
  CHECK(one.requests().empty());
  // One that goes on without a word about the offer would read the frames as it likes.
  TlsOrigin deaf(self, [](const std::string&) { return ok(); }, "");
  user.open("d", {deaf.url("")});
  CHECK(user.run({"send", "d", deaf.url("/"), "--http2", "--insecure"}).status == 2);
  CHECK(user.records("d", "outcome")[0]["body"]["ended"].string() == "alpn-refused");
  CHECK(user.records("d", "outcome")[0]["body"]["sent_bytes"].integer() == 0);
  CHECK(user.run({"send", "s", plain.url("/"), "--http2"}).status == 1);
  CHECK(user.records("s", "outcome")[1]["body"]["ended"].string() == "refused");
}

TEST_CASE("over HTTP/2 too the line comes before the first byte") {
  if (no_tracer()) return;
  H2Origin origin(nullptr);
  User user(0);
  user.open("s", {origin.url("")});
  auto calls = traced(user.h5i({"send", "s", origin.url("/moved"), "--http2", "--follow", "1"}), user.home() + "/trace");
  REQUIRE(origin.connections() == 2);
  size_t from = 0;
  for (int n : {0, 1}) {
    REQUIRE(origin.heads(n).size() == 1);
    size_t record = first(calls, "write(", "\\\"head_sha256\\\":\\\"" + sha256_hex(origin.heads(n)[0]), from), dialled = first(calls, "connect(", "htons(" + origin.port() + ")", from),
           preface = first(calls, "sendmsg(", "\\x50\\x52\\x49\\x20\\x2a", from);
    CAPTURE(n, record, dialled, preface, calls.size());
    CHECK((record < dialled && dialled < preface && preface < calls.size()));
    from = preface + 1;
  }
}

TEST_CASE("from a box HTTP/2 and TLS go as they go without one, and the digest is that of the frames") {
  const Identity self = certificate("127.0.0.1", "IP:127.0.0.1", nullptr);
  H2Origin origin(&self);
  Boxed b(users().back());
  b.web({"open", "s", "--scope", origin.url(""), "--in", "out"});
  write_file(b.p / "body", std::string(200'000, 'b'));
  b.web({"send", "s", origin.url("/x"), "--http2", "--insecure", "--method", "POST", "--data-file", b.p / "body"});
  auto heads = origin.heads(0);
  REQUIRE(heads.size() == 1);
  Json send = b.of("s", "send")[0]["body"], outcome = b.of("s", "outcome")[0]["body"];
  CHECK(send["head_sha256"].string() == sha256_hex(heads[0]));
  CHECK(send["placement"].string() == kIn);
  CHECK(origin.bodies() == read_file(b.p / "body"));
  CHECK(outcome["status"].integer() == 200);
  CHECK(outcome["tls"].is_object());
  // Whom TLS trusts is what the session says, there too.
  b.web({"send", "s", origin.url("/y"), "--http2"}, 2);
  CHECK(b.of("s", "outcome")[1]["body"]["ended"].string() == "tls-untrusted");
}
