// A send as HAR, JSON line, WARC and curl command.
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "plugins/websec-http/export/formats.hpp"
#include "plugins/websec-http/export/message_text.hpp"
#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"
#include "tests/websec/har_rules.hpp"
#include "tests/websec/sequences.hpp"

using namespace h5i;
using namespace h5i::websec;
using namespace h5i::test;

namespace {

const std::string kSecret = "very-secret-value";

bool credential(std::string_view name) { return same_name(name, "authorization") || same_name(name, "cookie") || same_name(name, "x-api-key"); }
const ExportRules kMasked{false, credential}, kOpen{true, credential};
const ExportSource kSource{"s", "01jd0000000000000000000000", "1.2.3", "2026-01-02T03:04:05.678Z"};

json::Value parsed(const std::string& text) {
  json::ParseError e;
  auto v = json::parse(text, &e);
  CAPTURE(text.substr(0, 500), e.message, e.offset);
  REQUIRE(v);
  return *v;
}

ExportedSend sent(const std::string& method, const std::string& url, json::Value outcome) {
  ExportedSend e;
  e.number = 7;
  e.time = "2026-01-02T03:04:05.678Z";
  e.record = json::Object{{"method", method}, {"url", url}, {"peer", "127.0.0.1:8080"}, {"head_bytes", 50}, {"body_bytes", 0}, {"head_sha256", std::string(64, 'a')}, {"body_sha256", std::string(64, 'b')},
                          {"cookies", json::Array{"a"}}, {"credentials", json::Array{"Authorization"}}, {"computed", json::Array{"Host: x"}}};
  e.outcome = std::move(outcome);
  e.ended = e.outcome.is_null() ? "unknown-outcome" : e.outcome["ended"].string();
  return e;
}
json::Value answered(int status, int64_t bytes, json::Value times = json::Object{{"connect_us", 100}, {"written_us", 150}, {"first_byte_us", 900}, {"total_us", 1000}}) {
  return json::Object{{"ended", "complete"}, {"status", status}, {"reason", "R"}, {"head_bytes", 40}, {"body_bytes", bytes}, {"body_sha256", std::string(64, 'c')}, {"headers", json::Array{"Content-Type"}},
                      {"content_type", "text/plain"}, {"times", std::move(times)}, {"facts", json::Array{}}};
}
json::Value failed(const char* how, json::Value times) { return json::Object{{"ended", how}, {"sent_bytes", 0}, {"wire_bytes", 0}, {"text", "why"}, {"times", std::move(times)}, {"facts", json::Array{}}}; }

// With messages, as a session keeps them.
ExportedSend kept(std::string request_head, std::string request_body, std::string response_head, std::string response_body) {
  ExportedSend e = sent("POST", "http://127.0.0.1:8080/p?a=b", answered(200, static_cast<int64_t>(response_body.size())));
  e.record["body_bytes"] = request_body.size();
  e.request_head = std::move(request_head);
  e.request_body = std::move(request_body);
  e.response_head = std::move(response_head);
  e.response_body = std::move(response_body);
  return e;
}

std::string document(ExportFormat f, const std::vector<ExportedSend>& list, const ExportRules& rules) {
  std::string out = export_begin(f, kSource);
  bool first = true;
  for (const ExportedSend& e : list) {
    out += export_piece(f, kSource, e, rules, first);
    first = false;
  }
  return out + export_end(f);
}

struct WarcPart {
  std::map<std::string, std::string> fields;
  std::string block;
};
// By its rules alone (WARC 1.1, section 4): what does not follow them is not read on.
std::vector<WarcPart> warc_parts(const std::string& text) {
  std::vector<WarcPart> out;
  for (size_t at = 0; at < text.size();) {
    REQUIRE(text.compare(at, 10, "WARC/1.1\r\n") == 0);
    at += 10;
    WarcPart p;
    for (;;) {
      size_t end = text.find("\r\n", at);
      REQUIRE(end != std::string::npos);
      std::string line = text.substr(at, end - at);
      at = end + 2;
      if (line.empty()) break;
      size_t colon = line.find(": ");
      REQUIRE(colon != std::string::npos);
      p.fields[line.substr(0, colon)] = line.substr(colon + 2);
    }
    size_t length = std::stoul(p.fields["Content-Length"]);
    REQUIRE(text.size() >= at + length + 4);
    p.block = text.substr(at, length);
    REQUIRE(text.compare(at + length, 4, "\r\n\r\n") == 0);
    at += length + 4;
    out.push_back(std::move(p));
  }
  return out;
}

// What programs named curl are given by each command of a text, through `shell`: their words, then their standard input.
struct Called {
  std::vector<std::string> words;
  std::string input;
};
std::vector<Called> called(const std::string& shell, const std::string& text) {
  Scratch dir;
  std::ofstream(dir.path() + "/curl") << "#!/bin/sh\nn=1\nwhile [ -e \"$CALLS/$n\" ]; do n=$((n + 1)); done\nmkdir \"$CALLS/$n\"\nprintf '%s\\0' \"$@\" > \"$CALLS/$n/words\"\n"
                                         "for w in \"$@\"; do [ \"$w\" = @- ] && cat > \"$CALLS/$n/input\"; done\nexit 0\n";
  std::ofstream(dir.path() + "/commands", std::ios::binary) << text;
  REQUIRE(chmod((dir.path() + "/curl").c_str(), 0755) == 0);
  std::string command = "cd '" + dir.path() + "' && CALLS='" + dir.path() + "' AUTHORIZATION='Bearer $x \"y\"' COOKIE='a=1' X_API_KEY=k PATH='" + dir.path() + ":/usr/bin:/bin' " + shell + " commands </dev/null >out 2>err";
  int status = system(command.c_str());
  CAPTURE(command, read_file(dir.path() + "/err"));
  REQUIRE(status == 0);
  CHECK(read_file(dir.path() + "/err").empty());
  std::vector<Called> out;
  for (int n = 1; std::filesystem::exists(dir.path() + "/" + std::to_string(n)); n++) {
    Called c;
    const std::string words = read_file(dir.path() + "/" + std::to_string(n) + "/words");
    for (size_t at = 0; at < words.size();) {
      size_t end = words.find('\0', at);
      c.words.push_back(words.substr(at, end - at));
      at = end + 1;
    }
    c.input = read_file(dir.path() + "/" + std::to_string(n) + "/input");
    out.push_back(std::move(c));
  }
  return out;
}
bool has(const Called& c, const std::string& option, const std::string& value) {
  for (size_t i = 0; i + 1 < c.words.size(); i++)
    if (c.words[i] == option && c.words[i + 1] == value) return true;
  return false;
}
std::vector<std::string> shells() {
  std::vector<std::string> out = {"bash"};
  for (const char* other : {"zsh", "ksh93"})
    if (std::filesystem::exists(std::string("/usr/bin/") + other)) out.push_back(other);
  return out;
}

}  // namespace

