// A session as documents for other programs.
#include <sys/resource.h>

#include "core/base/sha256.hpp"
#include "core/evidence/log.hpp"
#include "tests/support/schema.hpp"
#include "tests/support/slower.hpp"
#include "tests/websec/har_rules.hpp"
#include "tests/websec/sequences.hpp"
#include "tests/websec_send/site.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

constexpr const char* kFormats[] = {"har", "jsonl", "warc", "curl"};

Json json_of(const std::string& text) {
  auto v = json::parse(text);
  CAPTURE(text.substr(0, 2000));
  REQUIRE(v);
  return *v;
}
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

// Lines as an engine writes them, behind what is there.
class Forged {
 public:
  explicit Forged(const User& user, const std::string& session) : log_(*evidence::Log::open(user.log(session))), folder_(user.folder(session)) {}
  int64_t line(const std::string& kind, Json body) {
    evidence::Record r;
    r.observer = evidence::Observer::plugin("http", PluginDigest(std::string(64, 'a')));
    r.observer.lane = evidence::Lane::ENGINE_CLAIMED;
    r.boundary = evidence::Boundary::NET;
    r.kind = kind;
    r.body = std::move(body);
    auto head = log_.append(r);
    REQUIRE(head);
    return static_cast<int64_t>(head->count) - 1;
  }
  int64_t send(const std::string& url) {
    return line("send", json::Object{{"method", "GET"}, {"url", url}, {"peer", "127.0.0.1:80"}, {"rule", "r"}, {"head_sha256", std::string(64, '0')}, {"head_bytes", 40}, {"body_sha256", std::string(64, '0')},
                                     {"body_bytes", 0}, {"cookies", json::Array{}}, {"credentials", json::Array{}}, {"computed", json::Array{"Host: x.test"}}, {"placement", "not contained"}});
  }
  int64_t outcome(int64_t of, Json more = json::Object{}) {
    Json body = json::Object{{"of", of}, {"ended", "complete"}, {"sent_bytes", 40}, {"wire_bytes", 45}, {"status", 200}, {"reason", "OK"}, {"head_bytes", 40}, {"body_bytes", 5}, {"body_sha256", std::string(64, '0')},
                             {"headers", json::Array{"Content-Length"}}, {"times", json::Object{{"connect_us", 10}, {"written_us", 20}, {"first_byte_us", 30}, {"total_us", 40}}}, {"facts", json::Array{}}};
    for (auto& [key, value] : more.make_object()) body[key] = value;
    return line("outcome", std::move(body));
  }
  std::string payload(const std::string& bytes) { return evidence::put_blob(folder_ + "/blobs", bytes)->sha256; }

 private:
  evidence::Log log_;
  std::string folder_;
};

}  // namespace

