#include "plugins/websec-http/http/request.hpp"

#include "plugins/websec-http/http/oddity.hpp"
#include "tests/support/catch.hpp"

using namespace h5i::websec;

namespace {

Request request(std::initializer_list<std::string_view> lines, std::optional<std::string> body = {}) {
  Request r;
  r.authority = "a.test:8080";
  r.target = "/p?q=1";
  for (std::string_view l : lines) REQUIRE_FALSE(r.headers.add_line(l));
  r.body = std::move(body);
  return r;
}
std::string head(const Request& r) {
  Written w;
  auto no = write_request(r, &w);
  return no ? "refused: " + std::string(no->id) : w.head;
}
std::string refusal(const Request& r) {
  Written w;
  auto no = write_request(r, &w);
  return no ? std::string(no->id) : "written";
}

}  // namespace

TEST_CASE("a request without headers gets its host, shown as computed") {
  Written w;
  Request r = request({});
  REQUIRE_FALSE(write_request(r, &w));
  CHECK(w.head == "GET /p?q=1 HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
  CHECK(w.body.empty());
  CHECK(w.computed == std::vector<std::string>{"Host: a.test:8080"});
}

TEST_CASE("headers are written as their author wrote them, in their order, twice when they stand twice") {
  Request r = request({"X-mIXed:no-space", "hOsT:  other.test ", "Transfer-Encoding: gzip", "Accept: a", "accept: b", "TRANSFER-encoding:\tchunked", "Empty:"}, "abc");
  Written w;
  REQUIRE_FALSE(write_request(r, &w));
  CHECK(w.head == "GET /p?q=1 HTTP/1.1\r\nX-mIXed:no-space\r\nhOsT:  other.test \r\nTransfer-Encoding: gzip\r\nAccept: a\r\naccept: b\r\n"
                  "TRANSFER-encoding:\tchunked\r\nEmpty:\r\n\r\n");
  CHECK(w.body == "3\r\nabc\r\n0\r\n\r\n");
  CHECK(w.computed.empty());
}

TEST_CASE("a length is computed only where there is a body, or a method that means one, and no length") {
  CHECK(head(request({"Host: h"}, "abc")) == "GET /p?q=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n");
  CHECK(head(request({"Host: h"}, "")) == "GET /p?q=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
  CHECK(head(request({"Host: h"})) == "GET /p?q=1 HTTP/1.1\r\nHost: h\r\n\r\n");
  for (const char* method : {"POST", "PUT", "PATCH"}) {
    Request r = request({"Host: h"});
    r.method = method;
    CHECK(head(r) == std::string(method) + " /p?q=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
  }
  Written w;
  Request own = request({"Host: h", "content-length: 7"}, "abc");
  REQUIRE_FALSE(write_request(own, &w));
  CHECK(w.head == "GET /p?q=1 HTTP/1.1\r\nHost: h\r\ncontent-length: 7\r\n\r\n");
  CHECK(w.body == "abc");
  CHECK(w.notes == std::vector<std::string_view>{"content-length-differs"});
  Request right = request({"Host: h", "content-length: 3"}, "abc");
  REQUIRE_FALSE(write_request(right, &w));
  CHECK(w.notes.empty());
}

TEST_CASE("the four forms of a target") {
  Request r = request({});
  r.form = TargetForm::ABSOLUTE;
  CHECK(head(r) == "GET http://a.test:8080/p?q=1 HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
  r.form = TargetForm::ASTERISK;
  CHECK(refusal(r) == "target-form");
  r.method = "OPTIONS";
  CHECK(head(r) == "OPTIONS * HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
  r.method = "CONNECT";
  CHECK(refusal(r) == "target-form");
  r.form = TargetForm::AUTHORITY;
  CHECK(head(r) == "CONNECT a.test:8080 HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
  r.method = "GET";
  CHECK(refusal(r) == "target-form");
}

TEST_CASE("a structured request cannot become two") {
  HeaderList list;
  for (std::string_view bad : {"A: b\r\nC: d", "A: b\nC", "A: \rb", "no colon", ": x", "A b: c", "A : c", ""}) CHECK(list.add_line(bad));
  CHECK(list.add_line(std::string_view("A: \0", 4)));
  CHECK(list.add("A", "x\r\nB: y"));
  CHECK(list.add("A:B", "x"));
  CHECK(list.empty());
  Request r = request({});
  for (const char* target : {"/a b", "/a\r\nX: y", "/\xc3\xa9", "no-slash", "", "/a#b"}) {
    r.target = target;
    CHECK(refusal(r).starts_with("target-"));
  }
  r.target = "/";
  CHECK(refusal(r) == "written");
  r.method = "GET /x HTTP/1.1\r\nA: b\r\n\r\nGET";
  CHECK(refusal(r) == "method");
  r.method = "GET";
  r.authority = "a\r\nX: y";
  CHECK(refusal(r) == "target-bytes");
  r.authority = "";
  CHECK(refusal(r) == "no-host");
  CHECK(refusal(request({"Content-Length: 1", "Transfer-Encoding: chunked"}, "a")) == "te-and-cl");
  CHECK(refusal(request({"Content-Length: 1"}, "a")) == "written");
}

TEST_CASE("HTTP/1.0 is written without chunks") {
  Request r = request({}, "x");
  r.minor = 0;
  CHECK(head(r) == "GET /p?q=1 HTTP/1.0\r\nHost: a.test:8080\r\nContent-Length: 1\r\n\r\n");
  REQUIRE_FALSE(r.headers.add_line("Transfer-Encoding: chunked"));
  CHECK(refusal(r) == "te-on-1.0");
}

TEST_CASE("setting a header leaves one of that name, where the first was") {
  HeaderList l;
  for (std::string_view line : {"A: 1", "B: 2", "a: 3"}) REQUIRE_FALSE(l.add_line(line));
  REQUIRE_FALSE(l.set("A", "4"));
  REQUIRE(l.lines().size() == 2);
  CHECK(l.lines()[0].line() == "A: 4");
  CHECK(l.lines()[1].line() == "B: 2");
  REQUIRE_FALSE(l.set("C", "5"));
  CHECK(l.lines()[2].line() == "C: 5");
  CHECK(l.set("B", "x\ny"));
  CHECK(l.remove("b") == 1);
  CHECK(l.find("B") == nullptr);
  HeaderLine spaced("Name:   old  ");
  spaced.set_value("new");
  CHECK(spaced.line() == "Name:   new");
}

TEST_CASE("raw bytes are cut behind the first empty line and nowhere else") {
  RawSplit s = split_raw("POST / HTTP/1.1\r\nA: b\r\n\r\nbody\r\n\r\n");
  CHECK(s.whole_head);
  CHECK(s.head == "POST / HTTP/1.1\r\nA: b\r\n\r\n");
  CHECK(s.body == "body\r\n\r\n");
  CHECK(s.method == "POST");
  CHECK(split_raw("GET /\n\nx").head == "GET /\n\n");
  CHECK(split_raw("GET /\nA: b\n\r\nx").body == "x");
  CHECK_FALSE(split_raw("GET / HTTP/1.1\r\n").whole_head);
  CHECK(split_raw("GET / HTTP/1.1\r\n").head == "GET / HTTP/1.1\r\n");
  CHECK(split_raw("").head.empty());
}

TEST_CASE("only who asks gets the length in raw bytes changed, and only that") {
  auto fixed = [](std::string s) { return fix_content_length(&s) ? "refused" : s; };
  CHECK(fixed("POST / HTTP/1.1\r\ncontent-LENGTH:\t 99 \r\nA: b\n\r\nbody") == "POST / HTTP/1.1\r\ncontent-LENGTH:\t 4 \r\nA: b\n\r\nbody");
  CHECK(fixed("P\nContent-Length : 1\nContent-Length:\n\nContent-Length: 7\n") == "P\nContent-Length : 18\nContent-Length:18\n\nContent-Length: 7\n");
  CHECK(fixed("Content-Length: 1 HTTP/1.1\r\n\r\nx") == "refused");
  CHECK(fixed("POST / HTTP/1.1\r\nContent-Length: 1\r\n") == "refused");
  CHECK(fixed("") == "refused");
}

TEST_CASE("what was written is read back and written the same again") {
  for (const char* kind : {"origin", "absolute", "connect", "options", "chunked", "own length", "1.0"}) {
    std::string k = kind;
    Request r = request({"X-mIXed:no-space", "Accept:  a"}, "body");
    if (k == "absolute") r.form = TargetForm::ABSOLUTE;
    if (k == "connect") r.form = TargetForm::AUTHORITY, r.method = "CONNECT", r.body.reset();
    if (k == "options") r.form = TargetForm::ASTERISK, r.method = "OPTIONS";
    if (k == "chunked") REQUIRE_FALSE(r.headers.add_line("Transfer-Encoding: chunked"));
    if (k == "own length") REQUIRE_FALSE(r.headers.add_line("Content-Length: 2"));
    if (k == "1.0") r.minor = 0;
    Written first, second;
    REQUIRE_FALSE(write_request(r, &first));
    Request back;
    INFO(kind);
    auto no = read_request(first.head, first.body, "http", &back);
    INFO((no ? no->what : ""));
    REQUIRE_FALSE(no);
    REQUIRE_FALSE(write_request(back, &second));
    CHECK(second.head == first.head);
    CHECK(second.body == first.body);
    CHECK(second.computed.empty());
  }
}

TEST_CASE("a recorded request that structure cannot hold is refused and stays raw") {
  Request r;
  for (std::string_view head : {"GET / HTTP/1.1\r\nA: b\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
                                "GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n",
                                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
                                "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "", "GET /"})
    CHECK(read_request(head, "", "http", &r));
  CHECK(read_request("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n0\r\n\r\nmore", "http", &r));
  CHECK(read_request("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "1\na\r\n0\r\n\r\n", "http", &r));
  CHECK_FALSE(read_request("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n0\r\n\r\n", "http", &r));
  CHECK(r.body == "a");
}
