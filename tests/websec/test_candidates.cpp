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
  for (const char* bad : {"openapi: 3.0.0\npaths: {}\n", "{\"swagger\":\"2.0\"}", "{\"openapi\":\"2\"}", "{", "", "{\"openapi\":\"3.0\",\"openapi\":\"3.0\"}"}) {
    INFO(bad);
    CHECK_FALSE(read_candidates(CandidateFormat::OPENAPI, bad).error.empty());
  }
  CHECK(read_candidates(CandidateFormat::OPENAPI, "openapi: 3.0.0\n").error.find("YAML") != std::string::npos);
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
