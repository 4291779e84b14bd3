// Egress rules of a box that runs: what a change comes to, who may ask for one, and what is recorded before and after.
#include "core/session/egress_live.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "core/base/ids.hpp"
#include "core/os/fs.hpp"
#include "core/spawn/protocol.hpp"
#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::session;
using namespace h5i::test;

namespace {

Json one(const char* id, const char* about, bool pinned, const char* address, const char* port) {
  return json::Object{{"id", id}, {"about", about}, {"pinned", pinned}, {"protocol", "tcp"}, {"addresses", json::Array{address}}, {"ports", json::Array{port}}};
}

EgressHeld held(const char* uplink = "slirp4netns") {
  EgressHeld h;
  h.hosts = "93.184.216.34 api.example.org\n";
  Json allow = json::Array{one("r1", "api.example.org:443", true, "93.184.216.34", "443"), one("host-loopback", "net.loopback", false, "192.0.2.2", "3000")};
  h.plan["network"] = json::Object{{"egress", json::Object{{"schema", "h5i.egress/1"}, {"allow", allow}, {"log_group", 5}}}, {"uplink", uplink}, {"host_loopback", true}};
  h.plan["mounts"] = json::Array{json::Object{{"kind", "file"}, {"target", "/etc/hosts"}, {"content", "127.0.0.1 box\n" + h.hosts}}};
  return h;
}

Json request(const char* what, const std::vector<std::string>& rules, Json addresses = json::Object{}) {
  Json list = json::Array{};
  for (const std::string& r : rules) list.push(policy::parse_egress(r)->to_json());
  return json::Object{{"schema", "h5i.egress-change/1"}, {"do", what}, {"rules", list}, {"addresses", std::move(addresses)}};
}

Json found(const char* name, std::vector<const char*> addresses) {
  Json list = json::Array{};
  for (const char* a : addresses) list.push(a);
  return json::Object{{name, std::move(list)}};
}

std::vector<std::string> held_rules(const EgressHeld& h) {
  std::vector<std::string> out;
  const Json rules = egress_rules(h);
  for (const Json& r : rules.array()) out.push_back(r["rule"].string());
  return out;
}

BoxPaths box_in(const Scratch& s) {
  BoxPaths p{s / "box"};
  ::mkdir(p.dir.c_str(), 0700);
  return p;
}

// The far end of the spawner's channel: what the run asks it, and what it answers.
struct Spawner {
  UniqueFd end;
  std::unique_ptr<spawn::SpawnWatch> watch;
  Spawner() {
    auto pair = os::seqpacket_pair();
    end = std::move(pair->a);
    watch = std::make_unique<spawn::SpawnWatch>(std::move(pair->b));
  }
  Json asked(size_t* descriptors) {
    if (!*os::wait_readable(end.get(), 2000)) return Json();
    auto packet = os::receive_packet(end.get());
    auto m = spawn::decode((*packet)->bytes);
    if (!m || m->kind != spawn::Kind::network) return Json();
    *descriptors = (*packet)->fds.size();
    lseek((*packet)->fds[0].get(), 0, SEEK_SET);
    return *json::parse(*os::read_fd((*packet)->fds[0].get(), 1 << 20, "request"));
  }
};

struct Live {
  Scratch scratch;
  BoxPaths paths = box_in(scratch);
  Spawner spawner;
  std::vector<std::pair<std::string, Json>> records;
  bool log_works = true;
  std::optional<EgressLive> live;
  explicit Live(EgressHeld h = held()) {
    EgressLive::Owner owner;
    owner.policy_digest = std::string(64, 'p');
    owner.effective_digest = [](const EgressHeld& e) { return sha256_hex(json::canonical(e.plan)); };
    owner.record = [this](std::string kind, Json body) -> Result<void> {
      if (!log_works) return make_error(Errc::LOG_WRITE, "the log cannot be written");
      records.emplace_back(std::move(kind), std::move(body));
      return {};
    };
    auto opened = EgressLive::open(paths, std::move(h), spawner.watch.get(), std::move(owner));
    REQUIRE(opened);
    live.emplace(std::move(*opened));
    live->started(getpid());
  }
  // `serve` plays the run while somebody asks.
  Result<Json> ask(const Json& what, const std::function<void()>& serve) {
    Result<Json> said = make_error(Errc::INTERNAL, "nobody asked");
    std::thread client([&] { said = ask_running(paths, what, 5000); });
    REQUIRE(*os::wait_readable(live->fd(), 5000));
    serve();
    client.join();
    return said;
  }
};

}  // namespace