TEST_CASE("each kind of send is an entry that the schema takes, and its time is the sum of its timings") {
  struct Row {
    const char* what;
    ExportedSend e;
    int64_t status, body, content;
    const char* error;
  };
  ExportedSend tunnel = sent("CONNECT", "http://127.0.0.1:8080/", answered(200, 0));
  tunnel.ended = "tunnel";
  ExportedSend cut = sent("GET", "http://127.0.0.1:8080/", answered(200, 3));
  cut.ended = "short";
  ExportedSend coded = sent("GET", "http://127.0.0.1:8080/", answered(200, 30));
  coded.outcome["headers"] = json::Array{"content-encoding"};
  ExportedSend decoded = coded;
  decoded.outcome["decoded_bytes"] = 500;
  ExportedSend six = sent("GET", "http://[::1]/?x", answered(200, 1));
  six.record["peer"] = "[::1]:80";
  const std::vector<Row> rows = {
      {"an answer", sent("GET", "http://127.0.0.1:8080/?a=b&c&=d&&e=%20", answered(200, 5)), 200, 5, 5, nullptr},
      {"HEAD", sent("HEAD", "http://127.0.0.1:8080/", answered(200, 0)), 200, 0, 0, nullptr},
      {"304", sent("GET", "http://127.0.0.1:8080/", answered(304, 0)), 304, 0, 0, nullptr},
      {"CONNECT", tunnel, 200, 0, 0, nullptr},
      {"a body that is too short", cut, 200, 3, 3, "short"},
      {"a content coding that nobody took off", coded, 200, 30, -1, nullptr},
      {"one that the log has without it", decoded, 200, 30, 500, nullptr},
      {"IPv6", six, 200, 1, 1, nullptr},
      {"no connection", sent("GET", "http://127.0.0.1:1/", failed("connect-failed", json::Object{{"total_us", 77}})), 0, -1, 0, "connect-failed"},
      {"no answer", sent("GET", "http://127.0.0.1:1/", failed("connection-lost-after-send", json::Object{{"connect_us", 5}, {"written_us", 9}, {"total_us", 3000}})), 0, -1, 0, "connection-lost-after-send"},
      {"an answer that is no HTTP", sent("GET", "http://127.0.0.1:1/", failed("refused", json::Object{{"connect_us", 5}, {"written_us", 9}, {"first_byte_us", 12}, {"total_us", 13}})), 0, -1, 0, "refused"},
      {"nobody saw the end", sent("GET", "http://127.0.0.1:1/", json::Value()), 0, -1, 0, "unknown-outcome"},
      {"no more than how it ended", sent("GET", "http://127.0.0.1:1/", json::Object{{"of", 7}, {"ended", "complete"}, {"status", 200}, {"text", "too much"}}), 200, -1, -1, nullptr},
      {"an answer before all was written", sent("GET", "http://127.0.0.1:1/", answered(413, 0, json::Object{{"connect_us", 100}, {"written_us", 900}, {"first_byte_us", 500}, {"total_us", 950}})), 413, 0, 0, nullptr},
      {"TLS", sent("GET", "https://127.0.0.1:1/", answered(200, 0, json::Object{{"connect_us", 100}, {"tls_us", 700}, {"written_us", 701}, {"first_byte_us", 800}, {"total_us", 801}})), 200, 0, 0, nullptr},
      {"a connection that was there", sent("GET", "https://127.0.0.1:1/", answered(200, 0, json::Object{{"written_us", 10}, {"first_byte_us", 20}, {"total_us", 30}})), 200, 0, 0, nullptr},
      {"times that are none", sent("GET", "https://127.0.0.1:1/", answered(200, 0, json::Object{{"connect_us", -5}, {"written_us", INT64_MIN}, {"first_byte_us", -1}, {"total_us", -9}})), 200, 0, 0, nullptr},
  };
  std::vector<ExportedSend> all;
  for (const Row& row : rows) {
    INFO(row.what);
    all.push_back(row.e);
    Json har = parsed(document(ExportFormat::HAR, {row.e}, kMasked));
    for (const std::string& error : har_errors(har)) FAIL_CHECK(error);
    REQUIRE(har["log"]["entries"].array().size() == 1);
    const Json& entry = har["log"]["entries"].array()[0];
    CHECK(entry["response"]["status"].integer() == row.status);
    CHECK(entry["response"]["bodySize"].integer() == row.body);
    CHECK(entry["response"]["content"]["size"].integer() == row.content);
    CHECK(entry["response"]["_error"].string() == (row.error ? row.error : ""));
    CHECK(entry["_h5i"]["number"].integer() == 7);
  }
  CHECK(har_errors(parsed(document(ExportFormat::HAR, all, kMasked))).empty());
  CHECK(har_errors(parsed(document(ExportFormat::HAR, {}, kMasked))).empty());
  Scratch files;
  const std::string file = files.path() + "/all.har", wrong = files.path() + "/wrong.har";
  std::ofstream(file) << document(ExportFormat::HAR, all, kMasked);
  if (std::string said = har_validator_says(file); !said.empty()) {
    CHECK(said == "valid");
    Json broken = parsed(document(ExportFormat::HAR, {rows[0].e}, kMasked));
    broken["log"]["entries"].make_array()[0]["response"]["status"] = "200";
    std::ofstream(wrong) << json::canonical(broken);
    CHECK(har_validator_says(wrong).find("should be integer") != std::string::npos);
  }
  const Json tls = parsed(har_entry(rows[14].e, kMasked));
  CHECK(json::canonical(tls["timings"]) == R"({"blocked":-1,"connect":0.7,"dns":-1,"receive":0.001,"send":0.001,"ssl":0.6,"wait":0.099})");
  // The control: what the rules are for is seen by them.
  const Json good = parsed(document(ExportFormat::HAR, {rows[0].e, rows[8].e}, kMasked));
  struct Break {
    const char* what;
    void (*how)(Json&);
  };
  for (const Break& b : std::vector<Break>{{"a negative size", [](Json& e) { e["response"]["bodySize"] = -2; }},
                                           {"a negative time", [](Json& e) { e["time"] = -1; }},
                                           {"another sum", [](Json& e) { e["timings"]["wait"] = e["timings"]["wait"].number() + 1; }},
                                           {"no offset", [](Json& e) { e["startedDateTime"] = "2026-01-02T03:04:05.678"; }},
                                           {"no answer and no reason", [](Json& e) { e["response"].make_object().erase("_error"); e["response"]["status"] = 0; }},
                                           {"a status in words", [](Json& e) { e["response"]["status"] = "200"; }},
                                           {"no content", [](Json& e) { e["response"].make_object().erase("content"); }}}) {
    Json broken = good;
    b.how(broken["log"]["entries"].make_array()[0]);
    INFO(b.what);
    CHECK_FALSE(har_errors(broken).empty());
  }
}

