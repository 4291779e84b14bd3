#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "tests/bench/benches.hpp"

using namespace h5i::bench;

namespace {

constexpr const char* kUsage =
    "h5i-bench [run_overhead|create_scale|log_append|propose_scale|websec_session_scale|websec_client|websec_rate|supervised_rules|supervised_whole|socket_gate|uplink_throughput ...] [options]\n"
    "  --prefix DIR   the h5i to measure (default: the one built with this program)\n"
    "  --scratch DIR  where repositories are made (default: beside this program)\n"
    "  --rounds N     rounds of short commands (default 200)\n"
    "  --scale N      files of the large repository, a tenth of the lines of a web session (default 100000)\n"
    "  --page FILE    put the tables between the marks of this page\n";

std::string own_directory() {
  char buffer[4096];
  ssize_t n = readlink("/proc/self/exe", buffer, sizeof buffer);
  std::string path(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  return path.substr(0, path.rfind('/'));
}

std::string fresh_directory(const std::string& below) {
  std::string name = below + "/h5i-bench.XXXXXX";
  if (!mkdtemp(name.data())) give_up("cannot make a folder in " + below);
  return name;
}

// As root a tmpfs that only this process and its children see; else the user's own run-time folder.
std::string place_in_memory(const std::string& scratch) {
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (geteuid() != 0) return runtime && file_system_of(runtime) == "tmpfs" ? fresh_directory(runtime) : "";
  std::string dir = scratch + "/memory";
  if (mkdir(dir.c_str(), 0755) != 0 || unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", dir.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, nullptr) != 0)
    return "";
  return dir;
}

int positive(const char* text) {
  char* end = nullptr;
  long v = strtol(text, &end, 10);
  if (!*text || *end || v < 1 || v > 10000000) give_up(std::string("not a number that fits: ") + text);
  return static_cast<int>(v);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::pair<std::string, std::function<std::vector<Table>(const Settings&)>>> all = {
      {"run_overhead", run_overhead}, {"create_scale", create_scale}, {"log_append", log_append}, {"propose_scale", propose_scale},
#ifdef H5I_BENCH_WEBSEC
      {"websec_client", websec_client}, {"websec_rate", websec_rate},
      {"websec_session_scale", websec_session_scale},
#endif
#ifdef H5I_BENCH_SUPERVISED
      {"supervised_rules", supervised_rules}, {"supervised_whole", supervised_whole}, {"socket_gate", socket_gate}, {"uplink_throughput", uplink_throughput},
#endif
  };
  Settings s;
  s.prefix = own_directory() + "/../out";
  std::string below = own_directory(), page;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; i++) {
    std::string a = argv[i];
    if (a == "-h" || a == "--help") return fputs(kUsage, stdout), 0;
    if (a.rfind("--", 0) != 0) {
      wanted.push_back(a);
      continue;
    }
    if (i + 1 >= argc) return fputs(kUsage, stderr), 2;
    const char* value = argv[++i];
    if (a == "--prefix") s.prefix = value;
    else if (a == "--scratch") below = value;
    else if (a == "--rounds") s.rounds = positive(value);
    else if (a == "--scale") s.scale = positive(value);
    else if (a == "--page") page = value;
    else return fputs(kUsage, stderr), 2;
  }
  for (const std::string& w : wanted) {
    bool known = false;
    for (const auto& [name, bench] : all) known |= name == w;
    if (!known) return fputs(kUsage, stderr), 2;
  }

  s.scratch = fresh_directory(below);
  s.memory = place_in_memory(s.scratch);
  // Nothing of the person's own settings, and none of them touched.
  for (const char* name : {"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"}) unsetenv(name);
  std::string home = s.scratch + "/home";
  mkdir(home.c_str(), 0700);
  setenv("HOME", home.c_str(), 1);
  setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
  for (const char* who : {"AUTHOR", "COMMITTER"}) {
    setenv((std::string("GIT_") + who + "_NAME").c_str(), "Bench", 1);
    setenv((std::string("GIT_") + who + "_EMAIL").c_str(), "bench@example.invalid", 1);
  }

  printf("%s\n", machine().c_str());
  bool placed = true;
  for (const auto& [name, bench] : all) {
    bool skip = !wanted.empty();
    for (const std::string& w : wanted) skip &= w != name;
    if (skip) continue;
    for (const Table& t : bench(s)) {
      std::string text = markdown(t);
      printf("\n## %s\n\n%s", t.name.c_str(), text.c_str());
      fflush(stdout);
      if (!page.empty() && !put_into_page(page, t.name, "\n" + text + "\nMeasured " + machine() + ".\n\n")) {
        fprintf(stderr, "h5i-bench: %s has no place for %s\n", page.c_str(), t.name.c_str());
        placed = false;
      }
    }
  }
  umount2(s.memory.c_str(), MNT_DETACH);  // fails where it is a folder
  for (const std::string& dir : {s.memory, s.scratch})
    if (!dir.empty()) run_once({{"/bin/rm", "-rf", dir}, ""});
  return placed ? 0 : 1;
}
