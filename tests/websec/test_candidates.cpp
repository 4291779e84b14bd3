// Files of strangers as candidates: what is taken, what is left out and why, and that no file costs more than its caps.
#include <chrono>

#include "plugins/websec-http/candidates/candidates.hpp"
#include "plugins/websec-http/candidates/json_cursor.hpp"
#include "tests/support/catch.hpp"
#include "tests/websec/sequences.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

std::string text_of(const Imported& i) {
  std::string out = i.error.empty() ? "" : "error\n";
  for (const Candidate& c : i.candidates) {
    out += c.method + " " + c.url;
    for (const std::string& h : c.headers) out += " " + h;
    out += "\n";
  }
  for (const auto& [why, count] : i.left_out) out += why + "=" + std::to_string(count) + "\n";
  return out + (i.cut ? "cut\n" : "");
}
std::string har(const std::string& entries) { return "{\"log\":{\"version\":\"1.2\",\"creator\":{},\"entries\":[" + entries + "]}}"; }
std::string entry(const std::string& method, const std::string& url, const std::string& headers = "") { return R"({"request":{"method":")" + method + R"(","url":")" + url + R"(","headers":[)" + headers + "]}}"; }
std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST_CASE("a HAR gives methods, URLs and names of headers, each once, and no value") {
  const std::string file = har(entry("GET", "https://a.test/x?y=1#frag", R"({"name":"Authorization","value":"very-secret"},{"value":"very-secret","name":"X-A"},{"name":":authority","value":"x"},{"name":"x-a"},{"name":"bad name"},{"name":7},5,[])") + "," +
                               entry("GET", "https://a.test/x?y=1") + "," + entry("POST", "https://a.test/x?y=1") + "," + entry("GET", "ftp://a.test/") + "," + entry("GET", "https://u:very-secret@a.test/") + "," + entry("GET", "/relative") + "," +
                               entry("G ET", "https://a.test/") + "," + entry("", "https://a.test/") + "," + entry("GET", "https://a.test/" + std::string(5000, 'a')) + R"(,{"response":{}},7,{"request":null},{"request":{"method":1,"url":{}}})");
  Imported i = read_candidates(CandidateFormat::HAR, file);
  CHECK(text_of(i) == "GET https://a.test/x?y=1 Authorization X-A\nPOST https://a.test/x?y=1\nduplicate=1\nmethod=6\nscheme=1\nurl=1\nurl-credentials=1\nurl-too-long=1\n");
  CHECK(text_of(i).find("secret") == std::string::npos);
  CHECK(i.candidates[0].place == 1);
  CHECK(i.candidates[1].place == 3);
  // Spelled with escapes it is the same.
  CHECK(text_of(read_candidates(CandidateFormat::HAR, "{\"l\\u006fg\":{\"entries\":[" + entry("G\\u0045T", "https:\\/\\/a.test/\\ud83d\\ude00") + "]}}")) == "GET https://a.test/%F0%9F%98%80\n");
}

TEST_CASE("what is no HAR is an error and gives nothing, wherever it breaks") {
  const std::string good = har(entry("GET", "https://a.test/"));
  CHECK(read_candidates(CandidateFormat::HAR, good).candidates.size() == 1);
  for (size_t n = 0; n < good.size(); n++) CHECK_FALSE(read_candidates(CandidateFormat::HAR, good.substr(0, n)).error.empty());
  for (const std::string& bad : {std::string("[]"), std::string("{}"), std::string("null"), std::string("{\"log\":{}}"), std::string("{\"log\":{\"entries\":{}}}"), good + "x", std::string("\xef\xbb\xbf") + good, "{\"log\":{\"entries\":[" + nested(200000) + "]}}",
                                 "{\"x\":" + nested(100) + ",\"log\":{\"entries\":[]}}", std::string("{\"log\":{\"entries\":[}]}}"), std::string("{\"log\":{\"entries\":[,]}}"), std::string("{\"log\" {\"entries\":[]}}"), std::string("{\"log\":{\"entries\":[{]}]}}"),
                                 std::string("{\"log\":{\"entries\":[tru]}}"), std::string("{\"log\":{\"entries\":[\"\\x\"]}}"), std::string("{\"log\":{\"entries\":[\"\n\"]}}")}) {
    INFO(bad.substr(0, 100));
    Imported i = read_candidates(CandidateFormat::HAR, bad);
    CHECK_FALSE(i.error.empty());
    CHECK(i.candidates.empty());
  }
}

