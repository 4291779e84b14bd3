// Drives a real spawner without any plugin: the test is the host process and the core in one.
#pragma once
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/os/fs.hpp"
#include "core/os/landlock.hpp"
#include "core/os/socket.hpp"
#include "core/spawn/client.hpp"
#include "core/spawn/spawner.hpp"
#include "h5i/host.h"
#include "h5i/tier.h"
#include "tests/support/kernel_test.hpp"

namespace h5i::test {

constexpr unsigned kBoxId = 1879050000;  // of the reserved range

inline std::string build_dir() {
  const char* dir = getenv("H5I_BUILD_DIR");
  return dir ? dir : H5I_TEST_BUILD_DIR;
}

// Everything that the process tier asks for, around one command or a list of acts.
inline Json confined_plan(const Checks& k) {
  unsigned outside = k.root() ? kBoxId : k.who().uid;
  Json p;
  p["schema"] = "h5i.plan/1";
  p["tier"] = "test";
  json::Array ns;
  for (const char* n : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) ns.emplace_back(n);
  p["namespaces"] = ns;
  p["nested_user"] = true;
  p["ids"]["inside_uid"] = k.root() ? 1000u : outside;
  p["ids"]["inside_gid"] = k.root() ? 1000u : outside;
  p["ids"]["outside_uid"] = outside;
  p["ids"]["outside_gid"] = outside;
  p["root"]["size"] = 16 << 20;
  p["hostname"] = "box";
  p["loopback"] = true;
  p["cwd"] = "/";
  p["env"] = json::Object{};
  p["capabilities"] = "none";
  p["no_new_privs"] = true;
  p["init"] = true;
  auto mount = [&](const char* kind, const char* target) -> Json& {
    Json m;
    m["kind"] = kind;
    m["target"] = target;
    p["mounts"].push(m);
    return p["mounts"].make_array().back();
  };
  auto bind = [&](const char* path, bool device) {
    Json& m = mount("bind", path);
    m["source"] = path;
    m["recursive"] = !device;
    for (const char* f : {"nosuid", device ? "noexec" : "nodev"}) m["flags"].push(f);
    if (!device) m["flags"].push("ro");
  };
  bind("/usr", false);
  for (const char* link : {"bin", "lib", "lib64", "sbin"}) {
    Json& m = mount("symlink", (std::string("/") + link).c_str());
    m["to"] = std::string("usr/") + link;
  }
  mount("proc", "/proc");
  for (const char* d : {"/dev/null", "/dev/zero"}) bind(d, true);
  Json& tmp = mount("tmpfs", "/tmp");
  tmp["size"] = 8 << 20;
  tmp["mode"] = 01777;
  for (const char* f : {"nosuid", "nodev"}) tmp["flags"].push(f);
  return p;
}

inline Json plain_plan(const Checks& k) {
  Json p;
  p["schema"] = "h5i.plan/1";
  p["tier"] = "test";
  p["ids"]["inside_uid"] = k.who().uid;
  p["ids"]["inside_gid"] = k.who().gid;
  p["ids"]["outside_uid"] = k.who().uid;
  p["ids"]["outside_gid"] = k.who().gid;
  p["cwd"] = "/";
  p["env"] = json::Object{};
  p["capabilities"] = "keep";
  return p;
}

inline void set_command(Json& p, const std::vector<std::string>& argv) {
  p["exec"] = Json(json::Array{Json(argv[0])});
  p["argv"] = json::Array{};
  for (const std::string& a : argv) p["argv"].push(a);
}
inline void set_acts(Json& p, const std::vector<std::vector<std::string>>& acts) {
  p["canary"] = json::Array{};
  for (const auto& act : acts) {
    Json words{json::Array{}};
    for (const std::string& w : act) words.push(w);
    p["canary"].push(words);
  }
}
inline void set_shell(Json& p, const std::string& script) { set_command(p, {"/usr/bin/sh", "-c", script}); }

struct Outcome {
  std::string refused;  // what and evidence of a refused start
  spawn::SpawnResult result;
  std::string output;
  std::optional<os::PeerIds> peer;
  std::vector<spawn::Denial> denials;  // as the core heard of them
  bool ok() const { return refused.empty() && result.status == H5I_OUTCOME_EXITED && result.code == 0; }
  std::string text() const {
    return "refused='" + refused + "' status=" + std::to_string(result.status) +
           " code=" + std::to_string(result.code) + " exec=" + std::to_string(result.exec_errno) +
           " setup=" + std::to_string(result.setup_errno) + " '" + result.setup_text + "' output='" + output + "'";
  }
};

class Session {
 public:
  explicit Session(const char* other_net = nullptr) {
    auto host = os::seqpacket_pair(), core = os::seqpacket_pair();
    std::string libexec = build_dir() + "/out/libexec/h5i/";
    UniqueFd init(open((libexec + "h5i-init").c_str(), O_RDONLY | O_CLOEXEC));
    UniqueFd canary(open((libexec + "h5i-canary").c_str(), O_RDONLY | O_CLOEXEC));
    UniqueFd net(open(other_net ? other_net : (libexec + "h5i-net").c_str(), O_RDONLY | O_CLOEXEC));
    if (!host || !core) return;
    auto forked = spawn::fork_spawner({host->b.get(), core->b.get(), init.get(), canary.get(), net.get(), getpid()});
    if (!forked) return;
    pid = *forked;
    client.emplace(std::move(host->a));
    watch.emplace(std::move(core->a));
  }
  ~Session() { end(); }
  // Closes both channels and waits for the spawner; its exit status, -1 when it had to be killed.
  int end() {
    client.reset();
    watch.reset();
    if (pid <= 0) return 0;
    int status = 0;
    for (int i = 0; i < 1000; i++) {
      pid_t got = waitpid(pid, &status, WNOHANG);
      if (got == pid) {
        pid = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      }
      usleep(10000);
    }
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = 0;
    return -1;
  }

