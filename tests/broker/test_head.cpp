#include "core/broker/head.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::broker;

namespace {

std::string fault(const std::string& head) {
  HeadRead r = read_head(head);
  if (!r.fault.empty()) return std::string(r.fault);
  return r.used ? "" : "more";
}
const std::string kGet = "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n";

}  // namespace

TEST_CASE("a head is read to its end and no further", "[broker][head]") {
  HeadRead r = read_head(kGet + "Accept: */*\r\n\r\nrest");
  REQUIRE(r.fault.empty());
  CHECK(r.used == kGet.size() + 15);
  CHECK(r.head.method == "GET");
  CHECK(r.head.target.text() == "a.example:80");
  CHECK(r.head.to_origin() == "GET /x HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nConnection: close\r\n\r\n");
  // Every beginning of it asks for more, and nothing else.
  for (size_t n = 0; n < r.used; n++) CHECK(fault((kGet + "Accept: */*\r\n\r\n").substr(0, n)) == "more");
  HeadRead c = read_head("CONNECT A.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n");
  REQUIRE(c.used);
  CHECK(c.head.connect);
  CHECK(c.head.target.text() == "a.example:443");
  CHECK(fault("CONNECT a.example:443 HTTP/1.0\r\n\r\n").empty());
  CHECK(fault("CONNECT [2001:db8::5]:443 HTTP/1.1\r\nHost: [2001:db8::5]\r\n\r\n").empty());
}

TEST_CASE("a head that two readers could take for different requests is refused, and its plain form is not", "[broker][head]") {
  CHECK(fault(kGet + "\r\n").empty());
  CHECK(fault(kGet + "Content-Length: 5\r\n\r\n").empty());
  CHECK(fault(kGet + "Transfer-Encoding: chunked\r\n\r\n").empty());
  struct {
    const char* lines;
    const char* fault;
  } bad[] = {
      {"Content-Length: 5\r\nContent-Length: 5\r\n\r\n", "length"},
      {"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", "length"},
      {"Content-Length: 5, 5\r\n\r\n", "length"},
      {"Content-Length: +5\r\n\r\n", "length"},
      {"Content-Length: 0x5\r\n\r\n", "length"},
      {"Content-Length: 9999999999999999999\r\n\r\n", "length"},
      {"Content-Length:\r\n\r\n", "length"},
      {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "coding"},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "coding"},
      {"Transfer-Encoding: chunkedx\r\n\r\n", "coding"},
      {"Transfer-Encoding: xchunked\r\n\r\n", "coding"},
      {"Transfer-Encoding: gzip, chunked\r\n\r\n", "coding"},
      {"Transfer-Encoding: identity\r\n\r\n", "coding"},
      {"Transfer-Encoding : chunked\r\n\r\n", "field"},
      {" Transfer-Encoding: chunked\r\n\r\n", "field"},
      {"X: a\r\n b\r\n\r\n", "field"},
      {"X\r\n\r\n", "field"},
      {": x\r\n\r\n", "field"},
      {"X: \x01\r\n\r\n", "field"},
      {"X: a\n\r\n", "bare-line-end"},
      {"X: a\nY: b\r\n\r\n", "bare-line-end"},
      {"X: a\rY: b\r\n\r\n", "bare-line-end"},
      {"Connection: content-length\r\nContent-Length: 5\r\n\r\n", "field"},
      {"Connection: close, Transfer-Encoding\r\n\r\n", "field"},
      {"Host: a.example\r\n\r\n", "host"},
      {"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", "upgrade"},
      {"Upgrade: websocket\r\n\r\n", "upgrade"},
  };
  for (const auto& b : bad) {
    INFO(b.lines);
    CHECK(fault(kGet + b.lines) == b.fault);
  }
  CHECK(fault(kGet + std::string("X: a\0b\r\n\r\n", 10)) == "field");
  CHECK(fault("GET http://a.example/ HTTP/1.1\n\n") == "bare-line-end");
  CHECK(fault("\r\n\r\nGET http://a.example/ HTTP/1.1\r\n\r\n") == "request-line");
}