TEST_CASE("caps hold: entries, bytes, headers, strings that nobody asked for") {
  CandidateLimits small;
  small.entries = 3;
  small.bytes = 400;
  std::string four;
  for (int i = 0; i < 4; i++) four += (i ? "," : "") + entry("GET", "https://a.test/" + std::to_string(i));
  Imported cut = read_candidates(CandidateFormat::HAR, har(four), small);
  CHECK((cut.cut && cut.candidates.size() == 3));
  CHECK_FALSE(read_candidates(CandidateFormat::HAR, har(four) + std::string(400, ' '), small).error.empty());
  std::string headers;
  for (int i = 0; i < 1000; i++) headers += std::string(i ? "," : "") + R"({"name":"X-)" + std::to_string(i) + R"("})";
  CHECK(read_candidates(CandidateFormat::HAR, har(entry("GET", "https://a.test/", headers))).candidates[0].headers.size() == 100);
  // Large bodies, a million members, a long number: passed over, and not for long.
  const auto began = std::chrono::steady_clock::now();
  std::string members = "{\"a\":0";
  for (int i = 0; i < 500000; i++) members += ",\"a\":0";
  CHECK(read_candidates(CandidateFormat::HAR, har(entry("GET", "https://a.test/", "{\"name\":\"" + std::string(20u << 20, 'x') + "\"}") + "," + members + "},\"" + std::string(20u << 20, 'y') + "\"")).error.empty());
  CHECK_FALSE(read_candidates(CandidateFormat::HAR, har(std::string(1u << 20, '1'))).error.empty());
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(60));
}

TEST_CASE("a list of URLs is one a line") {
  CHECK(text_of(read_candidates(CandidateFormat::URLS, "# comment\nhttps://a.test/1\r\n\n  http://A.test:80/../2  \nnot a url\nhttps://a.test/1\njavascript:alert(1)\nhttps://a.test/3")) ==
        "GET https://a.test/1\nGET http://a.test/2\nGET https://a.test/3\nduplicate=1\nurl=2\n");
  CHECK(read_candidates(CandidateFormat::URLS, "").candidates.empty());
  std::string many;
  for (int i = 0; i < 30000; i++) many += "https://a.test/" + std::to_string(i) + "\n";
  Imported i = read_candidates(CandidateFormat::URLS, many);
  CHECK((i.cut && i.candidates.size() == 20000));
  CHECK(i.candidates.back().place == 20000);
}

