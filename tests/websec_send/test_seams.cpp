// What the plugins that stand in front of this engine will lean on: whoever asks, from whichever place of a page, the scope is asked again; nothing here
// listens; and a long run of large answers needs no more memory than a short one.
#include <algorithm>
#include <sstream>

#include "tests/websec_send/site.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

// Ports on which this process or one below it listens, by its sockets and the kernel's table.
std::vector<std::string> listening_below(pid_t top) {
  std::vector<std::string> inodes, out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = atoi(entry.path().filename().c_str());
    bool below = pid == top;
    for (pid_t up = pid; up > 1 && !below;) {
      const std::string stat = read_file("/proc/" + std::to_string(up) + "/stat");
      const size_t paren = stat.rfind(')');
      up = paren == std::string::npos ? 0 : atoi(stat.c_str() + paren + 4);
      below = up == top;
    }
    if (!below || pid <= 0) continue;
    std::error_code gone;
    for (const auto& fd : std::filesystem::directory_iterator(entry.path() / "fd", gone)) {
      const std::string to = std::filesystem::read_symlink(fd.path(), gone);
      if (to.starts_with("socket:[")) inodes.push_back(to.substr(8, to.size() - 9));
    }
  }
  for (const char* table : {"tcp", "tcp6", "udp", "udp6"}) {
    std::ifstream in(std::string("/proc/net/") + table);
    std::string line;
    for (std::getline(in, line); std::getline(in, line);) {
      std::istringstream words(line);
      std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
      words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >> inode;
      const bool listens = std::string_view(table).starts_with("tcp") ? state == "0A" : true;
      if (listens && std::find(inodes.begin(), inodes.end(), inode) != inodes.end()) out.push_back(std::string(table) + " " + local);
    }
  }
  return out;
}

int64_t peak_kib(pid_t pid) {
  const std::string status = read_file("/proc/" + std::to_string(pid) + "/status");
  const size_t at = status.find("VmHWM:");
  return at == std::string::npos ? 0 : atoll(status.c_str() + at + 6);
}

}  // namespace

TEST_CASE("a page's eight ways to another port are refused one by one, each in a line of its own") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    Origin second([](const std::string&) { return ok(); });
    Origin first([&](const std::string& r) { return has(r, "GET /leads-away") ? moved(302, second.url("/redirect")) : ok(); });
    User user(uid);
    user.open("s", {first.url("")});
    const std::string page = first.url("/page");
    // A navigation, a script, an image, a fetch, a form, a beacon with a body, a socket, and what a redirect leads to.
    const std::string socket = "ws://127.0.0.1:" + second.port() + "/socket";
    const std::vector<std::vector<std::string>> ways = {{second.url("/tab")},
                                                        {second.url("/script.js"), "--document", page},
                                                        {second.url("/img.png"), "--document", page, "--credentials"},
                                                        {second.url("/fetch"), "--document", page, "-H", "X-Custom: 1"},
                                                        {second.url("/form"), "--method", "POST", "--data", "a=b", "-H", "Content-Type: application/x-www-form-urlencoded"},
                                                        {second.url("/beacon"), "--document", page, "--data", "x"},
                                                        {socket, "--document", page},
                                                        {first.url("/leads-away"), "--follow", "5", "--document", page}};
    for (std::vector<std::string> way : ways) {
      way.insert(way.begin(), {"send", "s"});
      Ended e = user.run(way);
      CAPTURE(way, e.out, e.err);
      CHECK(e.status == 1);
    }
    auto refused = user.records("s", "refused");
    CHECK(refused.size() == ways.size());
    for (const Json& r : refused) {
      CHECK(r["body"]["why"].string() == "scope");
      CHECK(has(r["body"]["url"].string(), ":" + second.port() + "/"));
    }
    CHECK(second.connections() == 0);
    CHECK(first.connections() == 1);
    // The control: with a rule for it every one of them arrives.
    user.open("wide", {first.url(""), second.url("")});
    for (std::vector<std::string> way : ways) {
      way.insert(way.begin(), {"send", "wide"});
      (void)user.run(way);
    }
    CHECK(second.connections() >= 8);
  }
}

TEST_CASE("nothing of an act listens on a port") {
  Origin origin([](const std::string& r) {
    if (has(r, "GET /slow")) usleep(1'500'000);
    return ok();
  });
  User user(people().back());
  user.open("s", {origin.url("")});
  const pid_t h5i = start(user.h5i({"send", "s", origin.url("/slow")}), user.home() + "/out", user.home() + "/err");
  for (int i = 0; i < 10'000 && origin.served() == 0; i++) usleep(1000);
  REQUIRE(origin.served() == 1);
  CHECK(listening_below(h5i).empty());
  CHECK(wait_for(h5i, 30) == 0);
  // The control: this process's child does.
  const auto own = listening_below(getpid());
  CHECK(std::find_if(own.begin(), own.end(), [](const std::string& s) { return s.starts_with("tcp "); }) != own.end());
}

TEST_CASE("a thousand large answers need no more memory than a hundred") {
  Origin origin([](const std::string&) { return ok(std::string(100'000, 'x')); });
  User user(people().back());
  user.open("s", {origin.url("")});
  REQUIRE(user.run({"send", "s", origin.url("/x?id=0")}).status == 0);
  const std::string number = std::to_string(user.records("s", "send")[0]["seq"].integer());
  int64_t peaks[2] = {};
  for (const auto& [i, count] : {std::pair{0, 100}, {1, 1000}}) {
    std::ofstream inputs(user.home() + "/inputs");
    for (int n = 0; n < count; n++) inputs << "v" << n << "\n";
    inputs.close();
    const pid_t h5i = start(user.h5i({"experiment", "s", number, "query.id={{input}}", "--inputs", user.home() + "/inputs", "--parallel", "8"}), user.home() + "/out", user.home() + "/err");
    const pid_t engine = engine_of(h5i);
    REQUIRE(engine > 0);
    for (int64_t now; (now = peak_kib(engine)) > 0 || runs(engine); usleep(2000)) peaks[i] = std::max(peaks[i], now);
    CHECK(wait_for(h5i, 60) == 0);
  }
  CAPTURE(peaks[0], peaks[1]);
  CHECK(peaks[0] > 1000);
  CHECK(peaks[1] - peaks[0] < 20 * 1024);
}
