// A send said again: the bytes that arrive, what may be said again at all, and who asks.
#include <sys/ioctl.h>

#include "core/base/sha256.hpp"
#include "core/evidence/log.hpp"
#include "tests/support/schema.hpp"
#include "tests/websec_send/site.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

Json fits(const std::string& verb, const Ended& e) {
  CAPTURE(e.out, e.err);
  for (const std::string& error : schema_errors_of_text("websec-" + verb, e.out)) FAIL_CHECK(verb << " " << error);
  auto v = json::parse(e.out);
  return v ? *v : Json();
}

std::string head_of(const std::string& request) { return request.substr(0, request.find("\r\n\r\n") + 4); }

std::string number_of(const Json& record) { return std::to_string(record["seq"].integer()); }

Ended with(Program p, const std::string& name, const std::string& value) {
  p.env[name] = value;
  return run(p);
}

}  // namespace

TEST_CASE("a kept request arrives again byte for byte, and edited as it says, with both digests and what was changed") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    Origin origin([](const std::string&) { return ok(); });
    User user(uid);
    user.open("s", {origin.url("")}, {"--capture"});
    REQUIRE(user.run({"send", "s", origin.url("/a%20b?id=1&x=y"), "-H", "x-Odd: 1", "-H", "Content-Type: application/json", "-H", "Authorization: Bearer very-secret", "-H", "X-odd:  2", "--data", "{\"a\": 1}"}).status == 0);
    const std::string first = origin.requests()[0];
    const Json line = user.records("s", "send")[0];
    Ended again = user.run({"replay", "s", number_of(line), "--json"});
    Json doc = fits("replay", again);
    REQUIRE(again.status == 0);
    REQUIRE(origin.requests().size() == 2);
    CHECK(origin.requests()[1] == first);
    CHECK(doc["changes"].array().empty());
    CHECK(doc["source"].string() == "kept");
    CHECK(doc["heads"]["before"].string() == doc["heads"]["after"].string());
    CHECK(user.records("s", "send")[1]["body"]["replay_of"].integer() == line["seq"].integer());

    Ended edited = user.run({"replay", "s", number_of(line), "query.id=2", "+header.X-New=n", "json.$.a=\"longer than before\"", "path=/c", "--json", "--", "-header.X-Odd"});
    doc = fits("replay", edited);
    REQUIRE(origin.requests().size() == 3);
    const std::string body = "{\"a\": \"longer than before\"}";
    CHECK(origin.requests()[2] == "POST /c?id=2&x=y HTTP/1.1\r\nHost: 127.0.0.1:" + origin.port() + "\r\nContent-Type: application/json\r\nAuthorization: Bearer very-secret\r\nContent-Length: " + std::to_string(body.size()) + "\r\nX-New: n\r\n\r\n" + body);
    CHECK(doc["heads"]["before"].string() == sha256_hex(head_of(first)));
    CHECK(doc["heads"]["after"].string() == sha256_hex(head_of(origin.requests()[2])));
    std::string fields;
    for (const Json& c : doc["changes"].array()) fields += c["field"].string() + " ";
    CHECK(fields == "line header.x-Odd header.Content-Length header.X-New body ");
    CHECK(user.records("s", "send")[2]["body"]["url"].string() == origin.url("/c?id=2&x=y"));
    CHECK((again.out + edited.out).find("very-secret") == std::string::npos);
    CHECK(read_file(user.log("s")).find("very-secret") == std::string::npos);
    CHECK(evidence::verify_chain(user.log("s")));
  }
}

