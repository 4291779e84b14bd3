// A session whose wire is in a box: what is recorded and by whom, what the box's rules refuse, and what a hostile program of the box can do about it.
#include <sys/syscall.h>

#include "core/base/sha256.hpp"
#include "core/evidence/log.hpp"
#include "tests/websec_send/boxed.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

// The half in the box, by the words it was started with, below this process.
pid_t half_below(pid_t top) {
  for (int i = 0; i < 20'000 && runs(top); i++) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = atoi(entry.path().filename().c_str());
      if (pid <= 0 || read_file(entry.path().string() + "/cmdline") != std::string("h5i-engine\0in-box\0", 18)) continue;
      for (pid_t up = pid; up > 1;) {
        const std::string stat = read_file("/proc/" + std::to_string(up) + "/stat");
        const size_t paren = stat.rfind(')');
        if (paren == std::string::npos) break;
        up = atoi(stat.c_str() + paren + 4);
        if (up == top) return pid;
      }
    }
    usleep(500);
  }
  return -1;
}

}  // namespace

TEST_CASE("with --in the request leaves from the box, the log is written on the host, and every line says where") {
  Origin origin([](const std::string& r) {
    if (has(r, "GET /moved")) return moved(302, "/there");
    if (has(r, "GET /login")) return std::string("HTTP/1.1 200 OK\r\nSet-Cookie: sid=secretvalue\r\nContent-Length: 2\r\n\r\nok");
    return ok();
  });
  for (uid_t uid : users()) {
    CAPTURE(uid);
    const size_t before = origin.requests().size();
    Boxed b(uid);
    Json opened = b.json_of({"open", "s", "--scope", origin.url(""), "--in", "out", "--capture"});
    CHECK(opened["placement"].string() == kIn);
    CHECK(b.of("s", "websec-opened")[0]["body"]["placement"]["text"].string() == kIn);
    Json sent = b.json_of({"send", "s", origin.url("/moved"), "--follow", "2"});
    CHECK(sent["placement"].string() == kIn);
    CHECK(sent["rows"].array().size() == 2);
    CHECK(has(b.web({"send", "s", origin.url("/login")}).out, kIn));
    b.web({"send", "s", origin.url("/with")});
    CHECK(has(b.web({"ls"}).out, kIn));
    CHECK(b.json_of({"hist", "s"})["placement"].string() == kIn);
    CHECK(b.json_of({"show", "s", std::to_string(sent["rows"].array()[0]["number"].integer())})["placement"].string() == kIn);
    b.json_of({"replay", "s", std::to_string(sent["rows"].array()[1]["number"].integer()), "--race", "3"});
    write_file(b.p / "inputs", "1\n2\n3\n4\n");
    if (uid != 0) REQUIRE(chown((b.p / "inputs").c_str(), uid, uid) == 0);
    Json many = b.json_of({"experiment", "s", std::to_string(sent["rows"].array()[1]["number"].integer()), "query.id={{input}}", "--inputs", b.p / "inputs", "--parallel", "2", "--rate", "50/s"});
    CHECK(many["placement"].string() == kIn);

    auto requests = origin.requests();
    std::vector<std::string> recorded;
    for (const Json& r : b.of("s", "send")) {
      CHECK(r["lane"].string() == "engine-claimed");
      CHECK(r["body"]["placement"].string() == kIn);
      recorded.push_back(r["body"]["head_sha256"].string());
    }
    CHECK(recorded.size() == requests.size() - before);
    CHECK(recorded.size() == 11);
    for (size_t i = before; i < requests.size(); i++) CHECK(std::count(recorded.begin(), recorded.end(), sha256_hex(requests[i])) >= 1);
    // The jar is on the host, and goes where it should all the same.
    CHECK(has(requests[before + 3], "Cookie: sid=secretvalue"));
    CHECK_FALSE(has(read_file(b.log("s")), "secretvalue"));
    // The run that had the wire is a run of the box, with a receipt there; what the host saw of it is the host's.
    std::vector<std::string> receipts;
    CHECK(evidence::verify_chain(b.p.paths("out").log()));
    for (const Json& r : b.of("s", "box-run")) {
      CHECK(r["lane"].string() == "host-observed");
      CHECK(r["body"]["outcome"]["status"].string() == "exited");
      CHECK(r["body"]["status"].integer() == 0);
      receipts.push_back(r["body"]["run"].string());
    }
    CHECK(receipts.size() == 5);
    size_t found = 0;
    for (const Json& r : b.records(b.p.paths("out").log(), "receipt")) found += std::count(receipts.begin(), receipts.end(), r["session"].string());
    CHECK(found == receipts.size());
    CHECK(b.p.ok({"log", "verify", b.log("s")}).status == 0);
    // The control: the same without a box.
    b.web({"open", "t", "--scope", origin.url("")});
    CHECK(b.json_of({"send", "t", origin.url("/")})["placement"].string() == "not contained");
    CHECK(has(b.web({"ls"}).out, "not contained"));
    CHECK(b.of("t", "box-run").empty());
  }
}

