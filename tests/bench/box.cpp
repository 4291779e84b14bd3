#include "tests/bench/box.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/os/fs.hpp"
#include "core/os/socket.hpp"
#include "core/spawn/client.hpp"
#include "core/spawn/spawner.hpp"
#include "h5i/host.h"
#include "h5i/tier.h"
#include "plan.hpp"

namespace h5i::bench {
namespace {

constexpr unsigned kBoxId = 1879050000;  // of the range that boxes of root's have
constexpr int64_t kEndMs = 60'000;

template <class T>
T must(Result<T> r, const char* what) {
  if (!r) give_up(std::string(what) + ": " + r.error().what + " " + r.error().evidence);
  return std::move(*r);
}

// What of the core a run has around a box, without any of it: a spawner, both ends of its channels.
class Spawner {
 public:
  explicit Spawner(const Settings& s) {
    auto host = must(os::seqpacket_pair(), "socket"), core = must(os::seqpacket_pair(), "socket");
    std::string libexec = s.prefix + "/libexec/h5i/";
    auto program = [&](const char* name) { return UniqueFd(open((libexec + name).c_str(), O_RDONLY | O_CLOEXEC)); };
    UniqueFd init = program("h5i-init"), canary = program("h5i-canary"), net = program("h5i-net");
    pid_ = must(spawn::fork_spawner({host.b.get(), core.b.get(), init.get(), canary.get(), net.get(), getpid()}), "spawner");
    client_ = std::make_unique<spawn::SpawnClient>(std::move(host.a));
    watch_ = std::make_unique<spawn::SpawnWatch>(std::move(core.a));
  }
  ~Spawner() {
    client_.reset();
    watch_.reset();
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  std::string run(const std::string& plan) {
    using What = spawn::SpawnWatch::Event::What;
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0) give_up("pipe");
    UniqueFd in_end(out[0]), out_end(out[1]), null(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!watch_->give_stdio(null.get(), out_end.get(), out_end.get(), false)) give_up("stdio");
    out_end.reset();
    uint64_t handle = must(client_->start(plan, H5I_SPAWN_WORKLOAD), "a box was refused");
    auto event = must(watch_->next(kEndMs), "the spawner said nothing");
    if (event.what != What::workload) give_up("a box did not come to its start");
    spawn::Gate gate(std::move(event.gate));
    if (!must(gate.wait_ready(kEndMs), "a box was not ready") || !gate.go()) give_up("a box ended before its program");
    std::string text = must(os::read_fd(in_end.get(), 1 << 20, "output"), "output");
    do event = must(watch_->next(kEndMs), "no end");
    while (event.what == What::denial);
    const spawn::SpawnResult& r = event.result;
    if (event.what != What::ended || r.status != H5I_OUTCOME_EXITED || r.code != 0)
      give_up("a box's program failed: status " + std::to_string(r.status) + ", code " + std::to_string(r.code) + " " + r.setup_text + " " + text);
    (void)must(client_->wait(handle, kEndMs), "no end");
    return text;
  }

 private:
  pid_t pid_ = -1;
  std::unique_ptr<spawn::SpawnClient> client_;
  std::unique_ptr<spawn::SpawnWatch> watch_;
};

}  // namespace

BoxFolders::BoxFolders(const Settings& s, const std::string& name) : dir(s.scratch + "/" + name) {
  for (const char* sub : {"", "/work", "/work/.git", "/git", "/spool", "/private", "/home"}) mkdir((dir + sub).c_str(), 0700);
}

Json process_plan(const BoxFolders& box, const std::vector<std::string>& argv) {
  using json::Array;
  using json::Object;
  const std::string work = box.dir + "/work";
  unsigned uid = geteuid(), gid = getegid(), inside = uid == 0 ? kBoxId : uid;
  Object profile{{"name", "bench"},
                 {"fs", Object{{"read", Array{"/usr", "/etc", "/bin", "/lib", "/lib64", "/sbin"}},
                               {"write", Array{"$WORK"}},
                               {"deny", Array{}},
                               {"private", Object{}},
                               {"optional", Array{"/bin", "/lib", "/lib64", "/sbin"}}}},
                 {"net", Object{{"mode", "deny"}, {"unix", false}}},
                 {"resources", Object{{"mem", 4ull << 30}, {"procs", 256}, {"wall", 600}, {"output", 64 << 20}, {"explicit", Array{}}}},
                 {"env", Object{{"pass", Array{"PATH"}}, {"set", Object{}}}}};
  Array words;
  for (const std::string& w : argv) words.push_back(w);
  Json request = Object{{"schema", "h5i.run/1"},
                        {"session", "BENCH"},
                        {"box", "bench/box"},
                        {"boxid", "0123456789abcdef"},
                        {"policy", Object{{"schema", "h5i.policy/1"}, {"tier", "process"}, {"profile", std::move(profile)}}},
                        {"paths", Object{{"work", work},
                                         {"git", box.dir + "/git"},
                                         {"objects", Array{}},
                                         {"spool", box.dir + "/spool"},
                                         {"private", box.dir + "/private"},
                                         {"repo_git", ""},
                                         {"home", box.dir + "/home"},
                                         {"libexec", ""}}},
                        {"deny_always", Array{}},
                        {"command", Object{{"argv", std::move(words)}, {"exec", Array{argv[0]}}, {"cwd", work}, {"readonly", false}}},
                        {"env", Object{{"PATH", "/usr/bin:/bin"}, {"HOME", box.dir + "/home"}}},
                        {"ids", Object{{"uid", uid}, {"gid", gid}, {"box_uid", inside}, {"box_gid", uid == 0 ? kBoxId : gid}}}};
  auto read = confined::read_request(request);
  if (!read) give_up("request: " + read.error().text);
  auto plan = confined::build_plan(*read, confined::read_facts(), confined::RealHostView());
  if (!plan) give_up("plan: " + plan.error().text);
  return plan->document;
}

void add_network(Json& plan, const std::string& uplink, const std::vector<std::string>& addresses) {
  json::Array allow;
  for (const std::string& address : addresses) {
    json::Array ports;
    for (int port = 8000; port < 8020; port += 2) ports.push_back(std::to_string(port));
    allow.push_back(json::Object{{"id", "to-" + std::to_string(allow.size())}, {"about", address}, {"protocol", "tcp"}, {"addresses", json::Array{address}}, {"ports", std::move(ports)}});
  }
  plan["network"] = json::Object{{"egress", json::Object{{"schema", "h5i.egress/1"}, {"log_group", 5}, {"allow", std::move(allow)}}}, {"uplink", uplink}, {"host_loopback", false}};
}

Ran run_box(const Settings& s, const Json& plan) {
  std::string document = json::canonical(plan);
  Ran ran;
  double begin = now_us();
  {
    Spawner spawner(s);
    ran.output = spawner.run(document);
  }
  ran.us = now_us() - begin;
  return ran;
}

std::string inside_program() {
  char buffer[4096];
  ssize_t n = readlink("/proc/self/exe", buffer, sizeof buffer);
  std::string path(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  return path.substr(0, path.rfind('/')) + "/bench_inside";
}

std::string inside_program(const BoxFolders& box) {
  std::string copy = box.dir + "/work/inside";
  run_once({{"/bin/cp", inside_program(), copy}, ""});
  return copy;
}

}  // namespace h5i::bench
