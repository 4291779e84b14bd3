// A prefix with the driver, the helpers and one fixture plugin, and a box made by hand in it.
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/evidence/log.hpp"
#include "core/session/box.hpp"
#include "tests/host/fixture.hpp"
#include "tests/support/text_file.hpp"

namespace h5i::fixture {

namespace fs = std::filesystem;

using test::read_file;
inline void spill(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
}

struct Ran {
  int exit_status = -1;      // of the process
  std::string out, err;
  Json report;               // {"receipt",...} or {"error",...}
  int64_t wall_ms = 0;
  int64_t max_rss_kib = 0;   // of the driver and of what it waited for
  const Json& receipt() const { return report["receipt"]; }
  std::string error() const { return report["error"]["id"].string(); }
  std::string outcome() const { return receipt()["outcome"]["status"].string(); }
  std::string reason() const { return receipt()["outcome"]["reason"].string(); }
};

class Sandbox {
 public:
  explicit Sandbox(const std::string& act = "") {
    char name[] = "/tmp/h5i-run-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    root = name;
    chmod(root.c_str(), 0755);
    for (const char* d : {"/bin", "/libexec/h5i", "/lib/h5i/plugins/1", "/home", "/repo/.git/objects", "/repo/.git/refs"})
      fs::create_directories(root + d);
    spill(root + "/repo/.git/HEAD", "ref: refs/heads/main\n");
    for (const char* d : {"/work", "/spool", "/blobs", "/private"}) fs::create_directories(box() + d);
    place(build_dir() + "/tests/session_run/session_run_driver", "/bin/driver");
    place(build_dir() + "/out/bin/h5i", "/bin/h5i");
    for (const char* h : {"h5i-host", "h5i-init", "h5i-canary"}) place(build_dir() + "/out/libexec/h5i/" + h, std::string("/libexec/h5i/") + h);
    for (std::string d = box(); d.size() > root.size() + 10; d = d.substr(0, d.rfind('/'))) chmod(d.c_str(), 0700);
    set_act(act);
    set_profile([](Json&) {});
  }
  ~Sandbox() { fs::remove_all(root); }

  void set_act(const std::string& act) {
    std::string bytes = library_bytes(act), dir = root + "/lib/h5i/plugins/1/";
    spill(dir + "tier-fixture.so", bytes);
    auto manifest = json::parse(read_file(build_dir() + "/tests/host/plugins/tier-fixture.plugin.yaml"));
    REQUIRE(manifest);
    (*manifest)["sha256"] = sha256_hex(bytes);
    (*manifest)["size"] = bytes.size();
    spill(dir + "tier-fixture.plugin.yaml", json::canonical(*manifest) + "\n");
    chmod((dir + "tier-fixture.so").c_str(), 0755);
    chmod((dir + "tier-fixture.plugin.yaml").c_str(), 0644);
  }

  // The process tier of this build in place of the fixture.
  void use_process_tier() {
    for (const char* name : {"tier-process.so", "tier-process.plugin.yaml"})
      place(build_dir() + "/out/lib/h5i/plugins/1/" + name, std::string("/lib/h5i/plugins/1/") + name);
    tier = "process";
    set_profile([](Json& p) {
      p["fs"] = json::Object{{"read", json::Array{"/usr"}}, {"write", json::Array{"$WORK"}}, {"deny", json::Array{}}, {"private", json::Object{}}};
      p["net"] = json::Object{{"mode", "deny"}, {"unix", false}};
    });
  }

  void set_profile(const std::function<void(Json&)>& change, const std::string& capture = "all") {
    Json profile = json::Object{{"name", "test"},
                                {"fs", json::Object{{"read", json::Array{"/usr"}}, {"write", json::Array{"$WORK"}}}},
                                {"net", json::Object{{"mode", "host"}, {"unix", true}}},
                                {"resources", json::Object{{"output", 1 << 20}, {"wall", 60}}},
                                {"env", json::Object{{"pass", json::Array{"PATH", "KEPT"}}, {"set", json::Object{{"CI", "1"}}}}}};
    change(profile);
    Json policy = json::Object{{"schema", "h5i.policy/1"}, {"tier", tier}, {"audit", json::Object{{"capture", capture}}}, {"profile", profile}};
    spill(box() + "/policy.resolved.json", json::canonical(policy));
    session::Manifest m;
    m.name = {"human", "test"};
    m.state = session::BoxState::IDLE;
    m.created = rfc3339(realtime_ns());
    m.profile = "test";
    m.tier = tier;
    m.tier_from = "flag";
    m.policy_digest = PolicyDigest(canonical_digest(policy));
    bool drawn = getuid() == 0 && tier != "fixture";  // a confining tier as root: an id of the reserved range
    m.host_uid = drawn ? 70001 : getuid();
    m.host_gid = drawn ? 70001 : getgid();
    m.source = json::Object{};
    spill(box() + "/manifest.json", json::canonical(m.to_json()));
    chmod((box() + "/manifest.json").c_str(), 0600);
    chmod((box() + "/policy.resolved.json").c_str(), 0600);
  }