TEST_CASE("without kept bytes only what has the digest of its line is said again") {
  Origin origin([](const std::string& r) { return r.starts_with("GET /moved") ? moved(302, "/to?x=1") : ok(); });
  User user(people().back());
  user.open("s", {origin.url("")});
  REQUIRE(user.run({"send", "s", origin.url("/plain?a=b")}).status == 0);
  REQUIRE(user.run({"send", "s", origin.url("/headers"), "-H", "Accept: */*"}).status == 0);
  REQUIRE(user.run({"send", "s", origin.url("/body"), "--data", "x"}).status == 0);
  REQUIRE(user.run({"send", "s", "http://127.0.0.1:1/"}).status == 1);
  auto lines = user.records("s", "send");
  Ended again = user.run({"replay", "s", number_of(lines[0]), "--json"});
  CHECK(again.status == 0);
  CHECK(fits("replay", again)["source"].string() == "rebuilt");
  auto arrived = origin.requests();
  REQUIRE(arrived.size() == 4);
  CHECK(arrived[3] == arrived[0]);
  for (size_t i : {size_t{1}, size_t{2}}) {
    Ended refused = user.run({"replay", "s", number_of(lines[i])});
    CAPTURE(refused.out, refused.err);
    CHECK(refused.status == 2);
    CHECK(is_refusal(refused.err, "not-found"));
    CHECK(refused.err.find("--capture") != std::string::npos);
  }
  Ended never = user.run({"replay", "s", number_of(user.records("s", "refused")[0])});
  CHECK(never.status == 64);
  CHECK(is_refusal(never.err, "input.invalid"));
  CHECK(user.run({"replay", "s", "999"}).status == 2);
  CHECK(origin.connections() == 4);
}

TEST_CASE("no edit leads to another origin, and kept credentials go nowhere else") {
  Origin forbidden([](const std::string&) { return ok(); });
  Origin origin([&](const std::string& r) { return r.find("leave") != std::string::npos ? moved(302, forbidden.url("/x")) : ok(); });
  User user(people().back());
  user.open("s", {origin.url(""), forbidden.url("")}, {"--capture"});
  REQUIRE(user.run({"send", "s", origin.url("/a"), "-H", "Authorization: Bearer very-secret", "-H", "Cookie: id=very-secret"}).status == 0);
  const std::string number = number_of(user.records("s", "send")[0]);
  for (const char* edit : {"path=//127.0.0.1/x", "path=/../x", "path=/a\\b", "path=x", "path=http://127.0.0.1/", "path=/\t/x", "path=/?x", "header.A=b\r\nC: d", "nothing=1", "path"}) {
    Ended e = user.run({"replay", "s", number, edit});
    CAPTURE(edit, e.out, e.err);
    CHECK((e.status == 64 || origin.requests().back().find("Host: 127.0.0.1:" + origin.port()) != std::string::npos));
  }
  // A Host of another name is the same origin's connection.
  CHECK(user.run({"replay", "s", number, "header.Host=127.0.0.1:" + forbidden.port()}).status == 0);
  CHECK(forbidden.connections() == 0);
  CHECK(user.run({"replay", "s", number, "query.leave=1", "--follow", "1"}).status == 0);
  REQUIRE(forbidden.requests().size() == 1);
  CHECK(forbidden.requests()[0].find("very-secret") == std::string::npos);
}

TEST_CASE("raw bytes are said again as they are, whatever they are") {
  Origin origin([](const std::string&) { return ok(); });
  User user(people().back());
  user.open("s", {origin.url("")}, {"--capture"});
  std::string raw = "GeT  /x HTTP/1.1\nhost:x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 256; i++) raw += static_cast<char>(i);
  std::ofstream(user.home() + "/raw", std::ios::binary) << raw;
  std::ofstream(user.home() + "/other", std::ios::binary) << "HEAD / HTTP/1.0\r\n\r\n";
  REQUIRE(user.run({"send", "s", origin.url("/"), "--raw", user.home() + "/raw"}).status == 0);
  const std::string number = number_of(user.records("s", "send")[0]);
  CHECK(user.run({"replay", "s", number}).status == 0);
  CHECK(user.run({"replay", "s", number, "query.a=b"}).status == 64);
  Ended given = user.run({"replay", "s", number, "--raw", user.home() + "/other", "--json"});
  CHECK(fits("replay", given)["source"].string() == "given");
  REQUIRE(origin.requests().size() == 3);
  CHECK(origin.requests()[1] == raw);
  CHECK(origin.requests()[2] == "HEAD / HTTP/1.0\r\n\r\n");
}