TEST_CASE("authority and Host are one, and a target has one spelling", "[broker][head]") {
  auto with = [](const std::string& line, const std::string& host) { return fault(line + "\r\nHost: " + host + "\r\n\r\n"); };
  CHECK(with("GET http://a.example/ HTTP/1.1", "A.Example.").empty());
  CHECK(with("GET http://a.example:80/ HTTP/1.1", "a.example").empty());
  CHECK(with("GET http://a.example:8080/ HTTP/1.1", "a.example:8080").empty());
  CHECK(with("CONNECT a.example:8443 HTTP/1.1", "a.example").empty());
  CHECK(with("GET http://a.example/ HTTP/1.1", "b.example") == "host");
  CHECK(with("GET http://a.example/ HTTP/1.1", "a.example:8080") == "host");
  CHECK(with("GET http://a.example/ HTTP/1.1", "a.example, b.example") == "host");
  CHECK(with("GET http://a.example/ HTTP/1.1", "") == "host");
  CHECK(with("CONNECT a.example:443 HTTP/1.1", "b.example:443") == "host");
  CHECK(with("CONNECT a.example:443 HTTP/1.1", "a.example:22") == "host");
  CHECK(fault("GET http://a.example/ HTTP/1.1\r\n\r\n") == "host");
  for (const char* target : {"/", "a.example:80", "https://a.example/", "http://u@a.example/", "http://a.example#f", "http://a.example/#f", "http:///x", "http://a.example:0/", "http://a.example:080/",
                             "http://a.example:65536/", "http://127.1/", "http://0x7f.0.0.1/", "http://2130706433/", "http://[::1/", "http://[fe80::1%25eth0]/", "http://a..example/", "http://a%2eexample/", "*"}) {
    INFO(target);
    CHECK(with(std::string("GET ") + target + " HTTP/1.1", "a.example") == "target");
  }
  for (const char* target : {"a.example", "a.example:", "a.example:443/", "http://a.example:443", "u@a.example:443", "a.example:443:443"}) {
    INFO(target);
    CHECK(with(std::string("CONNECT ") + target + " HTTP/1.1", "a.example") == "target");
  }
  CHECK(fault("GET http://a.example/ HTTP/2.0\r\n\r\n") == "version");
  CHECK(fault("GET  http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n") == "target");
  CHECK(fault("TRACE http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n") == "method");
  CHECK(fault("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == "version");
  CHECK(fault("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\n") == "length");
}

TEST_CASE("what is said to the next hop or to a proxy does not travel on", "[broker][head]") {
  HeadRead r = read_head(kGet + "Proxy-Authorization: Basic eDp5\r\nX-Hop: 1\r\nTE: trailers\r\nKeep-Alive: 5\r\nConnection: keep-alive, X-Hop\r\nAuthorization: Bearer t\r\n\r\n");
  REQUIRE(r.used);
  CHECK(r.head.to_origin() == "GET /x HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer t\r\nConnection: close\r\n\r\n");
}

TEST_CASE("a head is bounded in bytes and fields", "[broker][head]") {
  CHECK(fault(kGet + "X: " + std::string(kMaxHead, 'a')) == "too-long");
  std::string fields;
  for (size_t i = 1; i < kMaxFields; i++) fields += "X: a\r\n";
  CHECK(fault(kGet + fields + "\r\n").empty());
  CHECK(fault(kGet + fields + "X: a\r\n\r\n") == "too-many-fields");
  std::string full = kGet + "X: " + std::string(kMaxHead - kGet.size() - 7, 'a') + "\r\n\r\n";
  REQUIRE(full.size() == kMaxHead);
  CHECK(fault(full).empty());
}

TEST_CASE("the end of a chunked body is where a strict reader sees it", "[broker][head]") {
  std::string body = "5\r\nhello\r\n1A\r\n" + std::string(26, 'x') + "\r\n0\r\n\r\n";
  ChunkWatch whole;
  CHECK(whole.take(body + "GET /evil") == body.size());
  CHECK(whole.ended());
  ChunkWatch slowly;
  for (char c : body) CHECK(slowly.take(std::string_view(&c, 1)) == 1);
  CHECK(slowly.ended());
  for (const char* bad : {"5;ext=1\r\nhello\r\n", "5\nhello\r\n", "\r\n", "g\r\n", "5\r\nhelloX\r\n", "0\r\nTrailer: x\r\n\r\n", " 5\r\n", "0x5\r\n", "1000000000000000\r\n", "-1\r\n"}) {
    INFO(bad);
    ChunkWatch w;
    CHECK(w.take(bad) < std::string_view(bad).size());
    CHECK(w.broken());
  }
}