  // A workload that waits, confined, for its gate's word; its output is a pipe.
  struct Waiting {
    UniqueFd output;
    uint64_t handle;
    spawn::Gate gate;
  };
  // Nothing, and why not in `o`, when it did not come so far.
  std::optional<Waiting> start(const Json& plan, Outcome& o) {
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0) return {};
    UniqueFd read_end(out[0]), write_end(out[1]), null(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (auto given = watch->give_stdio(null.get(), write_end.get(), write_end.get(), false); !given) return {};
    write_end.reset();
    auto handle = client->start(json::canonical(plan), H5I_SPAWN_WORKLOAD);
    if (!handle) {
      o.refused = handle.error().what + " " + handle.error().evidence;
      return {};
    }
    auto event = watch->next(10000);
    if (!event || event->what != spawn::SpawnWatch::Event::What::workload) {
      o.refused = "no workload event: " +
                  (event ? std::to_string(static_cast<int>(event->what)) : event.error().what + event.error().evidence);
      return {};
    }
    init_pid = event->init_pid;
    return Waiting{std::move(read_end), *handle, spawn::Gate(std::move(event->gate))};
  }

  // Runs the workload; `before_go` is called while it waits.
  Outcome run(const Json& plan, const std::function<void(Session&, pid_t)>& before_go = {}) {
    Outcome o;
    auto waiting = start(plan, o);
    if (!waiting) return o;
    auto ready = waiting->gate.wait_ready(10000);
    if (ready && *ready) {
      o.peer = **ready;
      if (before_go) before_go(*this, o.peer->pid);
      (void)waiting->gate.go();
    }
    collect(o, waiting->handle, waiting->output.get());
    return o;
  }

  void collect(Outcome& o, uint64_t handle, int output) {
    if (auto text = os::read_fd(output, 64 << 20, "output")) o.output = *text;
    for (;;) {
      auto e = watch->next(20000);
      if (!e) {
        o.refused = "no end: " + e.error().what;
        return;
      }
      if (e->what == spawn::SpawnWatch::Event::What::denial) o.denials.push_back(e->denial);
      if (e->what == spawn::SpawnWatch::Event::What::closed) o.refused = "spawner gone";
      if (e->what == spawn::SpawnWatch::Event::What::ended) o.result = e->result;
      if (e->what != spawn::SpawnWatch::Event::What::denial) break;
    }
    auto done = client->wait(handle, 10000);
    if (!done)
      o.refused = "host heard nothing: " + done.error().what;
    else if (done->result.status != o.result.status)
      o.refused = "host and core heard different things";
  }

  Outcome canary(const Json& plan) {
    Outcome o;
    auto handle = client->start(json::canonical(plan), H5I_SPAWN_CANARY);
    if (!handle) {
      o.refused = handle.error().what + " " + handle.error().evidence;
      return o;
    }
    auto done = client->wait(*handle, 20000);
    if (!done) {
      o.refused = done.error().what;
      return o;
    }
    o.result = done->result;
    o.output = done->output;
    return o;
  }

  pid_t pid = 0;
  pid_t init_pid = 0;
  std::optional<spawn::SpawnClient> client;
  std::optional<spawn::SpawnWatch> watch;
};

inline Outcome run_once(const Json& plan) { return Session().run(plan); }

}  // namespace h5i::test
