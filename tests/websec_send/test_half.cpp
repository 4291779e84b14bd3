// A half in a box that was taken over: whatever it says, nothing becomes a line of the engine's that was not asked for.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <tuple>

#include "core/base/unique_fd.hpp"
#include "plugins/websec-http/digest/sha256.hpp"
#include "plugins/websec-http/engine/box.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

// The host's service, in memory.
struct Log {
  std::mutex one;
  std::vector<std::pair<std::string, json::Value>> lines;
  static h5i_status append(void* context, h5i_str kind, h5i_str body, uint64_t* seq, h5i_error*) {
    auto& log = *static_cast<Log*>(context);
    std::lock_guard lock(log.one);
    log.lines.emplace_back(std::string(kind.ptr, kind.len), *json::parse(std::string_view(body.ptr, body.len)));
    *seq = log.lines.size() + 9;
    return H5I_OK;
  }
  static h5i_status put(void*, h5i_bytes, char* sha256, h5i_error*) {
    memset(sha256, 'a', 64);
    return H5I_OK;
  }
  size_t count(const std::string& kind) {
    std::lock_guard lock(one);
    size_t n = 0;
    for (const auto& [k, body] : lines) n += k == kind;
    return n;
  }
};

const h5i_host_session kSession = {sizeof(h5i_host_session), 1, Log::append, nullptr, nullptr, Log::put, nullptr};
const void* interface(void*, h5i_str id) { return std::string_view(id.ptr, id.len) == H5I_HOST_SESSION ? &kSession : nullptr; }

struct Said {
  json::Value facts = json::Object{{"method", "GET"}, {"url", "http://10.1.2.3:8080/a?b=1"}, {"peer", "10.1.2.3:8080"}, {"requester", "tester"}};
  std::string head = "GET /a?b=1 HTTP/1.1\r\nHost: 10.1.2.3:8080\r\nX: y\r\n\r\n", body;
};

struct Ended {
  Sends sends;
  json::Value forged;
  std::unique_ptr<Log> log = std::make_unique<Log>();
  bool answered = false;  // the half got an answer to what it said last
};

// The other end of the channel, as the half in the box has it.
class Half {
 public:
  explicit Half(int fd) : channel(fd) {}
  std::optional<json::Value> say(json::Value what, std::vector<std::string> bytes = {}) {
    what["id"] = id;
    if (!channel.send({std::move(what), std::move(bytes)})) return std::nullopt;
    std::string broken;
    auto m = channel.receive(&broken);
    return m ? std::optional<json::Value>(m->say) : std::nullopt;
  }
  std::optional<json::Value> intent(const Said& s) { return say(json::Object{{"op", "intent"}, {"facts", s.facts}}, {s.head, s.body}); }
  void outcome(int64_t of) { (void)say(json::Object{{"op", "outcome"}, {"of", of}, {"facts", json::Object{{"ended", "complete"}, {"status", 200}, {"times", json::Object{{"total_us", 1}}}}}}); }
  void done() {
    json::Value end = json::Object{{"op", "done"}, {"id", id}, {"code", 0}};
    (void)channel.send({end, {}});
  }
  Channel channel;
  int64_t id = 0;
};

using Play = std::function<void(Half&)>;

Ended against(const Play& play, SendOptions options = {}, const std::string& url = "http://10.1.2.3:8080/a?b=1", const std::string& network = "host") {
  Ended out;
  int pair[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
  UniqueFd ours(pair[0]), theirs(pair[1]);
  std::thread box([&] {
    Half half(theirs.get());
    std::string broken;
    (void)half.channel.receive(&broken);
    auto asked = half.channel.receive(&broken);
    if (!asked) return;
    half.id = asked->say["id"].integer();
    play(half);
    theirs.reset();
  });
  const h5i_host host{sizeof(h5i_host), 0, out.log.get(), interface};
  sdk::Host services(&host);
  Scope scope = *Scope::parse("allow http://10.1.2.3:8080/a\nallow http://10.1.2.4:8080\ndeny http://10.1.2.3:8080/a/secret");
  Recorder recorder(services, "in box human/fix (process)");
  {
    Box half(ours.get(), {"in box human/fix (process)", network}, scope, {}, false);
    Request request;
    auto sends = half.send(services, recorder, scope, url, request, options);
    REQUIRE(sends.ok());
    out.sends = std::move(*sends);
    out.forged = half.forged();
  }
  box.join();
  return out;
}

}  // namespace