TEST_CASE("a box without a network refuses each send, and the line says that it was the box") {
  Origin origin([](const std::string&) { return ok(); });
  Boxed b(users().back());
  b.p.create("shut");
  b.web({"open", "s", "--scope", origin.url(""), "--scope", "http://app.test", "--in", "shut"});
  Ended e = b.web({"send", "s", origin.url("/")}, 1);
  CHECK(has(e.out, "refused by the box"));
  Json sent = b.json_of({"send", "s", origin.url("/")}, 1);
  CHECK(sent["rows"].array()[0]["ended"].string() == "refused-by-box");
  CHECK(b.of("s", "outcome")[0]["body"]["ended"].string() == "refused-by-box");
  Json named = b.json_of({"send", "s", "http://app.test/"}, 1);
  CHECK(named["rows"].array()[0]["why"].string() == "refused-by-box");
  CHECK(origin.connections() == 0);
  // What is outside the scope is refused by the scope, wherever the wire is.
  CHECK(b.json_of({"send", "s", "http://127.0.0.1:1/"}, 1)["rows"].array()[0]["why"].string() == "scope");
  // The control: a box with the host's network.
  b.web({"open", "t", "--scope", origin.url(""), "--in", "out"});
  b.web({"send", "t", origin.url("/")});
  CHECK(origin.connections() == 1);
}

TEST_CASE("--in is refused where no box can keep the engine, and names why") {
  Boxed b(users().back());
  b.p.create("ws", "workspace");
  Ended e = b.web({"open", "s", "--scope", "app.test", "--in", "ws"}, 2);
  CHECK(has(e.err, "missing at tier workspace"));
  CHECK(has(b.web({"open", "s", "--scope", "app.test", "--in", "nobody"}, 2).err, "there is no box nobody"));
  b.web({"open", "s", "--scope", "app.test", "--in", "a/b/c"}, 2);
  b.web({"open", "s", "--scope", "app.test", "--in", ""}, 2);
  b.p.create("gone");
  b.p.ok({"box", "abort", "gone"});
  CHECK(has(b.web({"open", "s", "--scope", "app.test", "--in", "gone"}, 2).err, "aborted"));
  CHECK(b.json_of({"ls"})["sessions"].array().empty());
  b.web({"open", "s", "--scope", "app.test", "--in", "out"});  // the control
}