TEST_CASE("kept messages are whole in a document, and as text only where they are text") {
  std::string binary = "\xff\xfe";
  binary += std::string("\0\x01", 2);
  ExportedSend e = kept("POST /p?a=b HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\nX-Latin: \xe9\r\nAccept: 1\r\naccept: 2\r\n\r\n", binary, "HTTP/1.0 200 R\r\nContent-Type: t/p\r\nX-Fold: a\r\n b\r\n\r\n", "text \xc3\xa9\n");
  Json har = parsed(har_entry(e, kMasked));
  CHECK(har["request"]["postData"]["text"].string() == "//4AAQ==");
  CHECK(har["request"]["postData"]["_encoding"].string() == "base64");
  CHECK(har["request"]["postData"]["mimeType"].string() == "a/b");
  CHECK(har["response"]["content"]["text"].string() == "text \xc3\xa9\n");
  CHECK(har["response"]["content"]["encoding"].is_null());
  CHECK(har["response"]["content"]["mimeType"].string() == "text/plain");
  CHECK(har["response"]["httpVersion"].string() == "HTTP/1.0");
  // Names as they came, in their order, none joined; a folded value on one line; bytes that are no UTF-8 by their numbers.
  CHECK(json::canonical(har["request"]["headers"]) ==
        R"([{"name":"Host","value":"x"},{"name":"Content-Type","value":"a/b"},{"name":"X-Latin","value":"é"},{"name":"Accept","value":"1"},{"name":"accept","value":"2"}])");
  CHECK(har["response"]["headers"].array().back()["value"].string() == "a b");
  // Codings are taken off where that can be done; otherwise the bytes are those that came.
  std::string gzip("\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6\x10\x36\x05\0\0\0", 25);
  for (const auto& [coding, body, text, size] : std::vector<std::tuple<std::string, std::string, std::string, int64_t>>{{"gzip", gzip, "hello", 5}, {"gzip", "plain", "", -1}, {"unheard-of", "plain", "", -1}, {"identity", "plain", "plain", 5}}) {
    INFO(coding << " " << size);
    ExportedSend coded = kept("GET / HTTP/1.1\r\n\r\n", "", "HTTP/1.1 200 R\r\nContent-Encoding: " + coding + "\r\n\r\n", body);
    Json response = parsed(har_entry(coded, kMasked))["response"];
    const Json& content = response["content"];
    CHECK(content["size"].integer() == size);
    CHECK(response["bodySize"].integer() == static_cast<int64_t>(body.size()));
    CHECK(content["text"].string() == (size < 0 ? "cGxhaW4=" : text));
    CHECK((content["encoding"].string() == "base64") == (size < 0));
    CHECK(content["compression"].integer() == (coding == "gzip" && size > 0 ? -20 : 0));
  }
  std::string large(5u << 20, 'x');
  large[100] = '\xff';
  CHECK(parsed(har_entry(kept("GET / HTTP/1.1\r\n\r\n", "", "HTTP/1.1 200 R\r\n\r\n", large), kMasked))["response"]["content"]["text"].string().size() == (large.size() + 2) / 3 * 4);
}