TEST_CASE("a description gives each operation on each server, with examples in the path") {
  const std::string file = R"({"openapi":"3.0.1","servers":[{"url":"https://{host}.test:{port}/v1/","variables":{"host":{"default":"api"},"port":{"default":"8443"}}},{"url":"/relative"}],
    "paths":{"/pets/{id}/{name}":{"parameters":[{"name":"id","in":"path","schema":{"type":"integer"}}],
      "get":{"parameters":[{"$ref":"#/components/parameters/Limit"},{"name":"X-Key","in":"header","example":"very-secret"},{"name":"opt","in":"query"},{"$ref":"#/components/parameters/None"},{"$ref":"other.json"}]},
      "post":{"requestBody":{"content":{"application/json":{}}},"servers":[{"url":"http://other.test"}]},"x-note":{},"summary":"s"}},
    "components":{"parameters":{"Limit":{"name":"limit","in":"query","required":true,"example":"a b&c"},"Loop":{"$ref":"#/components/parameters/Loop"}}}})";
  CHECK(text_of(read_candidates(CandidateFormat::OPENAPI, file)) == "GET https://api.test:8443/v1/pets/1/name?limit=a%20b%26c X-Key\nPOST http://other.test/pets/1/name Content-Type\n");
  CHECK(text_of(read_candidates(CandidateFormat::OPENAPI, R"({"openapi":"3.1.0","paths":{"/x":{"get":{}}}})")) == "no-absolute-server=1\n");
  for (const char* bad : {"swagger: '2.0'\n", "{\"swagger\":\"2.0\"}", "{\"openapi\":\"2\"}", "{", "", "{\"openapi\":\"3.0\",\"openapi\":\"3.0\"}"}) {
    INFO(bad);
    CHECK_FALSE(read_candidates(CandidateFormat::OPENAPI, bad).error.empty());
  }
  CHECK_FALSE(read_candidates(CandidateFormat::OPENAPI, "{\"openapi\":\"3.0\",\"x\":" + nested(100000) + "}").error.empty());
  // Many references into one large object, and one parameter with a great many members.
  std::string shared, uses;
  for (int i = 0; i < 3000; i++) shared += std::string(i ? "," : "") + "\"P" + std::to_string(i) + "\":{\"name\":\"n\",\"in\":\"query\"}";
  for (int i = 0; i < 20000; i++) uses += std::string(i ? "," : "") + "{\"$ref\":\"#/components/parameters/P2999\"}";
  std::string members;
  for (int i = 0; i < 3000; i++) members += "\"m" + std::to_string(i) + "\":0,";
  const auto began = std::chrono::steady_clock::now();
  Imported i = read_candidates(CandidateFormat::OPENAPI, "{\"openapi\":\"3.0\",\"servers\":[{\"url\":\"http://a.test\"}],\"paths\":{\"/x\":{\"parameters\":[" + uses + "],\"get\":{" + members + "\"parameters\":[" + uses + "]}}},\"components\":{\"parameters\":{" + shared + "}}}");
  CHECK(text_of(i) == "GET http://a.test/x\n");
  std::string million = "{\"openapi\":\"3.0\"";
  for (int n = 0; n < 500000; n++) million += ",\"m" + std::to_string(n) + "\":0";
  CHECK_FALSE(read_candidates(CandidateFormat::OPENAPI, million + "}").error.empty());
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(30));
}