TEST_CASE("what a half in a box is asked for is recorded from its bytes, and its rows are those of the log") {
  Ended e = against([](Half& half) {
    auto token = half.intent({});
    REQUIRE(token);
    half.outcome((*token)["seq"].integer());
    half.done();
  });
  REQUIRE(e.sends.rows.size() == 1);
  CHECK(e.sends.code == 0);
  CHECK(e.forged.array().empty());
  REQUIRE(e.log->lines.size() == 2);
  CHECK(e.log->lines[0].first == "send");
  CHECK(e.log->lines[0].second["head_sha256"].string() == sha256_hex(Said().head));
  CHECK(e.log->lines[0].second["placement"].string() == "in box human/fix (process)");
  CHECK(e.log->lines[0].second["rule"].string() == "allow http://10.1.2.3:8080/a");
  CHECK(e.sends.rows[0].facts["status"].integer() == 200);
}

TEST_CASE("a half in a box that says another send than it was asked for gets no token, and no line is written") {
  const std::vector<std::tuple<const char*, const char*, std::function<void(Said&)>>> lies = {
      {"another host", "outside the scope", [](Said& s) { s.facts["url"] = "http://10.9.9.9:8080/a?b=1", s.facts["peer"] = "10.9.9.9:8080", s.head = "GET /a?b=1 HTTP/1.1\r\nHost: 10.9.9.9:8080\r\n\r\n"; }},
      {"another path", "outside the scope", [](Said& s) { s.facts["url"] = "http://10.1.2.3:8080/b", s.head = "GET /b HTTP/1.1\r\nHost: 10.1.2.3:8080\r\n\r\n"; }},
      {"a denied path", "outside the scope", [](Said& s) { s.facts["url"] = "http://10.1.2.3:8080/a/secret", s.head = "GET /a/secret HTTP/1.1\r\nHost: 10.1.2.3:8080\r\n\r\n"; }},
      {"another address", "may not be dialled", [](Said& s) { s.facts["peer"] = "10.1.2.9:8080"; }},
      {"another port", "peer is not that", [](Said& s) { s.facts["peer"] = "10.1.2.3:81"; }},
      {"no address", "peer is not that", [](Said& s) { s.facts["peer"] = "somewhere:8080"; }},
      {"a name for TLS", "name in TLS", [](Said& s) { s.facts["tls_name"] = "other.test"; }},
      {"a head for another path", "another target", [](Said& s) { s.head = "GET /a/secret HTTP/1.1\r\nHost: 10.1.2.3:8080\r\n\r\n"; }},
      {"a head with another method", "another target", [](Said& s) { s.head = "DELETE /a?b=1 HTTP/1.1\r\nHost: 10.1.2.3:8080\r\n\r\n"; }},
      {"a head for another host", "another host", [](Said& s) { s.head = "GET /a?b=1 HTTP/1.1\r\nHost: other.test\r\n\r\n"; }},
      {"two hosts", "name its host once", [](Said& s) { s.head = "GET /a?b=1 HTTP/1.1\r\nHost: 10.1.2.3:8080\r\nHost: 10.1.2.3:8080\r\n\r\n"; }},
      {"two requests in a head", "ends before its end", [](Said& s) { s.head += "GET /a/secret HTTP/1.1\r\nHost: 10.1.2.3:8080\r\n\r\n"; }},
      {"a head for another query", "another target", [](Said& s) { s.head = "GET /a?b=2 HTTP/1.1\r\nHost: 10.1.2.3:8080\r\n\r\n"; }},
      {"a head with a method as long", "another target", [](Said& s) { s.head = "PUT /a?b=1 HTTP/1.1\r\nHost: 10.1.2.3:8080\r\n\r\n"; }},
      {"a longer line", "another target", [](Said& s) { s.head = "GET /a?b=1 HTTP/1.1 x\r\nHost: 10.1.2.3:8080\r\n\r\n"; }},
      {"a cut head", "is cut", [](Said& s) { s.head.pop_back(); }},
      {"a proxy", "through a proxy", [](Said& s) { s.facts["via"] = "10.1.2.4:8080"; }},
      {"a tunnel", "through a proxy", [](Said& s) { s.facts["tunnel_to"] = "10.1.2.4:8080"; }},
      {"a document", "another asks", [](Said& s) { s.facts["requester"] = "document http://x.test"; }},
      {"a preflight", "a preflight", [](Said& s) { s.facts["preflight"] = true; }},
      {"raw bytes", "bytes are not those", [](Said& s) { s.facts["raw"] = true; }},
      {"HTTP/2", "another protocol", [](Said& s) { s.facts["protocol"] = "h2"; }},
      {"a parent", "not its own", [](Said& s) { s.facts["parent"] = 3; }},
      {"a password", "none that could be asked", [](Said& s) { s.facts["url"] = "http://u:p@10.1.2.3:8080/a?b=1"; }},
  };
  for (const auto& [what, why, lie] : lies) {
    CAPTURE(what);
    bool answered = true;
    Ended e = against([&, &lie = lie](Half& half) {
      Said s;
      lie(s);
      answered = half.intent(s).has_value();
    });
    CHECK_FALSE(answered);
    CHECK(e.log->count("send") == 0);
    REQUIRE(e.forged.array().size() == 1);
    CAPTURE(e.forged.array()[0]["what"].string());
    CHECK(e.forged.array()[0]["what"].string().find(why) != std::string::npos);
    CHECK(e.sends.code == 2);
    REQUIRE(e.sends.rows.size() == 1);
    CHECK_FALSE(e.sends.rows[0].sent);
  }
}

