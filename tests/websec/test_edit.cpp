#include "plugins/websec-http/http/edit.hpp"

#include "plugins/websec-http/http/json_splice.hpp"
#include "plugins/websec-http/http/multipart.hpp"
#include "tests/support/catch.hpp"

using namespace h5i::websec;

namespace {

const std::string kGet = "GET /p/q?a=1&b=2&a=3 HTTP/1.1\r\nHost: h.test\r\nX-One: 1\r\nCookie: sid=abc; theme=dark\r\nx-one: 2\r\n\r\n";

Request recorded(const std::string& head, const std::string& body = "") {
  Request r;
  auto no = read_request(head, body, "http", &r);
  INFO((no ? no->what : ""));
  REQUIRE_FALSE(no);
  return r;
}
// The bytes after the edits, or "refused: id at N".
std::string edited(Request r, std::initializer_list<std::string_view> edits) {
  std::vector<Edit> list;
  for (std::string_view text : edits) {
    Edit e;
    if (auto no = parse_edit(text, &e)) return "refused: " + std::string(no->id);
    if (e.file == "pic.png" || e.file == "dir/pic.png") e.value = "\x89PNG";
    list.push_back(e);
  }
  size_t at = 0;
  if (auto no = apply_edits(&r, list, &at)) return "refused: " + std::string(no->id) + " at " + std::to_string(at);
  Written w;
  if (auto no = write_request(r, &w)) return "not written: " + std::string(no->id);
  return w.head + std::string(w.body);
}
std::string line(const std::string& bytes, size_t n) {
  size_t at = 0;
  while (n-- > 0) at = bytes.find("\r\n", at) + 2;
  return bytes.substr(at, bytes.find("\r\n", at) - at);
}
std::string target(std::initializer_list<std::string_view> edits) {
  std::string l = line(edited(recorded(kGet), edits), 0);
  return l.starts_with("GET ") ? l.substr(4, l.size() - 13) : l;
}
std::string post(const std::string& type, const std::string& body, std::initializer_list<std::string_view> edits) {
  std::string head = "POST / HTTP/1.1\r\nHost: h\r\n" + (type.empty() ? "" : "Content-Type: " + type + "\r\n") + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  std::string out = edited(recorded(head, body), edits);
  if (!out.starts_with("POST")) return out;
  size_t end = out.find("\r\n\r\n");
  std::string after = out.substr(end + 4), length = "Content-Length: " + std::to_string(after.size());
  CHECK(out.substr(0, end + 2).find("\r\n" + length + "\r\n") != std::string::npos);
  return after;
}
std::string json(const std::string& body, std::initializer_list<std::string_view> edits) { return post("application/json", body, edits); }

}  // namespace

TEST_CASE("no edit, no change") { CHECK(edited(recorded(kGet), {}) == kGet); }

TEST_CASE("a path is set and the query stays") {
  CHECK(target({"path=/x/../y%2e"}) == "/x/../y%2e?a=1&b=2&a=3");
  for (std::string_view bad : {"path=x", "path=/a b", "path=/a?b", "path=/a#b", "path=/\xc3\xa9", "path=/a\r\nX: y", "path="}) CHECK(target({bad}) == "refused: edit at 0");
  CHECK(target({"+path=/x"}) == "refused: edit");
}