namespace {

// Takes `expected` connections, and says how many were there but for their last byte when the first was whole; a process of its own as the other origin is.
class Watch : public Listener {
 public:
  Watch(int expected, int close_first) {
    begin([&] { serve(expected, close_first); });
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::string said() const { return read_file(seen_.path() + "/said"); }

 private:
  [[noreturn]] void serve(int expected, int close_first) {
    std::string said;
    for (bool first = true;; first = false) {  // the first connection is the one that is said again
      std::vector<pollfd> all = {{fd_.get(), POLLIN, 0}};
      std::vector<std::string> got = {""};
      int closed = 0, whole = 0, held = 0;
      const int wanted = first ? 1 : expected;
      while (whole + closed < wanted && poll(all.data(), all.size(), 10'000) > 0) {
        if (all[0].revents & POLLIN) {
          int c = accept(fd_.get(), nullptr, nullptr);
          if (!first && closed < close_first) {
            linger off{1, 0};
            setsockopt(c, SOL_SOCKET, SO_LINGER, &off, sizeof off);
            close(c);
            closed++;
          } else {
            all.push_back({c, POLLIN, 0});
            got.push_back("");
          }
          continue;
        }
        for (size_t i = 1; i < all.size(); i++) {
          if (!(all[i].revents & POLLIN)) continue;
          char piece[4096];
          ssize_t n = recv(all[i].fd, piece, sizeof piece, 0);
          if (n <= 0) {
            all[i].fd = -1;
            closed++;
            continue;
          }
          got[i].append(piece, static_cast<size_t>(n));
          if (!got[i].ends_with("\r\n\r\n")) continue;
          // Of the first that is whole: how many others are here but for a byte, read or not.
          for (size_t other = 1; whole == 0 && other < all.size(); other++) {
            int unread = 0;
            if (other != i && all[other].fd >= 0) ioctl(all[other].fd, FIONREAD, &unread);
            if (other != i && got[other].size() + static_cast<size_t>(unread) + 1 >= got[i].size()) held++;
          }
          whole++;
        }
      }
      for (size_t i = 1; i < all.size(); i++) {
        if (all[i].fd < 0) continue;
        (void)!::send(all[i].fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38, MSG_NOSIGNAL);
        close(all[i].fd);
      }
      if (!first) {
        std::ofstream(seen_.path() + "/said.new") << held << " others were there, " << whole << " whole";
        rename((seen_.path() + "/said.new").c_str(), (seen_.path() + "/said").c_str());
      }
    }
  }
};

}  // namespace

TEST_CASE("of a race no last byte arrives before all the others are there, and a peer that fails holds nobody") {
  struct Row {
    int expected, close_first;
  };
  for (const Row& row : {Row{2, 0}, {20, 0}, {8, 3}}) {
    CAPTURE(row.expected, row.close_first);
    Watch origin(row.expected, row.close_first);
    User user(people().back());
    user.open("s", {origin.url()}, {"--capture"});
    REQUIRE(user.run({"send", "s", origin.url() + "/"}).status == 0);
    const double begun = now();
    Ended e = user.run({"replay", "s", number_of(user.records("s", "send")[0]), "--race", std::to_string(row.expected), "--json"});
    Json doc = fits("replay", e);
    CHECK(now() - begun < 4);
    CHECK(doc["attempts"].array().size() == static_cast<size_t>(row.expected));
    for (int i = 0; i < 200 && origin.said().empty(); i++) usleep(10'000);
    // One of those that the peer reset may have been ready before it knew.
    if (row.close_first == 0) {
      CHECK(origin.said() == std::to_string(row.expected - 1) + " others were there, " + std::to_string(row.expected) + " whole");
      CHECK(doc["together"].integer() == row.expected);
    } else {
      CHECK(origin.said() == std::to_string(row.expected - row.close_first - 1) + " others were there, " + std::to_string(row.expected - row.close_first) + " whole");
    }
    CHECK(user.records("s", "send").size() == static_cast<size_t>(row.expected) + 1);
    CHECK(user.records("s", "outcome").size() == static_cast<size_t>(row.expected) + 1);
    CHECK(evidence::verify_chain(user.log("s")));
  }
}

TEST_CASE("a race against a peer that listens no more ends at once, and one in a scope that ended is all refusals") {
  User user(people().back());
  {
    Origin origin([](const std::string&) { return ok(); });
    user.open("s", {origin.url("")}, {"--capture"});
    REQUIRE(user.run({"send", "s", origin.url("/")}).status == 0);
  }
  const double begun = now();
  Ended e = user.run({"replay", "s", number_of(user.records("s", "send")[0]), "--race", "20", "--json"});
  fits("replay", e);
  CHECK(e.status == 2);
  CHECK(now() - begun < 4);
}

TEST_CASE("a repetition says its median and its spread, and keeps to its rate") {
  Origin origin([](const std::string&) { return ok(); });
  User user(people().back());
  user.open("s", {origin.url("")});
  REQUIRE(user.run({"send", "s", origin.url("/")}).status == 0);
  const std::string number = number_of(user.records("s", "send")[0]);
  Json doc = fits("replay", user.run({"replay", "s", number, "--repeat", "9", "--json"}));
  const Json& total = doc["times"]["total"];
  CHECK(total["count"].integer() == 9);
  CHECK((total["least_us"].integer() <= total["lower_us"].integer() && total["lower_us"].integer() <= total["median_us"].integer() && total["median_us"].integer() <= total["upper_us"].integer() && total["upper_us"].integer() <= total["most_us"].integer()));
  CHECK(total["least_us"].integer() > 0);
  const double begun = now();
  CHECK(user.run({"replay", "s", number, "--repeat", "6", "--rate", "10/s"}).status == 0);
  CHECK(now() - begun >= 0.5);
  CHECK(origin.requests().size() == 16);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--repeat", "0"}, {"--repeat", "1001"}, {"--race", "21"}, {"--race", "1"}, {"--race", "2", "--repeat", "2"}, {"--rate", "10"}, {"--rate", "10/s", "--race", "2"}}) {
    std::vector<std::string> all = {"replay", "s", number};
    all.insert(all.end(), words.begin(), words.end());
    CAPTURE(words);
    CHECK(user.run(all).status == 64);
  }
  CHECK(origin.requests().size() == 16);
}

TEST_CASE("what an origin sends back of a value is its name in the log, and nothing else there is changed") {
  // One of the values is what a digest or a port may have in it.
  for (const std::string& value : {std::string("value-of-alice"), std::string("a1b2")}) {
    CAPTURE(value);
    Origin origin([&](const std::string& r) {
      if (r.find("GET /go") == 0) return moved(302, "/landed?token=" + value);
      return "HTTP/1.1 429 " + value + "\r\nContent-Type: text/" + value + "\r\nRetry-After: " + value + "\r\nX-" + value + ": 1\r\nSet-Cookie: " + value + "=1\r\nContent-Length: 3\r\n\r\nabc";
    });
    User user(people().back());
    user.open("s", {origin.url("")});
    REQUIRE(user.run({"send", "s", origin.url("/x"), "--no-cookies"}).status == 0);
    REQUIRE(user.run({"send", "s", origin.url("/go"), "--no-cookies"}).status == 0);
    REQUIRE(user.run({"ident", "s", "add", "alice", "-H", "Authorization: Bearer $ALICE_TOKEN"}).status == 0);
    const size_t before = user.records("s", "outcome").size();
    const auto sends = user.records("s", "send");
    for (const Json& s : sends) (void)with(user.h5i({"replay", "s", number_of(s), "--as", "alice"}), "ALICE_TOKEN", value);
    std::ofstream(user.home() + "/inputs") << "1\n";
    Ended e = with(user.h5i({"experiment", "s", number_of(sends[1]), "query.q={{input}}", "--inputs", user.home() + "/inputs", "--as", "alice", "--follow", "1"}), "ALICE_TOKEN", value);
    CAPTURE(e.out, e.err);
    CHECK(has(e.out, "1 of 1 complete"));
    auto outcomes = user.records("s", "outcome");
    REQUIRE(outcomes.size() == before + 4);
    const Json& answered = outcomes[before]["body"];
    CHECK(answered["hidden"].boolean());
    CHECK(answered["reason"].string() == "$ALICE_TOKEN");
    CHECK(answered["content_type"].string() == "text/$ALICE_TOKEN");
    CHECK(answered["retry_after"].string() == "$ALICE_TOKEN");
    CHECK(answered["set_cookie"].array()[0].string() == "$ALICE_TOKEN");
    CHECK(answered["body_sha256"].string() == sha256_hex("abc"));
    CHECK(outcomes[before + 1]["body"]["location"].string() == "/landed?token=$ALICE_TOKEN");
    // The hop went where the origin said; its line has the name.
    const auto hop = user.records("s", "send").back();
    CHECK(hop["body"]["url"].string() == origin.url("/landed?token=$ALICE_TOKEN"));
    CHECK(hop["body"]["head_sha256"].string() == sha256_hex(origin.requests().back()));
    CHECK(has(origin.requests().back(), "GET /landed?token=" + value));
    for (const Json& r : user.records("s", "send")) CHECK(r["body"]["peer"].string() == "127.0.0.1:" + origin.port());
    std::ifstream log(user.log("s"));
    size_t n = 0;
    for (std::string line; std::getline(log, line); n++)
      if (value.size() > 4 && n >= 8) { CAPTURE(line); CHECK_FALSE(has(line, value)); }
    fits("hist", user.run({"hist", "s", "--json"}));
    for (const Json& r : user.records("s", "send")) fits("show", user.run({"show", "s", number_of(r), "--json"}));
  }
}

TEST_CASE("as somebody else: what said who asked goes and is named, what comes is a name everywhere but on the wire") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    Origin origin([](const std::string& r) { return "HTTP/1.1 200 " + std::string(r.find("reflect") != std::string::npos ? "value-of-alice" : "OK") + "\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"; });
    User user(uid);
    user.open("s", {origin.url("")}, {"--capture"});
    REQUIRE(user.run({"send", "s", origin.url("/mine"), "-H", "X-Api-Key: first-secret", "-H", "Accept: a/b", "-H", "Cookie: sid=first-secret"}).status == 0);
    const std::string number = number_of(user.records("s", "send")[0]);
    Ended added = user.run({"ident", "s", "add", "alice", "-H", "Authorization: Bearer $ALICE_TOKEN", "-H", "Accept: c/d", "--json"});
    CHECK(added.status == 0);
    fits("ident", added);
    std::string said;
    // Without a value nothing is sent.
    Ended unset = user.run({"replay", "s", number, "--as", "alice"});
    CHECK(unset.status == 2);
    CHECK(unset.err.find("ALICE_TOKEN") != std::string::npos);
    CHECK(origin.connections() == 1);
    for (const char* output : {"--json", "-v"}) {
      Ended e = with(user.h5i({"replay", "s", number, std::string(output) == "-v" ? "query.reflect=1" : "header.Accept=x/y", "--as", "alice", output}), "ALICE_TOKEN", "value-of-alice");
      CHECK(e.status == 0);
      if (std::string(output) == "--json") {
        Json doc = fits("replay", e);
        CHECK(json::canonical(doc["dropped"]) == R"(["X-Api-Key","Cookie"])");
        CHECK(doc["identity"].string() == "alice");
      }
      said += e.out + e.err;
    }
    CHECK(said.find("$ALICE_TOKEN") != std::string::npos);  // what the origin said back
    Ended nobody = user.run({"replay", "s", number, "--as", "none"});
    CHECK(nobody.status == 0);
    auto arrived = origin.requests();
    REQUIRE(arrived.size() == 4);
    CHECK(arrived[1] == "GET /mine HTTP/1.1\r\nHost: 127.0.0.1:" + origin.port() + "\r\nAuthorization: Bearer value-of-alice\r\nAccept: c/d\r\n\r\n");
    CHECK(arrived[3] == "GET /mine HTTP/1.1\r\nHost: 127.0.0.1:" + origin.port() + "\r\nAccept: a/b\r\n\r\n");
    auto lines = user.records("s", "send");
    CHECK(lines[1]["body"]["identity"].string() == "alice");
    CHECK(json::canonical(lines[1]["body"]["credentials"]) == R"(["Authorization"])");
    Ended shown = user.run({"show", "s", number_of(lines[1]), "--bytes"});
    said += nobody.out + shown.out + user.run({"ident", "s", "list"}).out;
    for (const char* value : {"first-secret", "value-of-alice"}) CHECK(said.find(value) == std::string::npos);
    for (const Json& line : lines) CHECK(json::canonical(line).find("value-of-alice") == std::string::npos);
    CHECK(fits("ident", user.run({"ident", "s", "list", "--json"}))["identities"].array().size() == 1);
    CHECK(user.run({"ident", "s", "add", "alice", "-H", "Authorization: $B"}).status == 2);
    CHECK(user.run({"ident", "s", "remove", "alice"}).status == 0);
    CHECK(with(user.h5i({"replay", "s", number, "--as", "alice"}), "ALICE_TOKEN", "value-of-alice").status == 2);
    CHECK(user.run({"ident", "s", "remove", "alice"}).status == 2);
    CHECK(origin.connections() == 4);
  }
}