TEST_CASE("one run at a time: a busy box refuses the send, and a box with a send in it refuses a run") {
  Origin origin([](const std::string&) {
    usleep(1'500'000);
    return ok();
  });
  Boxed b(users().back());
  b.web({"open", "s", "--scope", origin.url(""), "--in", "out"});
  pid_t run = start(b.p.h5i({"box", "run", "out", "--", "sh", "-c", "touch here; sleep 60"}), b.p / "out", b.p / "err");
  for (int i = 0; i < 20'000 && !std::filesystem::exists(b.p.paths("out").work() + "/here"); i++) usleep(1000);
  Ended busy = b.web({"send", "s", origin.url("/")}, 2);
  CAPTURE(busy.err);
  CHECK(has(busy.err, "box.busy"));
  CHECK(origin.connections() == 0);
  CHECK(b.of("s", "box-refused").size() == 1);
  CHECK(b.of("s", "send").empty());
  b.p.ok({"box", "stop", "out"});
  wait_for(run, 30);

  pid_t send = start(b.p.h5i({"websec", "send", "s", origin.url("/")}), b.p / "out", b.p / "err");
  for (int i = 0; i < 20'000 && origin.connections() == 0; i++) usleep(1000);
  CHECK(has(b.p.ok({"box", "run", "out", "--", "true"}, 125).err, "box.busy"));
  CHECK(has(b.p.ok({"box", "rm", "--force", "out"}, 1).err, "box.busy"));
  CHECK(wait_for(send, 30) == 0);
  CHECK(b.of("s", "outcome").size() == 1);
}

TEST_CASE("a session ends with its box, and says so") {
  Boxed b(users().back());
  b.p.create("gone");
  b.p.create("off");
  b.p.create("again");
  b.web({"open", "r", "--scope", "http://127.0.0.1:9", "--in", "again"});
  b.web({"open", "s", "--scope", "http://127.0.0.1:9", "--in", "gone"});
  b.web({"open", "t", "--scope", "http://127.0.0.1:9", "--in", "off"});
  b.p.ok({"box", "rm", "--force", "gone"});
  CHECK(has(b.web({"send", "s", "http://127.0.0.1:9/"}, 69).err, "it was removed"));
  CHECK(has(b.of("s", "websec-closed").at(0)["body"]["why"].string(), "it was removed"));
  b.web({"send", "s", "http://127.0.0.1:9/"}, 69);
  // A box of the same name is another box, however soon it was made.
  b.p.ok({"box", "rm", "--force", "again"});
  b.p.create("again");
  CHECK(has(b.web({"send", "r", "http://127.0.0.1:9/"}, 69).err, "another one has its name"));
  CHECK(b.of("s", "send").empty());
  b.p.ok({"box", "abort", "off"});
  CHECK(has(b.web({"send", "t", "http://127.0.0.1:9/"}, 69).err, "it is aborted"));
  const Json all = b.json_of({"ls"});
  CHECK(all["sessions"].array().size() == 3);
  for (const Json& s : all["sessions"].array()) CHECK(s["state"].string() == "closed");
}

TEST_CASE("a hostile program of the box leaves nothing that speaks for the engine") {
  Origin origin([](const std::string&) { return ok(); });
  for (uid_t uid : users()) {
    CAPTURE(uid);
    Boxed b(uid);
    b.web({"open", "s", "--scope", origin.url(""), "--in", "out"});
    // Files where a careless engine would look, a claim in the spool, and a process that means to stay.
    b.p.ok({"box", "run", "out", "--", "sh", "-c",
            "mkdir state blobs; echo '{\"schema\":\"h5i.websec-jar/1\",\"cookies\":[]}' > state/jar.json; echo '{\"kind\":\"send\",\"lane\":\"host-observed\"}' > log.jsonl;"
            "for n in libssl.so.3 libc.so.6 libcrypto.so.3 openssl.cnf; do echo bad > $n; done;"
            "echo '{\"kind\":\"send\",\"lane\":\"host-observed\",\"observer\":\"core\",\"url\":\"http://forged.test/\"}' > $H5I_SPOOL/send.json;"
            "setsid sh -c 'while true; do touch alive; sleep 0.05; done' >/dev/null 2>&1 </dev/null & sleep 0.3; true"});
    CHECK(std::filesystem::exists(b.p.paths("out").work() + "/alive"));  // the control: it ran
    std::filesystem::remove(b.p.paths("out").work() + "/alive");
    b.web({"send", "s", origin.url("/")});
    CHECK_FALSE(std::filesystem::exists(b.p.paths("out").work() + "/alive"));  // and was gone before the engine came
    CHECK_FALSE(has(read_file(b.log("s")), "forged.test"));
    size_t claims = 0;
    for (const Json& r : b.records(b.p.paths("out").log()))
      if (has(json::canonical(r["body"]), "forged.test") && r["kind"].string() != "run-requested" && r["kind"].string() != "receipt" && r["kind"].string() != "attested") {
        CHECK(r["lane"].string() == "box-claimed");
        claims++;
      }
    CHECK(claims == 1);
    for (const Json& r : b.records(b.log("s"))) CHECK(r["lane"].string() == (r["kind"].string() == "send" || r["kind"].string() == "outcome" ? "engine-claimed" : "host-observed"));
  }
}

TEST_CASE("the half in the box has its program and one channel, sees no process but its own, and is not to be read") {
  if (geteuid() != 0) return;  // its view is looked at from outside
  Origin origin([](const std::string&) {
    usleep(1'000'000);
    return ok();
  });
  Boxed b(0);
  b.web({"open", "s", "--scope", origin.url(""), "--in", "out"});
  pid_t send = start(b.p.h5i({"websec", "send", "s", origin.url("/")}), b.p / "out", b.p / "err");
  for (int i = 0; i < 20'000 && origin.connections() == 0; i++) usleep(1000);
  const pid_t half = half_below(send);
  REQUIRE(half > 0);
  const std::string proc = "/proc/" + std::to_string(half), status = read_file(proc + "/status");
  CHECK(has(status, "NoNewPrivs:\t1"));
  CHECK(has(status, "CapEff:\t0000000000000000"));
  CHECK(has(status, "Seccomp:\t2"));
  struct stat owner {};
  CHECK((stat((proc + "/mem").c_str(), &owner) == 0 && owner.st_uid == 0));  // not dumpable: its files are root's and not its user's
  CHECK(has(status, "Uid:\t"));
  CHECK_FALSE(has(status, "Uid:\t0\t"));
  for (const char* ns : {"pid", "mnt", "user"}) CHECK(std::filesystem::read_symlink(proc + "/ns/" + ns) != std::filesystem::read_symlink(std::string("/proc/self/ns/") + ns));
  const std::string variables = read_file(proc + "/environ");
  CHECK_FALSE(has(variables, "PATH="));
  CHECK_FALSE(has(variables, "HOME="));
  size_t unix_sockets = 0, programs = 0;
  for (const auto& fd : std::filesystem::directory_iterator(proc + "/fd")) {
    const std::string to = std::filesystem::read_symlink(fd.path());
    programs += has(to, "memfd:h5i-engine");
    unix_sockets += fd.path().filename() == "1" && has(to, "socket:");
    CHECK_FALSE(has(to, "log.jsonl"));
    CHECK_FALSE(has(to, "/websec/"));
  }
  CHECK(programs == 1);
  CHECK(unix_sockets == 1);
  CHECK(wait_for(send, 30) == 0);
}

TEST_CASE("whoever is killed, a send in a box is in the log before it is seen, and the next one works") {
  Origin origin([](const std::string&) {
    usleep(700'000);
    return ok();
  });
  for (uid_t uid : users()) {
    CAPTURE(uid);
    Boxed b(uid);
    b.web({"open", "s", "--scope", origin.url(""), "--in", "out"});
    for (const char* victim : {"half", "engine", "h5i"}) {
      CAPTURE(victim);
      const int before = origin.served();
      pid_t send = start(b.p.h5i({"websec", "send", "s", origin.url(std::string("/") + victim)}), b.p / "out", b.p / "err");
      const pid_t half = half_below(send), engine = engine_of(send);
      for (int i = 0; i < 20'000 && origin.served() == before; i++) usleep(1000);
      REQUIRE((half > 0 && engine > 0 && origin.served() == before + 1));
      kill(std::string(victim) == "half" ? half : std::string(victim) == "h5i" ? send : engine, SIGKILL);
      const int status = wait_for(send, 60);
      if (std::string(victim) != "h5i") CHECK(status == 2);
      for (int n = 0; n < 15'000 && (runs(half) || runs(engine)); n++) usleep(1000);
      CHECK_FALSE((runs(half) || runs(engine)));
    }
    Ended last;
    for (int i = 0; i < 100; i++) {
      last = run(b.p.h5i({"websec", "send", "s", origin.url("/last")}));
      if (!has(last.err, "busy") && !has(last.err, "in use")) break;
      usleep(200'000);
    }
    CAPTURE(last.out, last.err);
    CHECK(last.status == 0);
    CHECK(evidence::verify_chain(b.log("s")));
    CHECK(evidence::verify_chain(b.p.paths("out").log()));
    CHECK(b.of("s", "send").size() == 4);
    std::vector<std::string> ends;
    for (const Json& r : b.of("s", "outcome")) ends.push_back(r["body"]["ended"].string());
    CHECK(ends == std::vector<std::string>{"box-ended", "complete"});
    CHECK(b.of("s", "engine-died").size() == 2);
  }
}

TEST_CASE("raw bytes, bodies and a script's preflight go from a box as they go without one") {
  Origin origin([](const std::string& r) {
    if (has(r, "OPTIONS ")) return std::string("HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: http://page.test\r\nAccess-Control-Allow-Methods: PUT\r\n\r\n");
    return ok();
  });
  Boxed b(users().back());
  b.web({"open", "s", "--scope", origin.url(""), "--in", "out"});
  write_file(b.p / "raw", "GET /raw HTTP/1.1\r\nHost: elsewhere.test\r\nX:  y\r\n\r\n");
  write_file(b.p / "body", std::string(300'000, '\xff'));
  b.web({"send", "s", origin.url("/raw"), "--raw", b.p / "raw"});
  b.web({"send", "s", origin.url("/body"), "--data-file", b.p / "body"});
  b.web({"send", "s", origin.url("/host"), "-H", "Host: other.test", "-H", "X-Mixed: a"});
  Json script = b.json_of({"send", "s", origin.url("/put"), "--document", "http://page.test/", "--method", "PUT"});
  CHECK(script["rows"].array().size() == 2);
  auto requests = origin.requests();
  REQUIRE(requests.size() == 5);
  CHECK(requests[0] == read_file(b.p / "raw"));
  CHECK(requests[1].ends_with(read_file(b.p / "body")));
  CHECK(has(requests[2], "Host: other.test\r\n"));
  CHECK(has(requests[3], "OPTIONS /put "));
  CHECK(b.of("s", "send").size() == 5);
  CHECK(b.of("s", "box-claimed").empty());
  CHECK(has(b.json_of({"send", "s", origin.url("/p"), "--proxy", origin.url("")}, 2)["rows"].array()[0]["text"].string(), "a proxy is not spoken to from a box"));
  CHECK(origin.requests().size() == 5);
}

TEST_CASE("who stops the box ends the act, and the log says that the box ended") {
  Origin origin([](const std::string&) {
    usleep(3'000'000);
    return ok();
  });
  Boxed b(users().back());
  b.web({"open", "s", "--scope", origin.url(""), "--in", "out"});
  pid_t send = start(b.p.h5i({"websec", "send", "s", origin.url("/")}), b.p / "out", b.p / "err");
  for (int i = 0; i < 20'000 && origin.served() == 0; i++) usleep(1000);
  b.p.ok({"box", "stop", "out"});
  CHECK(wait_for(send, 60) == 2);
  CAPTURE(read_file(b.p / "out"), read_file(b.p / "err"));
  REQUIRE(b.of("s", "outcome").size() == 1);
  CHECK(b.of("s", "outcome")[0]["body"]["ended"].string() == "box-ended");
  CHECK(b.of("s", "box-run").at(0)["body"]["outcome"]["status"].string() != "exited");
  CHECK(b.p.ok({"box", "run", "out", "--", "true"}).status == 0);
}

TEST_CASE("what a half that was taken over says is box-claimed in the log, and nothing else of it is there") {
  if (geteuid() != 0) return;  // the test takes its place by its descriptor, which is root's right alone
  Origin origin([](const std::string&) {
    usleep(2'000'000);
    return ok();
  });
  Boxed b(users().back());
  b.web({"open", "s", "--scope", origin.url(""), "--in", "out"});
  pid_t send = start(b.p.h5i({"websec", "send", "s", origin.url("/"), "--json"}), b.p / "out", b.p / "err");
  for (int i = 0; i < 20'000 && origin.served() == 0; i++) usleep(1000);
  const pid_t half = half_below(send);
  REQUIRE(half > 0);
  UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, half, 0)));
  UniqueFd channel(static_cast<int>(syscall(438 /* pidfd_getfd */, process.get(), 1, 0)));
  REQUIRE(channel);
  const std::string head = "GET / HTTP/1.1\r\nHost: forged.test\r\n\r\n";
  const std::string document = json::canonical(json::Object{{"say", json::Object{{"op", "intent"}, {"id", 1}, {"facts", json::Object{{"method", "GET"}, {"url", "http://forged.test/"}, {"peer", "203.0.113.9:80"}, {"requester", "tester"}, {"lane", "host-observed"}}}}},
                                                            {"sizes", json::Array{head.size(), 0}}});
  const auto size = static_cast<uint32_t>(document.size());
  std::string packet(1, '\0');
  packet.append(reinterpret_cast<const char*>(&size), sizeof size);
  packet += document + head;
  REQUIRE(::send(channel.get(), packet.data(), packet.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(packet.size()));
  channel.reset();
  CHECK(wait_for(send, 60) == 2);
  const std::string said = read_file(b.p / "out");
  CAPTURE(said, read_file(b.p / "err"));
  for (const std::string& error : schema_errors_of_text("websec-send", said)) FAIL_CHECK(error);
  CHECK(has(said, "forged.test"));
  size_t claims = 0;
  for (const Json& r : b.records(b.log("s")))
    if (has(json::canonical(r["body"]), "forged.test")) {
      CHECK(r["lane"].string() == "box-claimed");
      CHECK(r["observer"].string() == "box");
      CHECK(r["kind"].string() == "box-claimed");
      claims++;
    }
  CHECK(claims == 1);
  CHECK(b.of("s", "send").size() == 1);  // the one that was asked for
  REQUIRE(b.of("s", "outcome").size() == 1);
  CHECK(b.of("s", "outcome")[0]["body"]["ended"].string() == "box-ended");
  CHECK(evidence::verify_chain(b.log("s")));
  b.web({"hist", "s"});
  b.web({"send", "s", origin.url("/again")});  // the next run of the box is a new one
}
