#include "tests/broker/hello.hpp"
#include "tests/broker/place.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

broker::ProxyLimits quick() {
  broker::ProxyLimits l;
  l.head_ms = l.hello_ms = l.lookup_ms = l.dial_ms = 600;
  l.idle_ms = 1500;
  l.half_open_ms = 700;
  l.linger_ms = 500;
  return l;
}
constexpr const char* kOk = "HTTP/1.1 200 OK";
constexpr const char* kTunnel = "HTTP/1.1 200 Connection established";
constexpr const char* kRefused = "HTTP/1.1 403 ";
const std::string kAlert("\x15\x03\x01\x00\x02\x02\x31", 7);

// What a tunnel answers to its first bytes.
std::string through(Proxy& p, const std::string& authority, const std::string& bytes, std::string_view enough, int ms = 3000) {
  UniqueFd c = p.open_to(authority);
  std::string head = hear(c, "\r\n\r\n", ms);
  if (!has(head, kTunnel)) return head;
  std::string after = head.substr(head.find("\r\n\r\n") + 4);
  say(c, bytes);
  return after + hear(c, enough, ms);
}
long resident_kib() {
  std::ifstream in("/proc/self/status");
  std::string word;
  while (in >> word)
    if (word == "VmRSS:") {
      long n = 0;
      in >> n;
      return n;
    }
  return 0;
}

}  // namespace

KERNEL_TEST("what a rule names is reached, by request and by tunnel, and nothing else is", "[broker][proxy]") {
  KREQUIRE(enter_place());
  Origin a(kPublicA, 80, web()), b(kPublicB, 80, web()), tls(kPublicA, 443, echo()), port(kPublicA, 8080, web());
  KREQUIRE(a.up() && b.up() && tls.up() && port.up());
  Proxy p({"a.example:80", "a.example", "*.wide.example:80", "93.184.216.34:80"}, {{"a.example", {kPublicA}}, {"b.example", {kPublicB}}, {"x.wide.example", {kPublicB}}});
  KREQUIRE(p.up());
  KCHECK(has(p.ask(get("http://a.example/x", "a.example")), kOk));
  KCHECK(has(a.seen(), "GET /x HTTP/1.1\r\nHost: a.example\r\n"));
  std::string hello = hello_for("a.example");
  KCHECK(through(p, "a.example:443", hello, hello) == hello);
  KCHECK(has(p.ask(get("http://x.wide.example/", "x.wide.example")), kOk));
  KCHECK(has(p.ask(get("http://93.184.216.34/", "93.184.216.34")), kOk));
  // The same origins by what no rule names.
  std::string before_b = b.seen();
  KCHECK(has(p.ask(get("http://b.example/", "b.example")), kRefused));
  KCHECK(has(p.ask(get("http://wide.example/", "wide.example")), kRefused));
  KCHECK(has(p.ask(get("http://93.184.216.35/", "93.184.216.35")), kRefused));
  KCHECK(has(p.ask(get("http://a.example:8080/", "a.example:8080")), kRefused));
  KCHECK(has(p.ask("CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n"), kRefused));
  KCHECK(b.seen() == before_b && port.connections() == 0);
  KCHECK(p.lookups() == 2);  // what is refused is not even looked up
  Json r = p.report();
  KCHECK(allowed(r, "a.example:80") == 1 && allowed(r, "a.example:443") == 1 && allowed(r, "x.wide.example:80") == 1);
  KCHECK(refused(r, "b.example:80", "no-rule") == 1 && refused(r, "b.example:443", "no-rule") == 1 && refused(r, "a.example:8080", "no-rule") == 1);
  KCHECK(row(r, "a.example:443")["sent"].integer() == static_cast<int64_t>(hello.size()) && row(r, "a.example:443")["rule"].string() == "a.example:443");
}