TEST_CASE("a session is a document in each format, with what was sent and nothing that says who asked") {
  for (uid_t uid : people()) {
    Origin origin([](const std::string& request) {
      if (request.starts_with("GET /chunked")) return std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nSet-Cookie: id=very-secret\r\nContent-Type: text/plain\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
      if (request.starts_with("GET /not-modified")) return std::string("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n");
      if (request.starts_with("HEAD")) return std::string("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n");
      if (request.starts_with("GET /short")) return std::string("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabc");
      if (request.starts_with("GET /no-http")) return std::string("hello?\r\n\r\n");
      if (request.starts_with("GET /nothing")) return std::string();
      if (request.starts_with("GET /moved")) return moved(302, "/chunked");
      return ok();
    });
    User user(uid);
    for (bool keeps : {false, true}) {
      const std::string s = keeps ? "kept" : "names";
      CAPTURE(uid, s);
      user.open(s, {origin.url(""), "http://127.0.0.1:1"}, keeps ? std::vector<std::string>{"--capture"} : std::vector<std::string>{});
      for (const char* path : {"/chunked", "/not-modified", "/short", "/no-http", "/nothing"})
        user.run({"send", s, origin.url(path), "-H", "Authorization: Bearer very-secret", "-H", "Cookie: a=very-secret"});
      user.run({"send", s, origin.url("/moved"), "--follow", "3"});
      user.run({"send", s, origin.url("/head"), "-X", "HEAD"});
      user.run({"send", s, origin.url("/post?q=1"), "--data", "a=b"});
      user.run({"send", s, "http://127.0.0.1:1/"});
      user.run({"send", s, "http://127.0.0.1:2/out-of-scope"});
      const size_t sends = user.records(s, "send").size();
      CHECK(sends == 10);
      {
        Forged forged(user, s);
        forged.send("http://127.0.0.1:1/nobody-saw");
      }
      CHECK(user.run({"close", s}).status == 0);  // what ended can still be told
      for (const char* format : kFormats) {
        CAPTURE(format);
        const std::string file = user.home() + "/" + s + "." + format;
        Ended e = user.run({"export", s, "--format", format, "--out", s + "." + format, "--json"});
        CAPTURE(e.out, e.err);
        REQUIRE(e.status == 0);
        for (const std::string& error : schema_errors_of_text("websec-export", e.out)) FAIL_CHECK(error);
        const std::string text = read_file(file);
        struct stat st {};
        CHECK((stat(file.c_str(), &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_uid == uid));
        CHECK(json_of(e.out)["sha256"].string() == sha256_hex(text));
        CHECK(json_of(e.out)["bytes"].integer() == static_cast<int64_t>(text.size()));
        CHECK(json_of(e.out)["sends"].integer() == static_cast<int64_t>(sends) + 1 + (format == std::string("jsonl")));
        CHECK(text.find("very-secret") == std::string::npos);
        CHECK(text.find("/post?q=1") != std::string::npos);
        CHECK((text.find("/out-of-scope") != std::string::npos) == (format == std::string("jsonl")));
        CHECK(user.run({"export", s, "--format", format}).out == text);  // to standard output the same
      }
      Json har = json_of(read_file(user.home() + "/" + s + ".har"));
      for (const std::string& error : har_errors(har)) FAIL_CHECK(error);
      if (std::string said = har_validator_says(user.home() + "/" + s + ".har"); !said.empty()) CHECK(said == "valid");
      std::map<std::string, Json> by_path;
      for (const Json& e : har["log"]["entries"].array()) by_path[e["request"]["url"].string().substr(e["request"]["url"].string().find('/', 8))] = e;
      CHECK(by_path["/nobody-saw"]["response"]["_error"].string() == "unknown-outcome");
      CHECK(by_path["/"]["response"]["_error"].string() == "connect-failed");
      CHECK(by_path["/nothing"]["response"]["status"].integer(-1) == 0);
      CHECK(by_path["/short"]["response"]["_error"].string() == "short");
      CHECK(by_path["/not-modified"]["response"]["bodySize"].integer(-1) == 0);
      CHECK(by_path["/chunked"]["response"]["content"]["text"].string() == (keeps ? "hello" : ""));
      CHECK(by_path["/post?q=1"]["request"]["postData"]["text"].string() == (keeps ? "a=b" : ""));
      CHECK(by_path["/moved"]["response"]["redirectURL"].string() == "/chunked");
      for (const std::string& line : lines_of(read_file(user.home() + "/" + s + ".jsonl")))
        for (const std::string& error : schema_errors("websec-line", json_of(line))) FAIL_CHECK(error);
      CHECK(lines_of(user.run({"export", s, "--format", "jsonl", "method:POST"}).out).size() == 1);
      CHECK(json_of(user.run({"export", s, "--format", "har", "status:5xx"}).out)["log"]["entries"].array().empty());
    }
  }
}

TEST_CASE("values of credentials leave when they are asked for by name, behind a line of the log, while the session lives") {
  Origin origin([](const std::string&) { return ok(); });
  User user(people().back());
  user.open("s", {origin.url("")}, {"--capture"});
  user.run({"send", "s", origin.url("/"), "-H", "Authorization: Bearer very-secret"});
  CHECK(user.run({"export", "s", "--format", "har"}).out.find("very-secret") == std::string::npos);
  CHECK(user.records("s", "exported").empty());
  Ended e = user.run({"export", "s", "--format", "har", "--with-credentials", "method:GET"});
  CAPTURE(e.err);
  CHECK(e.out.find("Bearer very-secret") != std::string::npos);
  auto noted = user.records("s", "exported");
  REQUIRE(noted.size() == 1);
  CHECK(json::canonical(noted[0]["body"]) == R"({"filters":["method:GET"],"format":"har","with_credentials":true})");
  CHECK(evidence::verify_chain(user.log("s")));
  CHECK(user.run({"close", "s"}).status == 0);
  Ended after = user.run({"export", "s", "--format", "har", "--with-credentials", "--out", "x"});
  CHECK(after.status == 69);
  CHECK_FALSE(std::filesystem::exists(user.home() + "/x"));
  CHECK(user.records("s", "exported").size() == 1);
}

TEST_CASE("a file is whole or not there, and what has its name stays unless its user says otherwise") {
  for (uid_t uid : people()) {
    Origin origin([](const std::string&) { return ok(); });
    User user(uid);
    user.open("s", {origin.url("")});
    user.run({"send", "s", origin.url("/")});
    CAPTURE(uid);
    const std::string file = user.home() + "/x";
    std::ofstream(file) << "before";
    CHECK(user.run({"export", "s", "--format", "har", "--out", "x"}).status == 2);
    CHECK(read_file(file) == "before");
    CHECK(user.run({"export", "s", "--format", "har", "--out", "x", "--force"}).status == 0);
    CHECK(json_of(read_file(file))["log"]["entries"].array().size() == 1);
    // A link is replaced and not followed.
    std::ofstream(user.home() + "/other") << "other";
    std::filesystem::remove(file);
    std::filesystem::create_symlink("other", file);
    CHECK(user.run({"export", "s", "--format", "curl", "--out", "x"}).status == 2);
    CHECK(user.run({"export", "s", "--format", "curl", "--out", "x", "--force"}).status == 2);
    CHECK(read_file(user.home() + "/other") == "other");
    const size_t entries = static_cast<size_t>(std::distance(std::filesystem::directory_iterator(user.home()), {}));
    struct Bad {
      std::vector<std::string> words;
      int status;
    };
    for (const Bad& bad : std::vector<Bad>{{{"export", "s"}, 64},
                                           {{"export", "s", "--format", "pdf"}, 64},
                                           {{"export", "s", "--format", "har", "--force"}, 64},
                                           {{"export", "s", "--format", "har", "colour:red"}, 64},
                                           {{"export", "s", "--format", "har", "--out", "y", "colour:red"}, 64},
                                           {{"export", "s", "--format", "har", "--out", "none/y"}, 2},
                                           {{"export", "s", "--format", "har", "--out", ".."}, 64},
                                           {{"export", "none", "--format", "har", "--out", "y"}, 2}}) {
      Ended e = user.run(bad.words);
      CAPTURE(bad.words, e.out, e.err);
      CHECK(e.status == bad.status);
      CHECK(e.err.find("\n  because: ") != std::string::npos);
    }
    CHECK(user.run({"export", "s", "--format", "har", "--json"}).status == 64);
    CHECK(static_cast<size_t>(std::distance(std::filesystem::directory_iterator(user.home()), {})) == entries);
  }
}

TEST_CASE("a document that is more than one answer holds is whole, in order and never held whole") {
  User user(people().back());
  user.open("s", {"http://x.test"});
  constexpr int kSends = kSlower > 1 ? 500 : 3000;
  std::string large(15u << 20, 'z');
  large[5] = '\xff';
  {
    Forged forged(user, "s");
    // The first one ends behind the next hundred, as a slow answer does; one of them nobody saw end.
    const int64_t slow = forged.send("http://x.test/slow");
    forged.send("http://x.test/nobody-saw");
    for (int i = 0; i < 100; i++) forged.outcome(forged.send("http://x.test/" + std::to_string(i)));
    forged.outcome(slow);
    const int64_t kept = forged.send("http://x.test/kept");
    forged.outcome(kept, json::Object{{"kept", json::Object{{"request_head", forged.payload("GET /kept HTTP/1.1\r\n\r\n")}, {"request_body", forged.payload("")}, {"response_head", forged.payload("HTTP/1.1 200 OK\r\n\r\n")}, {"response_body", forged.payload(large)}}}});
    const int64_t socket = forged.send("http://x.test/socket");
    for (int i = 0; i < 3; i++) forged.line("frame", json::Object{{"of", socket}, {"direction", i % 2 ? "receive" : "send"}, {"opcode", 1}, {"time", "2026-01-02T03:04:05.000Z"}, {"payload", forged.payload("message " + std::to_string(i))}});
    forged.outcome(socket, json::Object{{"ended", "tunnel"}, {"status", 101}});
    forged.line("frame", json::Object{{"of", socket}, {"direction", "receive"}, {"opcode", 1}, {"time", "2026-01-02T03:04:06.000Z"}, {"payload", forged.payload("after")}});
    for (int i = 100; i < kSends; i++) forged.outcome(forged.send("http://x.test/" + std::to_string(i)));
  }
  if (geteuid() == 0) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(user.folder("s"))) REQUIRE(lchown(entry.path().c_str(), user.uid(), user.uid()) == 0);
  }
  Ended e = user.run({"export", "s", "--format", "har", "--out", "x.har", "--json"});
  CAPTURE(e.out, e.err);
  REQUIRE(e.status == 0);
  const std::string text = read_file(user.home() + "/x.har");
  CHECK(text.size() > (20u << 20));  // three answers
  // Entries are compared one by one, as text: a parsed document of this size is slow to look at.
  auto lines = lines_of(text);
  REQUIRE(lines.size() == kSends + 4 + 2);
  std::vector<std::string> urls;
  for (size_t i = 1; i + 1 < lines.size(); i++) {
    std::string line = lines[i];
    if (line.ends_with(",")) line.pop_back();
    Json entry = json_of(line);
    const std::string path = entry["request"]["url"].string().substr(std::string("http://x.test/").size());
    urls.push_back(path);
    if (path == "kept") {
      CHECK(entry["response"]["content"]["encoding"].string() == "base64");
      CHECK(entry["response"]["content"]["text"].string().size() == large.size() / 3 * 4);
    }
    if (path == "socket") {
      REQUIRE(entry["_webSocketMessages"].array().size() == 4);
      CHECK(entry["_webSocketMessages"].array()[1]["data"].string() == "message 1");
      CHECK(entry["_webSocketMessages"].array()[3]["data"].string() == "after");
    }
    if (path == "nobody-saw") CHECK(entry["response"]["_error"].string() == "unknown-outcome");
  }
  std::vector<std::string> wanted = {"slow", "nobody-saw"};
  for (int i = 0; i < 100; i++) wanted.push_back(std::to_string(i));
  wanted.insert(wanted.end(), {"kept", "socket"});
  for (int i = 100; i < kSends; i++) wanted.push_back(std::to_string(i));
  CHECK(urls == wanted);
  CHECK((json_of(lines.front() + lines.back())["log"]["version"].string() == "1.2"));
  // A payload that was changed is no part of a document.
  const std::string digest = sha256_hex("after"), blob = user.folder("s") + "/blobs/" + digest.substr(0, 2) + "/" + digest.substr(2);
  REQUIRE(std::filesystem::exists(blob));
  std::ofstream(blob) << "AFTER";
  Ended changed = user.run({"export", "s", "--format", "har", "--out", "y.har"});
  CHECK(changed.status == 2);
  CHECK_FALSE(std::filesystem::exists(user.home() + "/y.har"));
}