TEST_CASE("a rule that is added is one destination more, and its name is told; one that is removed is gone, its name too") {
  auto added = change_egress(held(), request("add", {"mirror.example.org:8443", "93.184.217.0/24:80", "api.example.org"}, found("mirror.example.org", {"93.184.216.40", "127.0.0.1", "2606:2800:220::1"})));
  REQUIRE(added);
  CHECK(held_rules(added->held) == std::vector<std::string>{"api.example.org:443", "net.loopback", "mirror.example.org:8443", "93.184.217.0/24:80"});
  CHECK(json::canonical(added->done) == R"(["mirror.example.org:8443","93.184.217.0/24:80"])");
  // One leads to the host itself, one needs an address that the box does not have.
  CHECK(added->left_out.array().size() == 2);
  CHECK(added->held.hosts == "93.184.216.34 api.example.org\n93.184.216.40 mirror.example.org\n");
  CHECK(added->held.plan["mounts"].array()[0]["content"].string() == "127.0.0.1 box\n" + added->held.hosts);
  const auto& allow = added->held.plan["network"]["egress"]["allow"].array();
  CHECK(allow[2]["id"].string() == "x1");
  CHECK(json::canonical(allow[2]["addresses"]) == R"(["93.184.216.40"])");

  auto removed = change_egress(added->held, request("remove", {"api.example.org", "93.184.217.0/24:80"}));
  REQUIRE(removed);
  CHECK(held_rules(removed->held) == std::vector<std::string>{"net.loopback", "mirror.example.org:8443"});
  CHECK(removed->held.hosts == "93.184.216.40 mirror.example.org\n");
  CHECK(removed->held.plan["mounts"].array()[0]["content"].string() == "127.0.0.1 box\n" + removed->held.hosts);
  // What was taken away and comes back has another id: what one counted is not the other's.
  auto again = change_egress(removed->held, request("add", {"93.184.217.0/24:80"}));
  REQUIRE(again);
  CHECK(again->held.plan["network"]["egress"]["allow"].array().back()["id"].string() == "x3");
}

TEST_CASE("a change that cannot be held is refused whole") {
  auto why = [](const Result<EgressChanged>& r) { return r ? "made" : std::string(r.error().id()); };
  CHECK(why(change_egress(held(), request("add", {"gone.example.org"}))) == "policy.egress-unresolved");
  CHECK(why(change_egress(held(), request("add", {"ok.example.org", "meta.example.org"}, json::Object{{"ok.example.org", json::Array{"93.184.216.40"}}, {"meta.example.org", json::Array{"169.254.169.254"}}}))) == "policy.egress-unresolved");
  CHECK(why(change_egress(held(), request("add", {"corp.example.org"}, found("corp.example.org", {"10.0.0.7"})))) == "policy.egress-unresolved");
  CHECK(why(change_egress(held(), request("add", {"*.example.org"}))) == "policy.egress-unenforceable");
  CHECK(why(change_egress(held(), request("add", {"[2606:2800:220::1]:443"}))) == "policy.egress-unresolved");
  CHECK(why(change_egress(held(), request("remove", {"other.example.org"}))) == "not-found");
  CHECK(why(change_egress(held("none"), request("add", {"93.184.217.0/24:80"}))) == "box.no-egress");
  CHECK(why(change_egress(held(), request("replace", {"93.184.217.0/24:80"}))) == "input.invalid");
  CHECK(why(change_egress(held(), request("add", {}))) == "input.invalid");
  CHECK(why(change_egress(held(), request("add", {"a.example.org"}, found("a.example.org", {"not an address"})))) == "input.invalid");
  Json foreign = request("add", {"93.184.217.0/24:80"});
  foreign["schema"] = "h5i.other/1";
  CHECK(why(change_egress(held(), foreign)) == "input.invalid");
  Json bad = request("add", {"93.184.217.0/24:80"});
  for (const char* text : {"*", "169.254.0.0/16:80", "127.0.0.1:80", "a.example.org"}) {
    bad["rules"].make_array()[0]["to"] = text;
    CHECK(why(change_egress(held(), bad)) != "made");
  }
}

