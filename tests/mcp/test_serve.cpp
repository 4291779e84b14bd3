// h5i mcp on real boxes: each tool, refusals, several calls at once, cancelling, and the end of the client.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <map>

#include "core/base/unique_fd.hpp"
#include "tests/cli/project.hpp"
#include "tests/support/schema.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

class Client {
 public:
  explicit Client(const Program& p, const std::string& err) {
    int in[2], out[2];
    REQUIRE((pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0));
    // A process of the test helper's own: it starts with these two as its standard input and output.
    Program q = p;
    const int from = in[0], to = out[1];
    q.before_exec = [from, to] { (void)!dup2(from, 0), (void)!dup2(to, 1); };
    pid_ = start(q, err + ".out", err);
    to_.reset(in[1]);
    from_.reset(out[0]);
    close(in[0]);
    close(out[1]);
  }
  void say(const std::string& line) {
    const std::string whole = line + "\n";
    REQUIRE(write(to_.get(), whole.data(), whole.size()) == static_cast<ssize_t>(whole.size()));
  }
  // The answer to that id; those of others are kept. Null after the time, or at the end.
  Json answer(const std::string& id, int timeout_s = 60) {
    for (const double until = now() + timeout_s; !answers_.contains(id) && now() < until;) {
      pollfd p{from_.get(), POLLIN, 0};
      if (poll(&p, 1, 100) <= 0) continue;
      char piece[65536];
      const ssize_t n = read(from_.get(), piece, sizeof piece);
      if (n <= 0) break;
      came_.append(piece, static_cast<size_t>(n));
      for (size_t end; (end = came_.find('\n')) != std::string::npos; came_.erase(0, end + 1)) {
        auto v = json::parse(came_.substr(0, end));
        REQUIRE(v);
        answers_[(*v)["id"].is_string() ? (*v)["id"].string() : std::to_string((*v)["id"].integer())] = *v;
      }
    }
    auto found = answers_.find(id);
    if (found == answers_.end()) return {};
    Json out = found->second;
    answers_.erase(found);
    return out;
  }
  void begin() {
    say(R"({"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}})");
    REQUIRE(answer("init")["result"]["serverInfo"]["name"].string() == "h5i");
    say(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  }
  void call(const std::string& id, const std::string& tool, const std::string& arguments) {
    say(R"({"jsonrpc":"2.0","id":")" + id + R"(","method":"tools/call","params":{"name":")" + tool + R"(","arguments":)" + arguments + "}}");
  }
  Json result(const std::string& tool, const std::string& arguments) {
    const std::string id = "c" + std::to_string(next_++);
    call(id, tool, arguments);
    Json r = answer(id)["result"];
    CAPTURE(tool, arguments, json::canonical(r));
    CHECK(r["content"].array().size() == 1);
    return r;
  }
  int end(int timeout_s = 30) {
    to_.reset();
    return wait_for(pid_, timeout_s);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  UniqueFd to_, from_;
  std::string came_;
  std::map<std::string, Json> answers_;
  int next_ = 0;
};

