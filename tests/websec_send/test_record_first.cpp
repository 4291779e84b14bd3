// The order, seen from outside.
#include <sched.h>
#include <sys/mount.h>

#include "core/base/sha256.hpp"
#include "tests/websec_send/trace.hpp"

using namespace h5i;
using namespace h5i::test;

TEST_CASE("every connection and every write to a socket comes after the line of the log that names it") {
  if (no_tracer()) return;
  Origin origin([](const std::string& request) { return request.starts_with("GET /3") ? ok() : moved(302, request.starts_with("GET /1") ? "/2" : "/3"); });
  User user(0);
  user.open("s", {origin.url("")});
  auto calls = traced(user.h5i({"send", "s", origin.url("/1"), "--follow", "3"}), user.home() + "/trace");
  auto requests = origin.requests();
  REQUIRE(requests.size() == 3);
  size_t from = 0;
  for (const std::string& request : requests) {
    const std::string line = request.substr(0, request.find(" HTTP"));
    size_t record = first(calls, "write(", "\\\"head_sha256\\\":\\\"" + sha256_hex(request), from);
    size_t dialled = first(calls, "connect(", "htons(" + origin.port() + ")", from), wrote = first(calls, "sendmsg(", line + " HTTP/1.1", from);
    CAPTURE(line, record, dialled, wrote, calls.size());
    REQUIRE(record < calls.size());
    CHECK(calls[record].find("\\\"url\\\":\\\"" + origin.url(line.substr(4)) + "\\\"") != std::string::npos);
    CHECK(calls[record].find("\\\"method\\\":\\\"GET\\\"") != std::string::npos);
    CHECK(calls[record].find("\\\"seq\\\":") != std::string::npos);
    CHECK((record < dialled && dialled < wrote && wrote < calls.size()));
    from = wrote + 1;
  }
  CHECK(first(calls, "connect(", "htons(" + origin.port() + ")", from) == calls.size());
}

TEST_CASE("with a disk that is full nothing is dialled, and the refusal names the log") {
  if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    printf("SKIP: websec-disk-full: only root mounts a small file system\n");
    return;
  }
  for (uid_t uid : people()) {
    Origin origin([](const std::string&) { return ok(); });
    User user(uid);
    user.open("s", {origin.url("")});
    const std::string folder = user.folder("s"), kept = user.home() + "/kept";
    REQUIRE(rename(folder.c_str(), kept.c_str()) == 0);
    REQUIRE((mkdir(folder.c_str(), 0700) == 0 && mount("small", folder.c_str(), "tmpfs", 0, "size=256k,mode=0700") == 0 && chown(folder.c_str(), uid, uid) == 0));
    for (const auto& entry : std::filesystem::directory_iterator(kept)) {
      std::string to = folder + "/" + entry.path().filename().string();
      std::filesystem::copy(entry.path(), to);
      REQUIRE(chown(to.c_str(), uid, uid) == 0);
    }
    // Beside the log, all of it; the log's own last page has room for some lines more.
    std::ofstream filler(folder + "/filler", std::ios::binary);
    for (int i = 0; i < 64 && filler; i++) filler << std::string(4096, 'x') << std::flush;
    int refused = 0, sent = 0;
    for (int i = 0; i < 40 && refused < 3; i++) {
      const int before = origin.connections();
      Ended e = user.run({"send", "s", origin.url("/")});
      CAPTURE(uid, i, e.out, e.err);
      CHECK((e.status == 0 || e.status == 2));
      if (e.status == 0) {
        sent++;
        continue;
      }
      refused++;
      CHECK(is_refusal(e.err, "log.write"));
      CHECK(e.err.find("log.jsonl") != std::string::npos);
      // An origin that was dialled is in the log: only the outcome had no room.
      CHECK(origin.connections() - before <= 1);
      CHECK(user.records("s", "send").size() == static_cast<size_t>(origin.connections()));
    }
    CHECK(refused == 3);
    // The control: with room again it is dialled.
    const int before = origin.connections();
    REQUIRE(truncate((folder + "/filler").c_str(), 0) == 0);
    CHECK(user.run({"send", "s", origin.url("/")}).status == 0);
    CHECK(origin.connections() == before + 1);
    CHECK(umount2(folder.c_str(), MNT_DETACH) == 0);
  }
}