TEST_CASE("a change is recorded before it is made and after, with both digests, and told to who asked") {
  Live run;
  size_t fds = 0;
  auto said = run.ask(request("add", {"mirror.example.org:8443"}, found("mirror.example.org", {"93.184.216.40"})), [&] {
    run.live->on_request();
    REQUIRE(run.records.size() == 1);
    CHECK(run.records[0].first == "egress-asked");
    Json asked = run.spawner.asked(&fds);
    CHECK(fds == 3);  // the request, and the namespaces that the hosts file is for
    CHECK(asked["hosts"].string() == "127.0.0.1 box\n93.184.216.34 api.example.org\n93.184.216.40 mirror.example.org\n");
    CHECK(asked["egress"]["allow"].array().size() == 3);
    REQUIRE(run.live->on_said(json::Object{{"replaced", true}, {"before", std::string(64, 'a')}, {"rules", std::string(64, 'b')}}, true));
  });
  REQUIRE(said);
  CHECK(json::canonical((*said)["changed"]) == R"(["mirror.example.org:8443"])");
  CHECK((*said)["rules"].array().size() == 3);
  REQUIRE(run.records.size() == 2);
  const Json& body = run.records[1].second;
  CHECK(run.records[1].first == "egress-changed");
  CHECK(body["effective_digest_before"].string() == run.records[0].second["effective_digest_before"].string());
  CHECK(body["effective_digest_before"] != body["effective_digest"]);
  CHECK(body["rules_before"].string() == std::string(64, 'a'));
  CHECK(body["rules_digest"].string() == std::string(64, 'b'));
  CHECK(body["by"]["uid"].integer() == static_cast<int64_t>(geteuid()));
  REQUIRE(run.live->changes().array().size() == 1);
  // What is held already changes nothing and asks nobody.
  said = run.ask(request("add", {"mirror.example.org:8443"}), [&] { run.live->on_request(); });
  REQUIRE(said);
  CHECK((*said)["changed"].array().empty());
  CHECK(run.records.size() == 2);
  said = run.ask(json::Object{{"do", "list"}}, [&] { run.live->on_request(); });
  REQUIRE(said);
  CHECK((*said)["rules"].array().size() == 3);
}

TEST_CASE("a change that the kernel did not take leaves the rules as they were; one that nobody knows of ends the box") {
  Live run;
  size_t fds = 0;
  Json refusal = json::Object{{"error", "tier.setup-failed"}, {"what", "no"}, {"evidence", "why"}};
  for (bool certain : {true, false}) {
    auto said = run.ask(request("remove", {"api.example.org"}), [&] {
      run.live->on_request();
      run.spawner.asked(&fds);
      auto kept = run.live->on_said(refusal, certain);
      CHECK(static_cast<bool>(kept) == certain);
      if (!kept) CHECK(kept.error().code == Errc::RUN_VIOLATION);
    });
    REQUIRE_FALSE(said);
    CHECK(said.error().id() == std::string(certain ? "tier.setup-failed" : "run.violation"));
    CHECK(said.error().evidence.find("why") != std::string::npos);
    CHECK(run.records.back().first == (certain ? "egress-refused" : "egress-unknown"));
    CHECK(run.records.back().second["error"]["evidence"].string() == "why");
  }
  CHECK(run.live->changes().array().empty());
  auto said = run.ask(json::Object{{"do", "list"}}, [&] { run.live->on_request(); });
  CHECK((*said)["rules"].array().size() == 2);
  // An answer that nobody asked for is no spawner's of ours.
  CHECK_FALSE(run.live->on_said(refusal, true));
}