TEST_CASE("an identity holds no value of a key, and its names are in headers that nobody shows") {
  User user(people().back());
  user.open("s", {"http://127.0.0.1:1"});
  for (const std::vector<std::string>& words : {std::vector<std::string>{"add", "a", "-H", "Authorization: Bearer literal-secret"}, {"add", "a", "-H", "Cookie: sid=literal-secret"}, {"add", "a", "-H", "X-Tenant: $TENANT"},
                                               {"add", "a", "-H", "literal-secret"}, {"add", "none", "-H", "Authorization: $A"}, {"add", "A B", "-H", "Authorization: $A"}, {"add", "a"}, {"add"}, {"list", "a"}, {"remove"}, {"other", "a"},
                                               {"remove", "a", "-H", "A: b"}, {"add", "a", "-H", "Authorization: $$A"}}) {
    std::vector<std::string> all = {"ident", "s"};
    all.insert(all.end(), words.begin(), words.end());
    Ended e = user.run(all);
    CAPTURE(words, e.out, e.err);
    CHECK(e.status == 64);
    CHECK((e.out + e.err).find("literal-secret") == std::string::npos);
  }
  CHECK(user.records("s", "identity").empty());
  CHECK(read_file(user.log("s")).find("literal-secret") == std::string::npos);
  CHECK(user.run({"ident", "s", "add", "a", "-H", "X-Tenant: 7", "-H", "Authorization: $A"}).status == 0);
  // A value that would be another header is refused, and not shown.
  Ended sent = user.run({"send", "s", "http://127.0.0.1:1/"});
  Ended split = with(user.h5i({"replay", "s", number_of(user.records("s", "send")[0]), "--as", "a"}), "A", "x\r\nInjected: literal-secret");
  CAPTURE(split.out, split.err);
  CHECK(split.status == 64);
  CHECK((split.out + split.err).find("literal-secret") == std::string::npos);
  CHECK(user.records("s", "send").size() == 1);
}