TEST_CASE("a query's pairs are set, added and taken out; what is not named keeps its spelling") {
  CHECK(target({"query.b=x y&z"}) == "/p/q?a=1&b=x%20y%26z&a=3");
  CHECK(target({"query.a=9"}) == "/p/q?a=9&b=2");
  CHECK(target({"+query.a=9"}) == "/p/q?a=1&b=2&a=3&a=9");
  CHECK(target({"-query.a"}) == "/p/q?b=2");
  CHECK(target({"-query.a", "-query.b"}) == "/p/q");
  CHECK(target({"query.new=%' <"}) == "/p/q?a=1&b=2&a=3&new=%25%27%20%3C");
  CHECK(target({"-query.none"}) == "refused: nothing-to-remove at 0");
  Request r = recorded("GET /?%61=1&&c&d=%zz+x HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(line(edited(r, {"query.a=2"}), 0) == "GET /?%61=2&&c&d=%zz+x HTTP/1.1");
  CHECK(line(edited(r, {"query.c=2"}), 0) == "GET /?%61=1&&c=2&d=%zz+x HTTP/1.1");
}

TEST_CASE("headers and cookies are set where they stand") {
  CHECK(edited(recorded(kGet), {"header.X-ONE=3"}) == "GET /p/q?a=1&b=2&a=3 HTTP/1.1\r\nHost: h.test\r\nX-ONE: 3\r\nCookie: sid=abc; theme=dark\r\n\r\n");
  CHECK(edited(recorded(kGet), {"-header.x-one", "+header.Z=1", "header.Host=other"}) ==
        "GET /p/q?a=1&b=2&a=3 HTTP/1.1\r\nHost: other\r\nCookie: sid=abc; theme=dark\r\nZ: 1\r\n\r\n");
  CHECK(line(edited(recorded(kGet), {"cookie.sid=new=="}), 3) == "Cookie: sid=new==; theme=dark");
  CHECK(line(edited(recorded(kGet), {"cookie.theme=x"}), 3) == "Cookie: sid=abc; theme=x");
  CHECK(line(edited(recorded(kGet), {"cookie.more=x"}), 3) == "Cookie: sid=abc; theme=dark; more=x");
  CHECK(line(edited(recorded(kGet), {"-cookie.sid"}), 3) == "Cookie: theme=dark");
  CHECK(line(edited(recorded(kGet), {"-cookie.sid", "-cookie.theme"}), 3) == "x-one: 2");
  Request none = recorded("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(line(edited(none, {"cookie.a=1", "cookie.b=2"}), 2) == "Cookie: a=1; b=2");
  Request two = recorded("GET / HTTP/1.1\r\nHost: h\r\nCookie: a=1\r\nCookie: b=2; a=3\r\n\r\n");
  CHECK(edited(two, {"cookie.b=9"}) == "GET / HTTP/1.1\r\nHost: h\r\nCookie: a=1\r\nCookie: b=9; a=3\r\n\r\n");
  CHECK(edited(two, {"cookie.a=9"}) == "GET / HTTP/1.1\r\nHost: h\r\nCookie: a=9\r\nCookie: b=2\r\n\r\n");
  for (std::string_view bad : {"cookie.a=1; b=2", "cookie.a=1\r\nX: y", "cookie.a b=1"}) CHECK(edited(two, {bad}) == "refused: cookie-bytes at 0");
  CHECK(edited(two, {"header.A=1\r\nB: 2"}) == "refused: header-line-break at 0");
  CHECK(edited(two, {"header.A B=1"}) == "refused: header-name at 0");
}

TEST_CASE("one value of a JSON body changes and nothing else") {
  std::string body = "{ \"a\" : {\"b\":1.0, \"c\" :[ 1,2 ,3]},\n  \"a\\u0062\": \"x\" , \"dup\":1, \"dup\":2 }";
  CHECK(json(body, {"json.$.a.b=2"}) == "{ \"a\" : {\"b\":2, \"c\" :[ 1,2 ,3]},\n  \"a\\u0062\": \"x\" , \"dup\":1, \"dup\":2 }");
  CHECK(json(body, {"json.$.a.c[1]=bob"}) == "{ \"a\" : {\"b\":1.0, \"c\" :[ 1,\"bob\" ,3]},\n  \"a\\u0062\": \"x\" , \"dup\":1, \"dup\":2 }");
  CHECK(json(body, {"json.$.ab=\"5\""}) == "{ \"a\" : {\"b\":1.0, \"c\" :[ 1,2 ,3]},\n  \"a\\u0062\": \"5\" , \"dup\":1, \"dup\":2 }");
  CHECK(json(body, {"json.$.dup=null"}) == "{ \"a\" : {\"b\":1.0, \"c\" :[ 1,2 ,3]},\n  \"a\\u0062\": \"x\" , \"dup\":1, \"dup\":null }");
  CHECK(json(body, {"json.$['n=]w']={\"z\":[]}"}) == "{ \"a\" : {\"b\":1.0, \"c\" :[ 1,2 ,3]},\n  \"a\\u0062\": \"x\" , \"dup\":1, \"dup\":2,\"n=]w\":{\"z\":[]} }");
  CHECK(json("[1]", {"json.$[1]=2", "+json.$=3", "-json.$[0]"}) == "[2,3]");
  CHECK(json("{}", {"json.$.a=a\"b\n"}) == "{\"a\":\"a\\\"b\\n\"}");
  CHECK(json("{\"a\":1,\"b\":2,\"c\":3}", {"-json.$.b"}) == "{\"a\":1,\"c\":3}");
  CHECK(json("{\"a\":1,\"b\":2}", {"-json.$.b", "-json.$.a"}) == "{}");
  CHECK(json(" 7 ", {"json.$=8"}) == " 8 ");
  CHECK(json("{\"\\ud800\":1}", {"json.$.a=2"}) == "{\"\\ud800\":1,\"a\":2}");
  CHECK(json("", {"json.$.a=1"}) == "{\"a\":1}");
  for (std::string_view bad : {"json.$.a.x.y=1", "json.$.a[0]=1", "json.$.a.c[9]=1", "json.$.a.c.x=1", "-json.$.none", "json.a=1", "json.$..a=1", "json.$[x]=1", "json.$['a=1", "+json.$.a=1",
                               "-json.$", "json.$[99999999999999999999]=1"})
    CHECK(json(body, {bad}).starts_with("refused: "));
  for (const std::string& broken : std::vector<std::string>{"{\"a\":1", "{\"a\" 1}", "[1,]", "{} x", "nope", "\"open", "{\"a\":01}", std::string(100000, '[')}) CHECK(json(broken, {"json.$.a=1"}) == "refused: not-json at 0");
  std::string deep = std::string(200, '[') + "1" + std::string(200, ']');
  CHECK(json(deep, {"json.$=1"}) == "1");
}

TEST_CASE("a form's pairs") {
  std::string type = "application/x-www-form-urlencoded; charset=utf-8";
  CHECK(post(type, "a=1&b=%41+x&a=2", {"form.b=c d+e"}) == "a=1&b=c+d%2Be&a=2");
  CHECK(post(type, "a=1&b=2&a=3", {"form.a=9"}) == "a=9&b=2");
  CHECK(post(type, "a=1", {"+form.a=2", "-form.a"}) == "");
  CHECK(post("application/json", "{}", {"form.a=1"}) == "refused: not-a-form at 0");
  std::string made = edited(recorded("POST / HTTP/1.1\r\nHost: h\r\n\r\n"), {"form.a=1"});
  CHECK(made == "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=1");
}

TEST_CASE("a part of a multipart body changes and the others stay") {
  std::string type = "multipart/form-data; boundary=\"b:1\"";
  std::string body = "pre\r\n--b:1\r\ncontent-disposition: form-data; x=y; NAME=\"a\"\r\nX: 1\r\n\r\none\r\n--b:1  \r\nContent-Disposition: form-data; filename=\"b\"; name=f\r\n\r\n\r\n--b:1--\r\nafter";
  std::string changed = body;
  changed.replace(changed.find("one"), 3, "two\r\n--b");
  CHECK(post(type, body, {"multipart.a=two\r\n--b"}) == changed);
  changed = body;
  changed.insert(body.find("\r\n--b:1--"), "\x89PNG");
  CHECK(post(type, body, {"multipart.f=@pic.png"}) == changed);
  changed = body;
  changed.insert(body.find("--b:1--"), "--b:1\r\nContent-Disposition: form-data; name=\"b\"\r\n\r\nx\r\n");
  CHECK(post(type, body, {"multipart.b=x"}) == changed);
  changed = body;
  changed.insert(body.find("--b:1--"), "--b:1\r\nContent-Disposition: form-data; name=\"n\"; filename=\"pic.png\"\r\nContent-Type: application/octet-stream\r\n\r\n\x89PNG\r\n");
  CHECK(post(type, body, {"multipart.n=@dir/pic.png"}) == changed);
  CHECK(post(type, body, {"-multipart.a", "-multipart.f"}) == "pre\r\n--b:1--\r\nafter");
  CHECK(post(type, body, {"multipart.a=x\r\n--b:1--"}) == "refused: multipart-boundary at 0");
  CHECK(post(type, body, {"multipart.a=--b:1"}) == "refused: multipart-boundary at 0");
  CHECK(post(type, body, {"-multipart.none"}) == "refused: nothing-to-remove at 0");
  std::string part = "--b:1\r\nContent-Disposition: form-data; name=a\r\n", end = "\r\n--b:1--\r\n";
  CHECK(post(type, part + end, {"multipart.a=x"}) == part + "\r\nx" + end);  // a part that ends with its headers
  CHECK(post(type, "--b:1\r\n\r\nnameless" + end, {"multipart.=x"}) == "refused: edit");
  CHECK(post(type, "--b:1\r\n\r\nnameless" + end, {"multipart.a=x"}) == "--b:1\r\n\r\nnameless\r\n" + part.substr(0, part.find("name=a")) + "name=\"a\"\r\n\r\nx" + end);
  for (std::string broken : {"x", "--b:1\r\n", "--b:1\r\n\r\nx", "--b:1x\r\n\r\n\r\n--b:1--"}) CHECK(post(type, broken, {"multipart.a=1"}) == "refused: not-multipart at 0");
  CHECK(post("text/plain", "x", {"multipart.a=1"}) == "refused: not-multipart at 0");
  CHECK(post("multipart/form-data", "x", {"multipart.a=1"}) == "refused: not-multipart at 0");
  std::string made = edited(recorded("POST / HTTP/1.1\r\nHost: h\r\n\r\n"), {"multipart.a=h5i-part-0", "multipart.b\"\r=2"});
  CHECK(made == "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/form-data; boundary=h5i-part-1\r\nContent-Length: 153\r\n\r\n"
                "--h5i-part-1\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nh5i-part-0\r\n--h5i-part-1\r\nContent-Disposition: form-data; name=\"b%22%0D\"\r\n\r\n2\r\n--h5i-part-1--\r\n");
}

TEST_CASE("a length follows the body, unless an edit names it") {
  std::string head = "POST / HTTP/1.1\r\ncontent-LENGTH:  3\r\nHost: h\r\n\r\n";
  CHECK(edited(recorded(head, "abc"), {"body=12345"}) == "POST / HTTP/1.1\r\ncontent-LENGTH:  5\r\nHost: h\r\n\r\n12345");
  CHECK(edited(recorded(head, "abc"), {"header.Content-Length=9", "body=x"}) == "POST / HTTP/1.1\r\nContent-Length: 9\r\nHost: h\r\n\r\nx");
  CHECK(edited(recorded(head, "abc"), {"header.X=1"}) == "POST / HTTP/1.1\r\ncontent-LENGTH:  3\r\nHost: h\r\nX: 1\r\n\r\nabc");
  CHECK(edited(recorded(head, "abc"), {"-body"}) == "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
  CHECK(edited(recorded(head, "abc"), {"body=@pic.png"}) == "POST / HTTP/1.1\r\ncontent-LENGTH:  4\r\nHost: h\r\n\r\n\x89PNG");
  // The tool's own edit never makes both.
  CHECK(edited(recorded(head, "abc"), {"header.Transfer-Encoding=chunked"}) == "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  CHECK(edited(recorded(head, "abc"), {"header.Transfer-Encoding=chunked", "header.Content-Length=3"}) == "not written: te-and-cl");
  std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  CHECK(edited(recorded(chunked, "3\r\nabc\r\n0\r\n\r\n"), {"body=longer"}) == chunked + "6\r\nlonger\r\n0\r\n\r\n");
  CHECK(edited(recorded(chunked, "3\r\nabc\r\n0\r\n\r\n"), {"-header.transfer-encoding"}) == "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
}

TEST_CASE("edits are applied in order, all of them or none") {
  CHECK(target({"query.b=1", "query.b=2", "-query.a"}) == "/p/q?b=2");
  Request r = recorded(kGet);
  std::vector<Edit> edits(2);
  REQUIRE_FALSE(parse_edit("path=/changed", &edits[0]));
  REQUIRE_FALSE(parse_edit("-header.none", &edits[1]));
  size_t at = 9;
  CHECK(apply_edits(&r, edits, &at));
  CHECK(at == 1);
  CHECK(r.target == "/p/q?a=1&b=2&a=3");
}

TEST_CASE("what is no edit is refused with its reason") {
  Edit e;
  for (std::string_view bad : {"", "x=1", "path", "path.x=1", "query=1", "query.=1", "query.a", "-query.a=1", "header", "body", "+body=x", "-path", "body=@", "json.$['a'", "-", "+"}) {
    INFO(bad);
    CHECK(parse_edit(bad, &e));
  }
  REQUIRE_FALSE(parse_edit("header.A=b=c.d", &e));
  CHECK(e.key == "A");
  CHECK(e.value == "b=c.d");
  REQUIRE_FALSE(parse_edit("body=@a/b", &e));
  CHECK(e.file == "a/b");
  REQUIRE_FALSE(parse_edit("header.A=@x", &e));
  CHECK(e.file.empty());
}

TEST_CASE("edits of a target that has no path are refused") {
  CHECK(edited(recorded("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), {"path=/x"}) == "refused: edit at 0");
  CHECK(edited(recorded("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n"), {"query.a=1"}) == "refused: edit at 0");
  CHECK(line(edited(recorded("GET http://h/a?b=1 HTTP/1.1\r\nHost: h\r\n\r\n"), {"path=/c", "query.b=2"}), 0) == "GET http://h/c?b=2 HTTP/1.1");
}