bool command_runs(const std::string& mark) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (atoi(entry.path().filename().c_str()) <= 0) continue;
    if (read_file(entry.path().string() + "/cmdline").find(std::string("sleep\0", 6) + mark) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("an agent makes a box, works in it and hands the work over, and never applies it") {
  for (uid_t uid : users()) {
    CAPTURE(uid);
    Project p(uid);
    Client c(p.h5i({"mcp"}), p / "err");
    c.begin();
    Json made = c.result("box_create", R"({"name":"one","isolation":"process","agent":"tester"})");
    CHECK_FALSE(made["isError"].boolean(true));
    CHECK(made["structuredContent"]["box"].string() == "tester/one");
    for (const std::string& error : schema_errors_of_text("box-create", json::canonical(made["structuredContent"]) + "\n")) FAIL_CHECK(error);
    c.result("box_create", R"({"name":"two","isolation":"process","agent":"tester"})");
    Json ran = c.result("box_run", R"({"box":"one","command":["/bin/sh","-c","echo said; echo changed >> hello.c; exit 3"]})");
    CHECK_FALSE(ran["isError"].boolean(true));  // that a command fails is an answer
    CHECK(ran["structuredContent"]["exit_status"].integer() == 3);
    CHECK(ran["structuredContent"]["receipt"]["tier"].string() == "process");
    CHECK(ran["content"].array()[0]["text"].string().find("| said\n") != std::string::npos);
    for (const std::string& error : schema_errors_of_text("box-run", json::canonical(ran["structuredContent"]) + "\n")) FAIL_CHECK(error);
    CHECK(c.result("box_status", R"({"box":"tester/one"})")["structuredContent"]["state"].string() == "idle");
    Json diff = c.result("box_diff", R"({"box":"one"})");
    CHECK(diff["structuredContent"]["changes"].array().size() == 1);
    CHECK(diff["content"].array()[0]["text"].string().find("\n| +changed\n") != std::string::npos);
    CHECK(c.result("box_inspect", R"({"box":"one"})")["structuredContent"]["schema"].string() == "h5i.box-inspect/1");
    CHECK(json::canonical(c.result("box_compare", R"({"box":"one","other":"two","stat":true})")["structuredContent"]).find("hello.c") != std::string::npos);
    CHECK(c.result("box_list", R"({"agent":"tester"})")["structuredContent"]["boxes"].array().size() == 2);
    Json proposed = c.result("box_propose", R"({"box":"one","message":"--from an agent"})");
    CHECK_FALSE(proposed["isError"].boolean(true));
    CHECK(p.git("log -1 --format=%s h5i/box/tester/one").out == "--from an agent\n");
    // The branch that the user stands on is what it was, and there is no way to change that.
    CHECK(p.git("show main:hello.c").out.find("changed") == std::string::npos);
    c.call("apply", "box_apply", R"({"box":"one"})");
    CHECK(c.answer("apply")["error"]["code"].integer() == -32602);
    // Refusals are those of the verbs.
    Json none = c.result("box_status", R"({"box":"nobody"})");
    CHECK(none["isError"].boolean());
    CHECK(none["structuredContent"]["error"]["id"].string() == "box.not-found");
    Json tier = c.result("box_create", R"({"name":"three","isolation":"no-such-tier"})");
    CHECK(tier["isError"].boolean());
    CHECK(c.result("box_run", R"({"box":"one","command":["/no/such/program"]})")["structuredContent"]["exit_status"].integer() == 127);
    CHECK(c.end() == 0);
    CHECK(read_file(p / "err").empty());
  }
}

TEST_CASE("calls go on beside each other; one that is cancelled ends and is not answered; with the client all end") {
  for (uid_t uid : users()) {
    CAPTURE(uid);
    Project p(uid);
    Client c(p.h5i({"mcp"}), p / "err");
    c.begin();
    for (const char* name : {"a", "b"}) CHECK_FALSE(c.result("box_create", std::string(R"({"name":")") + name + R"(","isolation":"process"})")["isError"].boolean(true));
    const std::string first = std::to_string(30'000'000 + getpid()), second = std::to_string(60'000'000 + getpid());
    c.call("long", "box_run", R"({"box":"a","command":["sleep",")" + first + "\"]}");
    for (int i = 0; i < 3000 && !command_runs(first); i++) usleep(10'000);
    REQUIRE(command_runs(first));
    CHECK(c.result("box_run", R"({"box":"b","command":["true"]})")["structuredContent"]["exit_status"].integer() == 0);
    // The box that is busy says so.
    Json busy = c.result("box_run", R"({"box":"a","command":["true"]})");
    CHECK(busy["isError"].boolean());
    CHECK(json::canonical(busy).find("box.busy") != std::string::npos);
    c.say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"long"}})");
    for (int i = 0; i < 3000 && command_runs(first); i++) usleep(10'000);
    CHECK_FALSE(command_runs(first));
    CHECK(c.result("box_run", R"({"box":"a","command":["true"]})")["structuredContent"]["exit_status"].integer() == 0);
    CHECK(c.answer("long", 1).is_null());
    c.call("last", "box_run", R"({"box":"a","command":["sleep",")" + second + "\"]}");
    for (int i = 0; i < 3000 && !command_runs(second); i++) usleep(10'000);
    REQUIRE(command_runs(second));
    CHECK(c.end() == 0);
    CHECK_FALSE(command_runs(second));
    // A server that is killed takes its calls along.
    Client killed(p.h5i({"mcp"}), p / "err2");
    killed.begin();
    killed.call("x", "box_run", R"({"box":"b","command":["sleep",")" + second + "\"]}");
    for (int i = 0; i < 3000 && !command_runs(second); i++) usleep(10'000);
    REQUIRE(command_runs(second));
    kill(killed.pid(), SIGKILL);
    wait_for(killed.pid(), 10);
    for (int i = 0; i < 3000 && command_runs(second); i++) usleep(10'000);
    CHECK_FALSE(command_runs(second));
  }
}

TEST_CASE("an h5i that others may write is not started") {
  const std::string built = h5i_path().substr(0, h5i_path().rfind("/bin/"));
  Scratch s;
  std::filesystem::create_directories(s / "bin");
  std::filesystem::create_directories(s / "libexec/h5i");
  std::filesystem::copy_file(built + "/bin/h5i", s / "bin/h5i");
  std::filesystem::copy_file(built + "/libexec/h5i/h5i-mcp", s / "libexec/h5i/h5i-mcp");
  for (bool open : {true, false}) {
    CAPTURE(open);
    REQUIRE(chmod((s / "bin/h5i").c_str(), open ? 0777 : 0755) == 0);
    Program p{.argv = {s / "libexec/h5i/h5i-mcp", "mcp"}, .env = {{"HOME", s.path()}}, .cwd = s.path()};
    p.input = R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})" "\n" R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"box_list"}})" "\n";
    Ended e = run(p);
    CAPTURE(e.out, e.err);
    CHECK((e.out.find("somebody else may write") != std::string::npos) == open);
  }
}