TEST_CASE("a value that says who asks is in no document, unless it is asked for") {
  ExportedSend e = kept("POST /p HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + kSecret + "\r\nCookie: a=" + kSecret + "; b=2;" + kSecret + "\r\nx-api-key:" + kSecret + "\r\n folded " + kSecret + "\r\n\r\n", "body",
                    "HTTP/1.1 200 R\r\nset-cookie: id=" + kSecret + "; Path=/\r\nSet-Cookie: two=" + kSecret + "\rSet-Cookie: three=" + kSecret + "\r\n\r\n", "ok");
  for (ExportFormat f : {ExportFormat::HAR, ExportFormat::JSONL, ExportFormat::WARC, ExportFormat::CURL}) {
    INFO(name_of(f));
    const std::string masked = document(f, {e}, kMasked), open = document(f, {e}, kOpen);
    CHECK(masked.find(kSecret) == std::string::npos);
    CHECK((open.find(kSecret) != std::string::npos) == (f != ExportFormat::JSONL));  // the control
    if (f == ExportFormat::HAR) CHECK(har_errors(parsed(masked)).empty());
  }
  Json har = parsed(har_entry(e, kMasked));
  CHECK(json::canonical(har["request"]["cookies"]) == R"x([{"name":"a","value":"[17 bytes]"},{"name":"b","value":"[1 bytes]"},{"name":"(nameless)","value":"[17 bytes]"}])x");
  CHECK(har["response"]["cookies"].array().size() == 3);
  CHECK(warc_parts(document(ExportFormat::WARC, {e}, kMasked))[1].fields["H5I-Masked"] == "Authorization, Cookie, x-api-key");
  // What a session without messages has is names.
  ExportedSend names = sent("GET", "http://x.test/", answered(200, 0));
  CHECK(har_entry(names, kOpen).find("[not recorded]") != std::string::npos);
}