TEST_CASE("a description in YAML is the same description") {
  const std::string file = R"(# of an API
openapi: 3.0.1
servers:
  - url: "https://{host}.test:{port}/v1/"
    variables: {host: {default: api}, port: {default: '8443'}}
  - url: /relative
paths:
  /pets/{id}/{name}:
    parameters:
      - {name: id, in: path, schema: {type: integer}}
    get:
      parameters:
        - $ref: '#/components/parameters/Limit'
        - name: X-Key
          in: header
          example: very-secret
        - name: n
          in: query
          required: true
          example: 12
      responses:
        200:
          description: >-
            folded
            text
        404:
          description: |
            kept
    post:
      requestBody: {content: {application/json: {}}}
      servers: [{url: 'http://other.test'}]
    summary: s
components:
  parameters:
    Limit: {name: limit, in: query, required: true, example: a b&c}
...
)";
  CHECK(text_of(read_candidates(CandidateFormat::OPENAPI, file)) == "GET https://api.test:8443/v1/pets/1/name?limit=a%20b%26c&n=12 X-Key\nPOST http://other.test/pets/1/name Content-Type\n");
  CHECK(text_of(read_candidates(CandidateFormat::OPENAPI, "\xef\xbb\xbfopenapi: 3.1.0\nservers: [{url: 'http://a.test'}]\npaths: {/x: {get: {}}}\n")) == "GET http://a.test/x\n");
  // What stands elsewhere is left out and counted; a tag says nothing.
  CHECK(text_of(read_candidates(CandidateFormat::OPENAPI, "openapi: !!str 3.0.0\nx: &s [{url: 'http://b.test'}]\nservers: [{url: 'http://a.test'}]\npaths:\n  /x: {get: {servers: *s}}\n")) == "GET http://a.test/x\nalias=1\n");

  const std::string head = "openapi: 3.0.0\n";
  struct Bad {
    std::string file, word;
  };
  for (const Bad& b : {Bad{"", "no YAML document"}, {"# nothing\n", "no YAML document"}, {head + "a: 1\na: 2\n", "twice in line 3"}, {head + "---\nx: 1\n", "more than one document"}, {head + "? [a]\n: 1\n", "no text"}, {head + "x: &a 1\n*a : 2\n", "alias where a key"},
                       {head + "x: [1\n", "no YAML in line"}, {head + "\tx: 1\n", "no YAML in line"}, {head + "x: \"\xff\xfe\"\n", "no YAML"}, {"- openapi\n", "not 3.x"}, {"plain text", "not 3.x"}, {head + "x: " + std::string(100'000, '['), "deeper than 64"},
                       {head + "x: " + std::string(100'000, '{'), ""}, {std::string(100'000, '-') , ""}, {std::string("openapi: 3.0.0\nx: a\0b\n", 22), ""}}) {
    INFO(b.file.substr(0, 60));
    const Imported i = read_candidates(CandidateFormat::OPENAPI, b.file);
    CHECK_FALSE(i.error.empty());
    CHECK(i.error.find(b.word) != std::string::npos);
    CHECK(i.candidates.empty());
  }
  const auto began = std::chrono::steady_clock::now();
  // A few lines that stand for a billion, members and values without end, one very long line, keys without values.
  std::string laughs = head + "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; c++) laughs += std::string(1, c) + ": &" + c + " [" + [&] { std::string all; for (int i = 0; i < 9; i++) all += std::string(i ? "," : "") + "*" + static_cast<char>(c - 1); return all; }() + "]\n";
  CHECK(read_candidates(CandidateFormat::OPENAPI, laughs + "servers: [{url: 'http://a.test'}]\npaths: {/x: {get: {}}}\n").candidates.size() == 1);
  std::string members = head + "x:\n", values = head + "x: [", keys = head;
  for (int i = 0; i < 200'000; i++) members += "  m" + std::to_string(i) + ": 0\n";
  for (int i = 0; i < 1'000'000; i++) values += "0,";
  CHECK(read_candidates(CandidateFormat::OPENAPI, members).error.find("4000 members") != std::string::npos);
  CHECK(read_candidates(CandidateFormat::OPENAPI, values + "]\n").error.find("300000 values") != std::string::npos);
  for (int i = 0; i < 100'000; i++) keys += "? ";
  CHECK_FALSE(read_candidates(CandidateFormat::OPENAPI, keys).error.empty());
  CHECK(read_candidates(CandidateFormat::OPENAPI, head + "x: " + std::string(7u << 20, 'a') + "\n").error.empty());
  CHECK_FALSE(read_candidates(CandidateFormat::OPENAPI, head + "x: " + std::string(9u << 20, 'a') + "\n").error.empty());
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(30));
}

TEST_CASE("no sequence of the table is in a candidate as it is") {
  for (const test::Sequence& q : test::hostile_sequences()) {
    INFO(q.what);
    std::string quoted;
    json::detail::write_string(quoted, q.bytes);
    const std::string bare = quoted.substr(1, quoted.size() - 2);
    for (const Imported& i : {read_candidates(CandidateFormat::HAR, har(entry("GET", "https://a.test/" + bare, "{\"name\":" + quoted + "}") + "," + entry(bare, "https://a.test/"))), read_candidates(CandidateFormat::URLS, "https://a.test/" + q.bytes),
                              read_candidates(CandidateFormat::OPENAPI, "{\"openapi\":\"3.0\",\"servers\":[{\"url\":\"https://a.test\"}],\"paths\":{" + quoted + ":{\"get\":{\"parameters\":[{\"in\":\"header\",\"name\":" + quoted + "}]}}}}")})
      CHECK(test::harm(text_of(i), true) == "");
  }
}