TEST_CASE("a flood, a line without an end and a reader that went away") {
  Project p(users().back());
  Client c(p.h5i({"mcp"}), p / "err");
  c.begin();
  const std::string piece(64 << 10, 'x');
  std::string big = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\"";
  for (int i = 0; i < 40; i++) big += piece;
  c.say(big + "\"}");
  c.say(R"({"jsonrpc":"2.0","id":2,"method":"ping"})");
  CHECK(c.answer("2")["result"].is_object());
  CHECK(c.answer("0")["error"]["code"].integer() == -32700);  // of no id: too long
  std::string many;
  for (int i = 0; i < 2000; i++) many += R"({"jsonrpc":"2.0","id":)" + std::to_string(1000 + i) + R"(,"method":"ping"})" + "\n";
  many.pop_back();
  c.say(many);
  CHECK(c.answer("2999")["result"].is_object());
  for (int i = 0; i < 20; i++) c.call("n" + std::to_string(i), "box_list", "{}");
  int answered = 0, refused = 0;
  for (int i = 0; i < 20; i++) {
    Json a = c.answer("n" + std::to_string(i));
    answered += a["result"].is_object();
    refused += a["error"]["code"].integer() == -32000;
  }
  CHECK(answered + refused == 20);
  CHECK(answered >= 8);
  CHECK(c.end() == 0);
  // The words of the command itself.
  CHECK(p.ok({"mcp", "--help"}).out.find("box_propose") != std::string::npos);
  Ended listed = p.ok({"mcp", "--json"});
  for (const std::string& error : schema_errors_of_text("mcp", listed.out)) FAIL_CHECK(error);
  CHECK((*json::parse(listed.out))["tools"].array().size() == 8);
  CHECK(p.ok({"mcp", "box"}, 2).err.find("mcp") != std::string::npos);
}