TEST_CASE("a half in a box speaks of its own sends only, and of each once") {
  const std::vector<std::pair<const char*, Play>> lies = {
      {"a second send", [](Half& half) { (void)half.intent({}); }},
      {"an outcome of another's", [](Half& half) { half.outcome(3); }},
      {"a line of the core's", [](Half& half) { (void)half.say(json::Object{{"op", "note"}, {"kind", "websec-closed"}, {"of", 10}, {"facts", json::Object{}}}); }},
      {"a send as a note", [](Half& half) { (void)half.say(json::Object{{"op", "note"}, {"kind", "send"}, {"of", 10}, {"facts", json::Object{{"of", 10}}}}); }},
      {"a payload", [](Half& half) { (void)half.say(json::Object{{"op", "keep"}}, {"x"}); }},
      {"cookies", [](Half& half) { (void)half.say(json::Object{{"op", "cookies"}, {"url", "http://10.1.2.3:8080/a"}}); }},
      {"a word", [](Half& half) { (void)half.say(json::Object{{"op", "read"}}); }},
      {"an end without an outcome", [](Half& half) { half.done(); }},
      {"an outcome after the end", [](Half& half) {
         half.outcome(10);
         half.outcome(10);
       }},
  };
  for (const auto& [what, lie] : lies) {
    CAPTURE(what);
    Ended e = against([&, &lie = lie](Half& half) {
      REQUIRE(half.intent({}));
      lie(half);
    });
    CHECK(e.forged.array().size() == 1);
    CHECK(e.log->count("send") == 1);
    CHECK(e.log->count("outcome") == 1);  // what was begun has an end: the host's, or the one that came before the lie
    CHECK(e.log->lines.size() == 2);
    CHECK(e.sends.code == 2);
  }
}

TEST_CASE("what is no message ends the channel, and so does a half that ends") {
  const std::vector<std::pair<const char*, Play>> ends = {
      {"nothing", [](Half&) {}},
      {"an empty document", [](Half& half) { (void)half.channel.send({json::Object{}, {}}); }},
  };
  for (const auto& [what, play] : ends) {
    CAPTURE(what);
    Ended e = against(play);
    CHECK(e.log->count("send") == 0);
    CHECK(e.sends.code == 2);
    REQUIRE(e.sends.rows.size() == 1);
    CHECK(e.sends.rows[0].facts["why"].string() == "box-ended");
  }
  // After the record: the line has an outcome that says so.
  Ended e = against([](Half& half) { REQUIRE(half.intent({})); });
  REQUIRE(e.log->lines.size() == 2);
  CHECK(e.log->lines[1].second["ended"].string() == "box-ended");
}