KERNEL_TEST("a second request hidden in a first one reaches nobody", "[broker][proxy]") {
  KREQUIRE(enter_place());
  // An origin that keeps its connections, as one that would serve what is smuggled.
  Origin a(kPublicA, 80, [](const std::string&) { return std::string("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); });
  Proxy p({"a.example:80"}, {{"a.example", {kPublicA}}}, quick());
  KREQUIRE(a.up() && p.up());
  const std::string line = "POST http://a.example/x HTTP/1.1\r\nHost: a.example\r\n", evil = "GET http://evil.example/secret HTTP/1.1\r\nHost: evil.example\r\n\r\n";
  struct {
    std::string fields, rest;
  } tries[] = {
      {"Content-Length: 4\r\nContent-Length: 0\r\n", "abcd" + evil},
      {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + evil},
      {"Transfer-Encoding: chunkedx\r\n", "0\r\n\r\n" + evil},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n" + evil},
      {"X: y\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + evil},
      {"Content-Length : 4\r\n", "abcd" + evil},
  };
  for (const auto& t : tries) {
    std::string said = p.ask(line + t.fields + "\r\n" + t.rest);
    KCHECK_SAYS(has(said, "HTTP/1.1 400 ") && !has(said, kOk), said);
  }
  KCHECK(a.connections() == 0);
  // Each is judged: what follows a whole request on its connection is another, and goes nowhere.
  for (const char* fields : {"Content-Length: 4\r\n", "Transfer-Encoding: chunked\r\n", ""}) {
    std::string body = std::string(fields).empty() ? "" : fields[0] == 'C' ? "abcd" : "4\r\nabcd\r\n0\r\n\r\n";
    UniqueFd c = dial_to(p.at(), kProxyPort);
    say(c, line + fields + "\r\n" + body + evil + "GET /secret HTTP/1.1\r\nHost: a.example\r\n\r\n");
    KCHECK(has(hear(c, "ok", 3000), kOk));
    say(c, evil);
    hear(c, {}, 300);
  }
  KCHECK(a.connections() == 3);
  KCHECK(!has(a.seen(), "secret") && !has(a.seen(), "evil"));
  KCHECK(has(a.seen(), "abcd"));  // control: the body did arrive
  KCHECK(p.report()["malformed"]["second-request"].integer() == 3);
  // A body that stops being one ends with what came before it.
  std::string cut = p.ask(line + "Transfer-Encoding: chunked\r\n\r\n4\r\nwxyz\r\nZZ\r\n" + evil, 2000);
  usleep(100'000);
  KCHECK(!has(a.seen(), "ZZ"));
}

KERNEL_TEST("no tunnel leads where no rule does, and no upgrade turns a request into one", "[broker][proxy]") {
  KREQUIRE(enter_place());
  Origin ssh(kPublicA, 22, echo(), "SSH-2.0-origin\r\n"), ruled(kPublicB, 22, echo(), "SSH-2.0-origin\r\n"), a(kPublicA, 80, web()), other(kPublicA, 8443, echo()), tls(kPublicA, 443, echo());
  KREQUIRE(ssh.up() && ruled.up() && a.up() && other.up());
  Proxy p({"a.example:80", "a.example", "git.example:22", "a.example:8443"}, {{"a.example", {kPublicA}}, {"git.example", {kPublicB}}}, quick());
  KCHECK(has(through(p, "a.example:22", "SSH-2.0-x\r\n", "SSH"), kRefused));
  KCHECK(ssh.connections() == 0);
  // Control: where a rule says so.
  KCHECK(has(through(p, "git.example:22", "SSH-2.0-client here\r\n", "client here"), "SSH-2.0-origin"));
  KCHECK(row(p.report(), "git.example:22")["unseen"].integer() == 1);
  for (const char* fields : {"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n", "Upgrade: TLS/1.0\r\n"})
    KCHECK(has(p.ask(get("http://a.example/", "a.example", fields)), kRefused));
  KCHECK(a.connections() == 0);
  KCHECK(has(p.ask(get("http://a.example/", "a.example")), kOk));
  // A request of HTTP inside a tunnel would not be judged, whatever its version.
  for (const char* first : {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "CONNECT evil.example:443 HTTP/1.1\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\r\n", "GET http://evil.example/ HTTP/1.1\r\n\r\n", "get\t/ HTTP/1.1\r\n\r\n"}) {
    KCHECK_SAYS(through(p, "a.example:8443", first, {}, 2000).empty(), first);
    KCHECK_SAYS(through(p, "a.example:443", first, {}, 2000) == kAlert, first);
  }
  KCHECK(other.seen().empty() && tls.seen().empty());
  KCHECK(has(through(p, "a.example:8443", std::string("\x00\x01zz", 4), "zz"), "zz"));  // control: what is no HTTP passes there
}

KERNEL_TEST("the authority of a tunnel and the server name in it agree with one rule", "[broker][proxy]") {
  KREQUIRE(enter_place());
  Origin tls(kPublicA, 443, echo()), other(kPublicA, 8443, echo());
  Proxy p({"a.example", "b.example", "*.wide.example", "a.example:8443", "93.184.216.34"}, {{"a.example", {kPublicA}}, {"b.example", {kPublicA}}, {"x.wide.example", {kPublicA}}}, quick());
  KREQUIRE(tls.up() && other.up() && p.up());
  std::string good = hello_for("a.example");
  KCHECK(through(p, "a.example:443", good, good) == good);
  std::string sister = hello_for("y.wide.example");
  KCHECK(through(p, "x.wide.example:443", sister, sister) == sister);
  std::string before = tls.seen();
  struct {
    const char *to, *reason;
    std::string first;
  } bad[] = {
      {"a.example:443", "server-name", hello_for("evil.example")},
      {"a.example:443", "server-name", hello_for("b.example")},  // of another rule
      {"a.example:443", "server-name", hello_for("x.wide.example")},
      {"a.example:443", "no-server-name", record(hello_message({}))},
      {"a.example:443", "encrypted-hello", record(hello_message({{0, name_extension("a.example")}, {0xfe0d, "x"}}))},
      {"a.example:443", "not-tls", "hello\n"},
      {"a.example:8443", "server-name", hello_for("evil.example")},
  };
  for (const auto& b : bad) {
    std::string said = through(p, b.to, b.first, {});
    KCHECK_SAYS(said == kAlert, b.reason);
    KCHECK_SAYS(refused(p.report(), b.to, b.reason) >= 1, b.reason);
  }
  KCHECK(tls.seen() == before && !has(other.seen(), "evil"));
  // In pieces it is the same one; half of one reaches nobody.
  {
    UniqueFd c = p.open_to("a.example:443");
    hear(c, "\r\n\r\n");
    std::string evil = hello_for("evil.example");
    for (char ch : evil) say(c, std::string_view(&ch, 1));
    KCHECK(hear(c) == kAlert);
    KCHECK(through(p, "a.example:443", good.substr(0, good.size() - 1), {}) == kAlert);
    KCHECK(refused(p.report(), "a.example:443", "slow") == 1);
  }
  KCHECK(tls.seen() == before);
  // A rule that says an address has no name to compare.
  KCHECK(through(p, "93.184.216.34:443", "anything", "anything") == "anything");
}

KERNEL_TEST("a second hello with another name is cut off", "[broker][proxy]") {
  KREQUIRE(enter_place());
  Origin tls(kPublicA, 443, [](const std::string& piece) { return piece.find("evil") == std::string::npos && piece.find("again") == std::string::npos ? server_hello(true) : piece; });
  Proxy p({"a.example"}, {{"a.example", {kPublicA}}}, quick());
  for (const char* second : {"a.example", "evil.example"}) {
    UniqueFd c = p.open_to("a.example:443");
    hear(c, "\r\n\r\n");
    say(c, hello_for("a.example"));
    hear(c, server_hello(true));
    say(c, record("\1", 20) + hello_for(second) + record("again", 23));
    bool same = std::string_view(second) == "a.example";
    KCHECK_SAYS(has(hear(c, "again", 1200), "again") == same, second);
  }
  KCHECK(!has(tls.seen(), "evil"));
}

KERNEL_TEST("a redirect is the client's affair, and what was meant for one host reaches no other", "[broker][proxy]") {
  KREQUIRE(enter_place());
  Origin a(kPublicA, 80, [](const std::string&) { return std::string("HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\nConnection: close\r\nContent-Length: 0\r\n\r\n<end>"); }), evil(kPublicB, 80, web());
  Proxy p({"a.example:80"}, {{"a.example", {kPublicA}}, {"evil.example", {kPublicB}}});
  KREQUIRE(a.up() && evil.up() && p.up());
  const char* held = "Authorization: Bearer placeholder\r\nProxy-Authorization: Basic cHJveHk6c2VjcmV0\r\n";
  KCHECK(has(p.ask(get("http://a.example/", "a.example", held)), "302 Found"));
  KCHECK(has(a.seen(), "Bearer placeholder") && !has(a.seen(), "Proxy-Authorization"));
  KCHECK(evil.connections() == 0);
  KCHECK(has(p.ask(get("http://evil.example/", "evil.example", held)), kRefused));
  KCHECK(has(p.ask(get("http://a.example/", "evil.example", held)), "HTTP/1.1 400 "));
  KCHECK(evil.connections() == 0 && a.connections() == 1);
}

KERNEL_TEST("what a process in between asks for is judged as if it had been asked for directly", "[broker][proxy]") {
  KREQUIRE(enter_place());
  Origin a(kPublicA, 443, echo()), evil(kPublicB, 443, echo());
  // Carries each piece on to the proxy and back.
  Origin relay("127.0.0.1", 9999, [](const std::string& piece) {
    UniqueFd c = dial_to("127.0.0.1", kProxyPort);
    say(c, piece);
    return hear(c, "\r\n\r\n") + "<end>";
  });
  Proxy p({"a.example"}, {{"a.example", {kPublicA}}, {"evil.example", {kPublicB}}});
  for (const char* to : {"a.example:443", "evil.example:443", "93.184.216.35:443", "127.0.0.1:22"}) {
    std::string request = std::string("CONNECT ") + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n";
    UniqueFd direct = dial_to("127.0.0.1", kProxyPort), around = dial_to("127.0.0.1", 9999);
    say(direct, request);
    say(around, request);
    std::string d = hear(direct, "\r\n\r\n"), r = hear(around, "\r\n\r\n");
    KCHECK_SAYS(d.substr(0, 12) == r.substr(0, 12) && d.size() > 12, to);
    KCHECK_SAYS(has(d, kTunnel) == (std::string_view(to) == "a.example:443"), to);
  }
  KCHECK(evil.connections() == 0);
  KCHECK(refused(p.report(), "evil.example:443", "no-rule") == 2);
}

KERNEL_TEST("a name leads only where a box may go, and stays where it led first", "[broker][proxy]") {
  KREQUIRE(enter_place());
  Origin pub(kPublicA, 80, web()), priv(kPrivate, 80, web()), meta(kMetadata, 80, web()), loop("127.0.0.1", 80, web()), pub6("2606:4700::7", 80, web());
  KREQUIRE(pub.up() && priv.up() && meta.up() && loop.up() && pub6.up());
  Proxy::Names names{{"loop.example", {"127.0.0.1"}},      {"meta.example", {kMetadata}},         {"private.example", {kPrivate}}, {"mapped.example", {"::ffff:127.0.0.1"}}, {"nat64.example", {"64:ff9b::a9fe:a9fe"}},
                     {"six.example", {"2606:4700::7"}}, {"mixed.example", {"127.0.0.1", kPublicA}}, {"moves.example", {kPublicA}},   {"zero.example", {"0.0.0.0"}},            {"local6.example", {"::1"}}};
  std::vector<std::string> rules{"10.9.0.0/16:80"};
  for (const auto& [name, to] : names) rules.push_back(name + ":80");
  {
    Proxy p(rules, names);
    auto ask = [&](const std::string& host) { return p.ask(get("http://" + host + "/", host)); };
    KCHECK(has(ask("mixed.example"), kOk) && has(ask("six.example"), kOk));
    KCHECK(has(ask(kPrivate), kOk));  // a rule names the address
    for (const char* never : {"loop.example", "meta.example", "mapped.example", "nat64.example", "zero.example", "local6.example", "private.example"}) KCHECK_SAYS(has(ask(never), kRefused), never);
    for (const char* literal : {"127.0.0.1", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[64:ff9b::7f00:1]"}) KCHECK_SAYS(has(ask(literal), kRefused), literal);
    KCHECK(refused(p.report(), "loop.example:80", "address-loopback") == 1 && refused(p.report(), "private.example:80", "address-private") == 1);
    KCHECK(loop.connections() == 0 && meta.connections() == 0 && priv.connections() == 1);
    // Rebinding: the first answer is what the name means.
    KCHECK(has(ask("moves.example"), kOk));
    int before = pub.connections();
    p.move("moves.example", {"127.0.0.1"});
    KCHECK(has(ask("moves.example"), kOk) && pub.connections() == before + 1 && loop.connections() == 0);
    // A name that meant nothing may mean something later.
    KCHECK(has(ask("moves.example"), kOk));
  }
  Proxy open({"private.example:80", "loop.example:80"}, names, {}, "127.0.0.1", true);
  KCHECK(has(open.ask(get("http://private.example/", "private.example")), kOk));
  KCHECK(has(open.ask(get("http://loop.example/", "loop.example")), kRefused));
  KCHECK(loop.connections() == 0);
}

KERNEL_TEST("the proxy is no way to itself", "[broker][proxy]") {
  KREQUIRE(enter_place());
  Origin beside(kPrivate, 80, web());
  Proxy p({"10.9.0.0/16:1-65535", "me.example:3128"}, {{"me.example", {kPrivate}}}, quick(), kPrivate, true);
  KREQUIRE(p.up() && beside.up());
  KCHECK(has(p.ask(get("http://10.9.0.1/", "10.9.0.1")), kOk));  // control: the address is open at another port
  KCHECK(has(p.ask("CONNECT 10.9.0.1:3128 HTTP/1.1\r\nHost: 10.9.0.1:3128\r\n\r\n"), kRefused));
  KCHECK(has(p.ask("CONNECT me.example:3128 HTTP/1.1\r\nHost: me.example:3128\r\n\r\n"), kRefused));
  KCHECK(has(p.ask(get("http://me.example:3128/", "me.example:3128")), kRefused));
  KCHECK(refused(p.report(), "10.9.0.1:3128", "itself") == 1 && refused(p.report(), "me.example:3128", "itself") == 2);
  Proxy q({"10.9.0.0/16:1-65535"}, {}, quick());
  KCHECK(has(q.ask("CONNECT 127.0.0.1:3128 HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n"), kRefused));
}

KERNEL_TEST("whoever says little or much takes no more than its share", "[broker][proxy]") {
  KREQUIRE(enter_place());
  Origin a(kPublicA, 80, web()), sink(kPublicB, 80, silent());
  broker::ProxyLimits limits = quick();
  limits.connections = 32;
  Proxy p({"a.example:80", "sink.example:80"}, {{"a.example", {kPublicA}}, {"sink.example", {kPublicB}}}, limits);
  KREQUIRE(a.up() && sink.up() && p.up());
  KCHECK(has(p.ask(get("http://a.example/", "a.example")), kOk));
  // A byte now and then: the whole head has one deadline.
  {
    UniqueFd slow = dial_to(p.at(), kProxyPort);
    std::string head = get("http://a.example/", "a.example");
    int64_t from = monotonic_ns();
    std::string said;
    for (size_t i = 0; i < 20 && said.empty(); i++) {
      say(slow, std::string_view(head).substr(i, 1));
      said = hear(slow, "\r\n\r\n", 100);
      if (has(said, "<late>")) said.clear();
    }
    KCHECK_SAYS(has(said, "HTTP/1.1 408 "), said);
    KCHECK(monotonic_ns() - from < 1'900'000'000 * int64_t{kSlower});
  }
  // As many as there may be, and one more.
  {
    std::vector<UniqueFd> held;
    for (int i = 0; i < 32; i++) held.push_back(dial_to(p.at(), kProxyPort));
    usleep(100'000);
    KCHECK(has(p.ask(get("http://a.example/", "a.example")), "HTTP/1.1 503 "));
    KCHECK(p.report()["over_limit"].integer() == 1);
  }
  usleep(200'000);
  KCHECK(has(p.ask(get("http://a.example/", "a.example")), kOk));
  // Ten thousand, and a body of which nothing is kept.
  long before = resident_kib();
  for (int i = 0; i < 10'000; i++) {
    UniqueFd c = dial_to(p.at(), kProxyPort);
    say(c, "GET http://a.exa");
  }
  {
    UniqueFd c = dial_to(p.at(), kProxyPort);
    say(c, "POST http://sink.example/ HTTP/1.1\r\nHost: sink.example\r\nContent-Length: 900000000000000000\r\n\r\n");
    std::string piece(1 << 16, 'x');
    for (int i = 0; i < 256; i++) say(c, piece);
  }
  KCHECK_SAYS(resident_kib() - before < 8 * 1024 * kSlower, std::to_string(resident_kib() - before) + " KiB more");
  usleep(300'000);
  KCHECK(has(p.ask(get("http://a.example/", "a.example")), kOk));
  KCHECK(has(p.ask("GET http://a.example/" + std::string(20'000, 'x')), "HTTP/1.1 431 "));
}

KERNEL_TEST("what hangs outside holds up nobody else, and what is idle or half open ends", "[broker][proxy]") {
  KREQUIRE(enter_place());
  Origin a(kPublicA, 80, web()), mute(kPublicB, 443, silent());
  Proxy p({"a.example:80", "*.example.org:80", "hangs.example:80", "gone.example:80", "93.184.216.35", "203.0.113.1:80", "nothing.example:80"}, {{"a.example", {kPublicA}}, {"gone.example", {"93.184.216.34"}}}, quick());
  KREQUIRE(a.up() && mute.up() && p.up());
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 3; i++) {
    waiting.push_back(dial_to(p.at(), kProxyPort));
    std::string host = "hangs" + std::to_string(i) + ".example.org";
    say(waiting.back(), get("http://" + host + "/", host));
  }
  KCHECK(has(p.ask(get("http://a.example/", "a.example")), kOk));
  for (const UniqueFd& w : waiting) KCHECK(has(hear(w), "HTTP/1.1 504 "));
  KCHECK(has(p.ask(get("http://nothing.example/", "nothing.example")), "HTTP/1.1 502 "));
  UniqueFd idle = p.open_to("93.184.216.35:443");
  hear(idle, "\r\n\r\n");
  int64_t from = monotonic_ns();
  KCHECK(hear(idle, {}, 4000 * kSlower).empty());
  KCHECK(monotonic_ns() - from > 1'200'000'000);
  UniqueFd half = p.open_to("93.184.216.35:443");
  hear(half, "\r\n\r\n");
  shutdown(half.get(), SHUT_WR);
  from = monotonic_ns();
  KCHECK(hear(half, {}, 3000 * kSlower).empty());
  KCHECK(monotonic_ns() - from < 1'300'000'000 * int64_t{kSlower});
}

KERNEL_TEST("where one address of a name says nothing, the next is dialled in the same time", "[broker][proxy]") {
  KREQUIRE(enter_place());
  Origin a(kPublicA, 80, web());
  // A listener whose queue is full drops whatever comes.
  UniqueFd full(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage at;
  socklen_t n = address_of(kPublicB, 80, &at);
  KREQUIRE(bind(full.get(), reinterpret_cast<sockaddr*>(&at), n) == 0 && listen(full.get(), 0) == 0);
  std::vector<UniqueFd> queue;
  for (int i = 0; i < 4; i++) {
    queue.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)!connect(queue.back().get(), reinterpret_cast<sockaddr*>(&at), n);
  }
  usleep(50'000);
  Proxy p({"two.example:80", "one.example:80"}, {{"two.example", {kPublicB, kPublicA}}, {"one.example", {kPublicB}}}, quick());
  KREQUIRE(a.up() && p.up());
  KCHECK(has(p.ask(get("http://two.example/", "two.example")), kOk));
  KCHECK(has(p.ask(get("http://one.example/", "one.example")), "HTTP/1.1 504 "));
}

KERNEL_TEST("a rule that is withdrawn cuts what it let through, and a new one lets through", "[broker][proxy]") {
  KREQUIRE(enter_place());
  Origin a(kPublicA, 443, echo()), b(kPublicB, 443, echo());
  Proxy p({"a.example", "93.184.216.35"}, {{"a.example", {kPublicA}}});
  std::string hello = hello_for("a.example");
  UniqueFd one = p.open_to("a.example:443"), two = p.open_to("93.184.216.35:443");
  hear(one, "\r\n\r\n");
  hear(two, "\r\n\r\n");
  say(one, hello);
  KCHECK(hear(one, hello) == hello);
  p.replace({"93.184.216.35"});
  KCHECK(hear(one, {}, 1000).empty());
  say(two, "still here");
  KCHECK(hear(two, "still here") == "still here");
  KCHECK(has(through(p, "a.example:443", hello, hello), kRefused));
  KCHECK(refused(p.report(), "a.example:443", "withdrawn") == 1);
  p.replace({"*.example.net", "a.example"});
  KCHECK(through(p, "a.example:443", hello, hello) == hello);
}

KERNEL_TEST("bodies and answers of any size pass as they are, in both directions and half closed", "[broker][proxy]") {
  KREQUIRE(enter_place());
  std::string large(3 << 20, 'L');
  Origin a(kPublicA, 80, web(large)), t(kPublicA, 8000, echo());
  Proxy p({"a.example:80", "93.184.216.34:8000"}, {{"a.example", {kPublicA}}});
  std::string got = p.ask(get("http://a.example/", "a.example"), 20'000);
  KCHECK(has(got, large) && !has(got, "<late>"));
  UniqueFd c = p.open_to("93.184.216.34:8000");
  hear(c, "\r\n\r\n");
  std::thread sends([&] { say(c, large), shutdown(c.get(), SHUT_WR); });
  std::string back = hear(c, {}, 20'000);
  sends.join();
  KCHECK(back == large);
  Json moved = row(p.report(), "93.184.216.34:8000");
  KCHECK(moved["sent"].integer() == static_cast<int64_t>(large.size()) && moved["received"].integer() >= static_cast<int64_t>(large.size()));
}

TEST_CASE("what is counted is bounded, and told in one packet", "[broker][proxy]") {
  broker::Verdicts v;
  for (int i = 0; i < 5000; i++) v.refused(*broker::parse_target(std::string(63, 'a') + "." + std::string(63, 'b') + "." + std::to_string(i) + "x.example:443"), "no-rule", 1);
  Json r = v.to_json();
  CHECK(json::canonical(r).size() < broker::kMaxReport + 1024);
  CHECK(r["hosts"].array().size() + static_cast<size_t>(r["others"].integer()) == 5000);
  CHECK(r["hosts"].array().size() > 100);
}