TEST_CASE("a WARC is records of the lengths and digests that they say, the same ones each time") {
  ExportedSend chunked = kept("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "", "HTTP/1.1 200 R\r\nTransfer-Encoding: chunked\r\n\r\n", "hello"), plain = kept("POST / HTTP/1.1\r\nHost: x\r\n\r\n", std::string("a\0b", 3), "HTTP/1.1 200 R\r\n\r\n", "WARC/1.1\r\n\r\n");
  ExportedSend bare = sent("GET", "http://x.test/", json::Value()), silent = kept("GET / HTTP/1.1\r\n\r\n", "", "", "");
  chunked.number = 1, plain.number = 2, bare.number = 3, silent.number = 4;
  silent.response_head.reset();
  silent.response_body.reset();
  const std::string text = document(ExportFormat::WARC, {chunked, plain, bare, silent}, kMasked);
  auto parts = warc_parts(text);
  REQUIRE(parts.size() == 7);
  std::string types;
  std::set<std::string> ids;
  for (WarcPart& p : parts) {
    types += p.fields["WARC-Type"] + " ";
    const std::string& id = p.fields["WARC-Record-ID"];
    CHECK((id.size() == 47 && id.starts_with("<urn:uuid:") && id[24] == '8'));
    ids.insert(id);
    CHECK(p.fields["WARC-Block-Digest"] == "sha256:" + websec::sha256_hex(p.block));
    CHECK(p.fields["WARC-Date"] == "2026-01-02T03:04:05.678Z");
    for (const char* of : {"request", "response"})
      if (p.fields["WARC-Type"] == of) CHECK(p.fields["Content-Type"] == std::string("application/http;msgtype=") + of);
  }
  CHECK(types == "warcinfo request response request response metadata request ");
  CHECK(ids.size() == 7);
  CHECK(parts[1].fields["WARC-Concurrent-To"] == parts[2].fields["WARC-Record-ID"]);
  CHECK(parts[1].fields["WARC-IP-Address"] == "127.0.0.1");
  CHECK(parts[2].block == "HTTP/1.1 200 R\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  CHECK(parts[2].fields["WARC-Payload-Digest"] == "sha256:" + websec::sha256_hex("hello"));
  CHECK(parts[4].block == "HTTP/1.1 200 R\r\n\r\nWARC/1.1\r\n\r\n");
  CHECK(parsed(parts[5].block)["ended"].string() == "unknown-outcome");
  CHECK(parts[6].fields.count("WARC-Concurrent-To") == 0);
  CHECK(document(ExportFormat::WARC, {chunked, plain, bare, silent}, kMasked) == text);
}

TEST_CASE("a shell gives curl the words of a command byte for byte") {
  std::string every;
  for (int i = 1; i < 256; i++) every += static_cast<char>(i);
  std::string with_nul = std::string("%s\0\\x%%'", 9) + every;
  const std::string line = every.substr(31, 95);  // printable
  for (const std::string& shell : shells()) {
    INFO(shell);
    for (const std::string& bytes : {every, line, std::string("$(touch x) `id` $HOME \"!!\" ' \\' *"), std::string("'"), std::string(), std::string("\n"), std::string("-x"), std::string("\\0011")}) {
      auto got = called(shell, "curl " + shell_quoted(bytes) + " end\n");
      REQUIRE((got.size() == 1 && got[0].words.size() == 2));
      CHECK(got[0].words[0] == bytes);
    }
    for (const std::string& body : {every, with_nul, std::string("@/etc/passwd"), std::string(40 << 10, '\''), std::string("\n\n"), std::string("%d\\n")}) {
      ExportedSend e = kept("POST /p HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nCookie: a=1\r\nX-Odd: $(id) 'q' \"\\\r\nX-Bytes: \xff\x01\r\nEmpty:\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n", body, "HTTP/1.1 200 R\r\n\r\n", "");
      e.record["url"] = "http://x.test/a'b?c=$(id)&d=\xc3\xa9";
      const std::string text = curl_command(e, kMasked);
      CHECK(harm(text, true) == "");
      auto got = called(shell, text + "curl after\n");
      REQUIRE(got.size() == 2);
      CHECK(got[1].words == std::vector<std::string>{"after"});
      const Called& c = got[0];
      CHECK(has(c, "--url", e.record["url"].string()));
      CHECK(has(c, "--request", "POST"));
      CHECK(has(c, "--header", "Authorization: Bearer $x \"y\""));
      CHECK(has(c, "--header", "Cookie: a=1"));
      CHECK(has(c, "--header", "X-Odd: $(id) 'q' \"\\"));
      CHECK(has(c, "--header", "X-Bytes: \xff\x01"));
      CHECK(has(c, "--header", "Empty;"));
      CHECK(has(c, "--header", "Accept:"));
      for (const std::string& w : c.words) CHECK(w.find("Content-Length") == std::string::npos);
      if (body.size() > (32 << 10) || body.find('\0') != std::string::npos) {
        CHECK(has(c, "--data-binary", "@-"));
        CHECK(c.input == body);
      } else {
        CHECK(has(c, "--data-raw", body));
      }
    }
  }
  struct Row {
    const char* what;
    ExportedSend e;
  };
  ExportedSend raw = kept("G / HTTP/1.1\r\n\r\n", "", "", "");
  raw.record["raw"] = true;
  ExportedSend verb = sent("G ET", "http://x.test/", json::Value()), tunnel = sent("CONNECT", "http://x.test/", json::Value());
  for (const Row& row : {Row{"raw bytes", raw}, Row{"no method", verb}, Row{"CONNECT", tunnel}, Row{"chunks of its own", kept("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n0\r\n\r\n", "", "")},
                         Row{"a NUL in a header", kept(std::string("POST / HTTP/1.1\r\nX: a\0b\r\n\r\n", 27), "", "", "")}}) {
    INFO(row.what);
    const std::string text = curl_command(row.e, kMasked);
    CHECK(text.starts_with("# #7: "));
    CHECK(called("bash", text).empty());
  }
}

TEST_CASE("no sequence of the table gets out of a field that an origin writes, in any document") {
  size_t harmful = 0;
  for (const Sequence& q : hostile_sequences()) {
    std::string line = q.bytes, text = to_text(q.bytes);
    for (char& c : line)
      if (c == '\r' || c == '\n') c = '.';
    harmful += harm(q.bytes, true) != "";
    ExportedSend e = kept("POST / HTTP/1.1\r\nHost: " + line + "\r\nX" + line + ": " + line + "\r\nCookie: " + line + "=x\r\n\r\n", q.bytes, "HTTP/1.1 200 " + line + "\r\nY" + line + ": " + line + "\r\nSet-Cookie: " + line + "=1\r\n\r\n", q.bytes);
    e.record["url"] = "http://x.test/" + text;
    e.ended = text;
    for (const char* field : {"reason", "content_type", "location", "text"}) e.outcome[field] = text;
    e.outcome["headers"] = json::Array{text};
    e.outcome["set_cookie"] = json::Array{text};
    ExportedSend names = e;
    names.request_head.reset();
    names.request_body.reset();
    names.response_head.reset();
    names.response_body.reset();
    for (const ExportedSend& one : {e, names}) {
      INFO(q.what);
      for (ExportFormat f : {ExportFormat::HAR, ExportFormat::JSONL, ExportFormat::CURL}) {
        INFO(name_of(f));
        const std::string doc = document(f, {one, one}, kOpen);
        CHECK(harm(doc, true) == "");
        if (f == ExportFormat::JSONL) CHECK(std::count(doc.begin(), doc.end(), '\n') == 2);
        if (f == ExportFormat::CURL) CHECK(called("bash", doc).size() <= 2);
      }
      // The same value to a parser: what is made harmless is its spelling.
      Json har = parsed(document(ExportFormat::HAR, {one}, kMasked));
      CHECK(har["log"]["entries"].array()[0]["response"]["statusText"].string() == text);
      if (one.kept() && is_utf8(q.bytes)) CHECK(har["log"]["entries"].array()[0]["response"]["content"]["text"].string() == q.bytes);
      CHECK(parsed(json_line(one))["outcome"]["location"].string() == text);
      for (WarcPart& p : warc_parts(document(ExportFormat::WARC, {one, one}, kOpen)))
        for (const auto& [name, value] : p.fields)
          for (unsigned char c : value) CHECK(c >= 0x20);
    }
  }
  CHECK(hostile_sequences().size() >= 60);
  CHECK(harmful >= 60);
}

TEST_CASE("frames of a WebSocket are messages of its entry") {
  ExportedSend e = sent("GET", "http://127.0.0.1:8080/ws", answered(101, 0));
  e.ended = "tunnel";
  e.frames = {{json::Object{{"of", 7}, {"direction", "send"}, {"opcode", 1}, {"time", "2026-01-02T03:04:06.500Z"}, {"payload", std::string(64, 'd')}}, "hi \xc3\xa9"},
              {json::Object{{"of", 7}, {"direction", "receive"}, {"opcode", 2}, {"time", "2026-01-02T03:04:07Z"}, {"payload", std::string(64, 'e')}}, std::string("\0\xff", 2)},
              {json::Object{{"of", 7}, {"direction", "receive"}, {"opcode", 9}, {"time", "nonsense"}}, {}}};
  Json har = parsed(document(ExportFormat::HAR, {e}, kMasked));
  CHECK(har_errors(har).empty());
  const Json& entry = har["log"]["entries"].array()[0];
  CHECK(entry["_resourceType"].string() == "websocket");
  const Json& messages = entry["_webSocketMessages"];
  REQUIRE(messages.array().size() == 3);
  CHECK(json::canonical(messages.array()[0]) == "{\"_sha256\":\"" + std::string(64, 'd') + "\",\"data\":\"hi \xc3\xa9\",\"opcode\":1,\"time\":1767323046.5,\"type\":\"send\"}");
  CHECK((messages.array()[1]["data"].string() == "AP8=" && messages.array()[1]["type"].string() == "receive" && messages.array()[1]["time"].number() == 1767323047));
  CHECK(messages.array()[2]["data"].string().empty());
  CHECK(parsed(json_line(e))["frames"].array().size() == 3);
}