TEST_CASE("a half in a box that fails leaves no send without its outcome, and what it sends unasked for is not kept") {
  int pair[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
  UniqueFd ours(pair[0]), theirs(pair[1]);
  Log log;
  std::thread box([&] {
    Half half(theirs.get());
    std::string broken;
    (void)half.channel.receive(&broken);
    auto asked = half.channel.receive(&broken);
    half.id = asked->say["id"].integer();
    CHECK(half.intent({}));
    json::Value end = json::Object{{"op", "done"}, {"id", half.id}, {"error", "bad alloc"}, {"code", static_cast<int64_t>(H5I_E_LOG_WRITE)}};
    (void)half.channel.send({end, {}});
    // Nobody takes these: they are for a send that is not there, and the channel goes on.
    for (int i = 0; i < 100; i++) (void)half.channel.send({json::Object{{"op", "keep"}, {"id", 77}}, {std::string(100'000, 'x')}});
    (void)half.channel.receive(&broken);
  });
  const h5i_host host{sizeof(h5i_host), 0, &log, interface};
  sdk::Host services(&host);
  Scope scope = *Scope::parse("allow http://10.1.2.3:8080");
  Recorder recorder(services, "x");
  {
    Box half(ours.get(), {"x", "host"}, scope, {}, false);
    auto sends = half.send(services, recorder, scope, "http://10.1.2.3:8080/a?b=1", {}, {});
    REQUIRE(!sends.ok());
    CHECK(sends.error().code == H5I_E_SYSTEM);  // and no word of the log's
  }
  box.join();
  REQUIRE(log.lines.size() == 2);
  CHECK(log.lines[1].first == "outcome");
}

TEST_CASE("bytes that are no message are refused by the channel, whatever they are") {
  const std::string cases[] = {std::string(1, '\0'), std::string("\2abc"), std::string("\0\xff\xff\xff\xff", 5), std::string("\0\2\0\0\0{}", 7), std::string("\0\x08\0\0\0{\"say\":1", 12), std::string(70 << 10, 'x')};
  for (const std::string& bytes : cases) {
    int pair[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    UniqueFd a(pair[0]), b(pair[1]);
    REQUIRE(::send(b.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    std::string broken;
    CHECK_FALSE(Channel(a.get()).receive(&broken));
    CHECK_FALSE(broken.empty());
  }
  // The control, with more bytes than a packet holds.
  int pair[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
  UniqueFd a(pair[0]), b(pair[1]);
  const std::string big(300 << 10, '\xff');
  std::thread writer([&] { CHECK(Channel(b.get()).send({json::Object{{"op", "x"}}, {big, ""}})); });
  std::string broken;
  auto m = Channel(a.get()).receive(&broken);
  writer.join();
  REQUIRE(m);
  CHECK((m->say["op"].string() == "x" && m->bytes.size() == 2 && m->bytes[0] == big));
}

TEST_CASE("a box without a network is named where no connection came about, and only then") {
  auto failed = [](const char* how, int64_t bytes) {
    return [=](Half& half) {
      auto token = half.intent({});
      (void)half.say(json::Object{{"op", "outcome"}, {"of", (*token)["seq"]}, {"facts", json::Object{{"ended", how}, {"text", "Connection refused"}, {"wire_bytes", bytes}}}});
      half.done();
    };
  };
  Ended none = against(failed("connect-failed", 0), {}, "http://10.1.2.3:8080/a?b=1", "none");
  REQUIRE(none.log->lines.size() == 2);
  CHECK(none.log->lines[1].second["ended"].string() == "refused-by-box");
  CHECK(none.sends.code == 1);
  Ended host = against(failed("connect-failed", 0));
  CHECK(host.log->lines[1].second["ended"].string() == "connect-failed");
  Ended came = against(failed("short", 12), {}, "http://10.1.2.3:8080/a?b=1", "none");
  CHECK(came.log->lines[1].second["ended"].string() == "short");
}
