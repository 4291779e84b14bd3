// What becomes of a request that is said again.
#include "plugins/websec-http/replay/change.hpp"
#include "plugins/websec-http/replay/placeholder.hpp"
#include "plugins/websec-http/replay/rebuild.hpp"
#include "plugins/websec-http/replay/spread.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

bool secret(std::string_view name) { return name == "Authorization" || name == "cookie"; }

std::string text(const std::vector<Change>& list) {
  std::string out;
  for (const Change& c : list) out += c.field + ": " + c.before.value_or("-") + " > " + c.after.value_or("-") + "\n";
  return out;
}

}  // namespace

TEST_CASE("two heads differ by field, whatever their order and spelling, and what may be a key is its size") {
  const std::string a = "GET /a HTTP/1.1\r\nHost: x\r\nAccept: 1\r\naccept: 2\r\nAuthorization: Bearer secret\r\ncookie: a=secret\r\nGone: g\r\n\r\n";
  CHECK(changes(a, a, secret).empty());
  CHECK(changes(a, "GET /a HTTP/1.1\r\ngone:g\r\ncookie: a=secret\r\nHOST:  x \r\nAccept: 1\r\nAuthorization: Bearer secret\r\nAccept: 2\r\n\r\n", secret).empty());
  CHECK(text(changes(a, "GET /b HTTP/1.1\r\nHost: x\r\nAccept: 2\r\nAccept: 1\r\nAuthorization: Bearer other!\r\nNew: n\r\n\r\n", secret)) ==
        "line: GET /a HTTP/1.1 > GET /b HTTP/1.1\nheader.Accept: 1, 2 > 2, 1\nheader.Authorization: [13 bytes] > [13 bytes]\nheader.cookie: [8 bytes] > -\nheader.Gone: g > -\nheader.New: - > n\n");
  // What goes on in the next line, or has no colon, is not shown either.
  CHECK(text(changes("GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\nAuthorization: x\r\n secret: y\rsecret\r\n\r\n", secret)) == "header.Authorization: - > [1 bytes]\n(no header): - > [10 bytes], [6 bytes]\n");
  CHECK(changes("", "", secret).empty());
  CHECK(text(changes("", "\r\n\r\n:\r\n", secret)) == "(no header): - > [0 bytes]\n");
}

TEST_CASE("a secret stands by its name, and a value is its name again wherever it comes back") {
  CHECK(placeholders("Bearer $TOKEN, $TOKEN $_A1 $$NO $ $5 $x") == std::vector<std::string>{"TOKEN", "_A1"});
  std::string out = "before";
  REQUIRE_FALSE(fill("a $A$B $$ $ $5 $x $A", {{"A", "1$B"}, {"B", ""}}, &out));
  CHECK(out == "a 1$B $ $ $5 $x 1$B");
  auto no = fill("$A $MISSING", {{"A", "value"}}, &out);
  REQUIRE(no);
  CHECK(no->what == "there is no value for $MISSING");
  CHECK(out == "a 1$B $ $ $5 $x 1$B");
  const Secrets secrets = {{"SHORT", "abcd"}, {"LONG", "abcdef"}, {"TINY", "abc"}, {"LOOP", "$LOOP"}};
  CHECK(hide("abcdefabcdabc", secrets) == "$LONG$SHORTabc");
  CHECK(hide("x$LOOPx", secrets) == "x$LOOPx");
  CHECK(hide("", secrets).empty());
}

TEST_CASE("an identity's keys come by name, in headers that hold keys") {
  for (const char* good : {"Authorization: Bearer $T", "cookie: a=$A; b=$B", "X-Tenant: 7", "Authorization: $$$T"}) {
    CAPTURE(good);
    CHECK_FALSE(judge_identity({good}, secret));
  }
  for (const char* bad : {"Authorization: Bearer x", "cookie: a=b", "Authorization:", "X-Tenant: $T", "X-$T: a", "no line", "A: b\r\nC: d", "", "Authorization: $$T"}) {
    CAPTURE(bad);
    CHECK(judge_identity({"X-Tenant: 7", bad}, secret));
  }
  CHECK(judge_identity({}, secret));
  CHECK(judge_identity(std::vector<std::string>(51, "A: b"), secret));
}

TEST_CASE("the head of a plain request is written as the engine writes it") {
  auto url = Url::parse("http://a.test:8080/x%20y?b=c");
  REQUIRE(url.ok());
  CHECK(plain_head("GET", *url) == "GET /x%20y?b=c HTTP/1.1\r\nHost: a.test:8080\r\n\r\n");
  CHECK(plain_head("POST", *url) == "POST /x%20y?b=c HTTP/1.1\r\nHost: a.test:8080\r\nContent-Length: 0\r\n\r\n");
  CHECK_FALSE(plain_head("(raw)", *url));
}

TEST_CASE("a spread is made of values that were measured") {
  CHECK(spread({}).count == 0);
  Spread one = spread({7});
  CHECK((one.least == 7 && one.lower == 7 && one.median == 7 && one.upper == 7 && one.most == 7));
  Spread five = spread({50, 10, 40, 20, 30});
  CHECK((five.count == 5 && five.least == 10 && five.lower == 20 && five.median == 30 && five.upper == 40 && five.most == 50));
  CHECK(spread({4, 1, 3, 2}).median == 2);
}