  std::string box() const { return root + "/repo/.git/h5i/boxes/human/test"; }

  // `during`: called once with the driver's pid, when the command has printed the line "up".
  Ran run(const std::vector<std::string>& argv, Json options = json::Object{}, const std::function<void(pid_t)>& during = {},
          const std::string& input = "/dev/null", bool read_output = true) {
    Json list = json::Array{};
    for (const std::string& a : argv) list.push(a);
    options["argv"] = list;
    spill(root + "/options.json", json::canonical(options));
    return start({root + "/bin/driver", box(), root + "/options.json"}, during, input, read_output);
  }

  // The command line itself, in the repository; --status-fd arrives in `report`.
  Ran cli(std::vector<std::string> words) {
    words.insert(words.begin(), root + "/bin/h5i");
    return start(words, {}, "/dev/null", true);
  }

  Ran start(std::vector<std::string> words, const std::function<void(pid_t)>& during, const std::string& input, bool read_output) {
    int out[2], err[2], rep[2];
    REQUIRE(pipe2(out, O_CLOEXEC) == 0);
    REQUIRE(pipe2(err, O_CLOEXEC) == 0);
    REQUIRE(pipe2(rep, O_CLOEXEC) == 0);
    int64_t before = monotonic_ns();
    pid_t pid = fork();
    if (pid == 0) {
      int in = open(input.c_str(), O_RDONLY);
      dup2(in, 0);
      dup2(out[1], 1);
      dup2(err[1], 2);
      dup2(rep[1], 9);        // last: any of the others may have had this number,
      fcntl(9, F_SETFD, 0);   // and if this one had it, dup2 did nothing and it would close at exec
      std::string home = "HOME=" + root + "/home";
      std::vector<char*> args;
      for (std::string& w : words) args.push_back(w.data());
      args.push_back(nullptr);
      if (chdir((root + "/repo").c_str()) != 0) _exit(97);
      char* env[] = {home.data(), const_cast<char*>("PATH=/usr/bin:/bin"), const_cast<char*>("KEPT=yes"),
                     const_cast<char*>("DROPPED=no"), nullptr};
      execve(args[0], args.data(), env);
      _exit(98);
    }
    for (int fd : {out[1], err[1], rep[1]}) close(fd);
    Ran r;
    std::string report;
    struct Stream {
      int fd;
      std::string* to;
    } streams[] = {{read_output ? out[0] : -1, &r.out}, {err[0], &r.err}, {rep[0], &report}};
    bool acted = !during;
    for (;;) {
      pollfd p[3];
      bool any = false;
      for (int i = 0; i < 3; i++) p[i] = {streams[i].fd, POLLIN, 0}, any |= streams[i].fd >= 0;
      if (!any) break;
      if (poll(p, 3, 60000) == 0) break;
      for (int i = 0; i < 3; i++)
        if (p[i].fd >= 0 && p[i].revents) {
          char buf[65536];
          ssize_t got = read(p[i].fd, buf, sizeof buf);
          if (got > 0) streams[i].to->append(buf, static_cast<size_t>(got));
          else streams[i].fd = -1;
        }
      if (!acted && r.out.find("up\n") != std::string::npos) during(pid), acted = true;
    }
    int status = 0;
    rusage usage{};
    wait4(pid, &status, 0, &usage);
    r.max_rss_kib = usage.ru_maxrss;
    r.wall_ms = (monotonic_ns() - before) / 1000000;
    for (int fd : {out[0], err[0], rep[0]}) close(fd);
    r.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    if (auto v = json::parse(report)) r.report = std::move(*v);
    return r;
  }

  std::vector<Json> records(const std::string& kind = "") const {
    std::vector<Json> out;
    (void)evidence::read_log(box() + "/log.jsonl", [&](uint64_t, const Json& r) {
      if (kind.empty() || r["kind"].string() == kind) out.push_back(r);
      return true;
    });
    return out;
  }

  // Processes whose command line or environment names this sandbox.
  int processes() const {
    int n = 0;
    DIR* d = opendir("/proc");
    while (dirent* e = readdir(d)) {
      int pid = atoi(e->d_name);
      if (pid <= 0 || pid == getpid()) continue;
      std::string p = "/proc/" + std::to_string(pid);
      try {  // a process that ends while it is read fails the read, and is none
        if (read_file(p + "/cmdline").find(root) != std::string::npos || read_file(p + "/environ").find(root) != std::string::npos) n++;
      } catch (const std::exception&) {
      }
    }
    closedir(d);
    return n;
  }

  std::string root, tier = "fixture";

 private:
  void place(const std::string& from, const std::string& to) {
    INFO(from);
    if (link(from.c_str(), (root + to).c_str()) != 0) fs::copy_file(from, root + to);
  }
};

inline std::vector<std::string> sh(const std::string& script) { return {"sh", "-c", script}; }

}  // namespace h5i::fixture