TEST_CASE("what an origin writes is harmless in each document and on each screen") {
  size_t at = 0;
  Origin origin([&](const std::string&) {
    // One sequence an answer, in each place of it.
    const std::string& q = hostile_sequences()[at++].bytes;
    std::string line = q;
    for (char& c : line)
      if (c == '\r' || c == '\n') c = '.';
    return "HTTP/1.1 302 " + line + "\r\nContent-Type: " + line + "\r\nLocation: /" + line + "\r\nX" + line + ": " + line + "\r\nSet-Cookie: " + line + "=1\r\nContent-Length: " + std::to_string(q.size()) + "\r\n\r\n" + q;
  });
  User user(people().back());
  user.open("s", {origin.url("")}, {"--capture"});
  CHECK(hostile_sequences().size() >= 60);
  for (size_t i = 0; i < hostile_sequences().size(); i++) {
    Ended sent = user.run({"send", "s", origin.url("/" + std::to_string(i)), "--lenient"});
    CAPTURE(hostile_sequences()[i].what, sent.out, sent.err);
    CHECK(harm(sent.out, true) == "");
    CHECK(harm(sent.err, true) == "");
    CHECK(sent.status == 0);
  }
  auto lines = user.records("s", "send");
  REQUIRE(lines.size() == hostile_sequences().size());
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"hist", "s"}, {"hist", "s", "--json"}, {"export", "s", "--format", "har"}, {"export", "s", "--format", "jsonl"}, {"export", "s", "--format", "curl"}}) {
    Ended e = user.run(words);
    CAPTURE(words, e.err);
    CHECK(e.status == 0);
    CHECK(harm(e.out, true) == "");
    CHECK(e.out.size() > 1000);
  }
  CHECK(har_errors(json_of(user.run({"export", "s", "--format", "har"}).out)).empty());
  for (size_t i = 0; i < lines.size(); i += 3) {
    Ended e = user.run({"show", "s", std::to_string(lines[i]["seq"].integer()), "--bytes"});
    CAPTURE(hostile_sequences()[i].what, e.out);
    CHECK(harm(e.out, true) == "");
  }
}