TEST_CASE("a change that cannot be recorded is not made, and two are not made at once") {
  Live run;
  run.log_works = false;
  auto said = run.ask(request("remove", {"api.example.org"}), [&] { run.live->on_request(); });
  REQUIRE_FALSE(said);
  CHECK(said.error().id() == std::string("log.write"));
  CHECK_FALSE(*os::wait_readable(run.spawner.end.get(), 100));
  run.log_works = true;
  size_t fds = 0;
  said = run.ask(request("remove", {"api.example.org"}), [&] {
    run.live->on_request();
    auto second = run.ask(request("remove", {"api.example.org"}), [&] { run.live->on_request(); });
    REQUIRE_FALSE(second);
    CHECK(second.error().id() == std::string("busy"));
    run.spawner.asked(&fds);
    CHECK(run.live->on_said(json::Object{{"replaced", true}, {"before", "a"}, {"rules", "b"}}, true));
  });
  CHECK(said);
}

TEST_CASE("who connects and says nothing, or nonsense, holds up nobody; the name goes with the run") {
  Scratch s;
  BoxPaths paths = box_in(s);
  write_file(paths.control(), "left by a dead run");
  {
    auto control = ControlSocket::listen(paths);
    REQUIRE(control);
    struct stat st {};
    REQUIRE(stat(paths.control().c_str(), &st) == 0);
    CHECK(S_ISSOCK(st.st_mode));
    CHECK((st.st_mode & 0777) == 0600);
    CHECK_FALSE(control->next());  // nobody is there
    auto connect_to = [&] {
      UniqueFd c(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      sockaddr_un a{};
      a.sun_family = AF_UNIX;
      REQUIRE(paths.control().size() < sizeof a.sun_path);
      strcpy(a.sun_path, paths.control().c_str());
      REQUIRE(connect(c.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) == 0);
      return c;
    };
    UniqueFd silent = connect_to();
    int64_t began = monotonic_ns();
    CHECK_FALSE(control->next());
    CHECK(monotonic_ns() - began < 2'000'000'000);
    UniqueFd nonsense = connect_to();
    REQUIRE(os::send_packet(nonsense.get(), "{"));
    CHECK_FALSE(control->next());
    UniqueFd good = connect_to();
    REQUIRE(os::send_packet(good.get(), "{\"do\":\"list\"}"));
    auto asked = control->next();
    REQUIRE(asked);
    CHECK(asked->by.pid == getpid());
    // The run ends before it answers.
    asked.reset();
    auto after = os::receive_packet(good.get());
    CHECK((after && !*after));
  }
  CHECK(access(paths.control().c_str(), F_OK) != 0);
  auto nobody = ask_running(paths, json::Object{{"do", "list"}}, 1000);
  REQUIRE_FALSE(nobody);
  CHECK(nobody.error().code == Errc::NOT_FOUND);
}

TEST_CASE("another user is not listened to, though the folder lets it through") {
  if (geteuid() != 0) return;
  Scratch s;
  BoxPaths paths = box_in(s);
  auto control = ControlSocket::listen(paths);
  REQUIRE(control);
  REQUIRE(chmod(paths.control().c_str(), 0777) == 0);
  for (const std::string& p : {s.path(), paths.dir}) REQUIRE(chmod(p.c_str(), 0755) == 0);
  for (unsigned uid : {65533u, 0u}) {
    pid_t pid = fork();
    if (pid == 0) {
      if (uid != 0 && setresuid(uid, uid, uid) != 0) _exit(3);
      _exit(ask_running(paths, json::Object{{"do", "list"}}, 1000) ? 0 : 1);
    }
    REQUIRE(*os::wait_readable(control->fd(), 5000));
    auto asked = control->next();
    CHECK(asked.has_value() == (uid == 0));  // the control
    if (asked) answer(asked->connection, json::Object{});
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(WEXITSTATUS(status) == (uid == 0 ? 0 : 1));
  }
}
