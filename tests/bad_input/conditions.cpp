// One row a condition.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "core/evidence/log.hpp"
#include "core/evidence/record.hpp"
#include "tests/bad_input/matrix.hpp"
#include "tests/support/catch.hpp"

namespace h5i::test {
namespace {
namespace fs = std::filesystem;


const std::string kOpened = "box run, box shell, box stop, box egress, box status, box log, box inspect, box diff, box compare, box propose, box apply, box export, box rebase, box abort, box rm, log verify, log show, log seal";
const Expect kNoBox{kOpened, "box.not-found"};

// What a word that is no name of anything gives; a verb that takes no word has one too many.
std::vector<Expect> bad_ids(std::vector<Expect> first) {
  std::vector<Expect> rest = {{kOpened + ", box create", "box.name"},
                              {"key untrust", "key.untrusted"},
                              {"policy show, policy explain, policy diff", "policy.no-profile"},
                              {"box allow", "policy.egress-rule"},
                              {"plugin list, policy init", "usage"},
                              {"websec ls", "usage"},
                              {"websec *", "input.invalid"},
                              {"plugin *, policy check, key trust", "not-found"},
                              {"*", "usage"}};
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

long many_files() {
  const char* set = getenv("H5I_BAD_INPUT_FILES");
  long n = set ? atol(set) : 0;
  return n > 0 ? n : 5000;
}

using Start = std::function<void(const World&, Program&)>;

Start closed(std::vector<int> fds) {
  return [fds](const World&, Program& p) { p.closed = fds; };
}
Start in_child(std::function<void()> act) {
  return [act](const World&, Program& p) { p.before_exec = act; };
}
Start variables(std::map<std::string, std::string> set) {
  return [set](const World&, Program& p) {
    for (const auto& [name, value] : set) p.env[name] = value;
  };
}

// Standard output becomes a pipe whose reader went away.
void reader_gone() {
  int ends[2];
  if (pipe(ends) != 0 || dup2(ends[1], 1) < 0) _exit(119);
  close(ends[0]);
  close(ends[1]);
}

// Standard output becomes a pipe that is full; somebody empties it later and passes the rest on to where it went before.
void full_pipe(int flags) {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK) != 0) _exit(119);
  char filler[4096] = {};
  size_t full = 0;
  for (ssize_t n; (n = write(ends[1], filler, sizeof filler)) > 0;) full += static_cast<size_t>(n);
  if (fork() == 0) {
    close(ends[1]);
    close(2);
    usleep(30000);
    char buffer[65536];
    for (;;) {
      pollfd p{ends[0], POLLIN, 0};
      poll(&p, 1, -1);
      ssize_t n = read(ends[0], buffer, sizeof buffer);
      if (n < 0) continue;
      if (n == 0) _exit(0);
      size_t skip = std::min(full, static_cast<size_t>(n));
      full -= skip;
      if (static_cast<size_t>(n) > skip && write(1, buffer + skip, static_cast<size_t>(n) - skip) < 0) _exit(1);
    }
  }
  close(ends[0]);
  if (dup2(ends[1], 1) < 0) _exit(119);
  close(ends[1]);
  fcntl(1, F_SETFL, flags);
}

// Records of a later time than now's, in a log that is otherwise intact, and files of a later time.
void from_the_future(World& w) {
  constexpr int64_t kYear2099 = 4'070'908'800'000'000'000;
  std::string path = w.box("fix") + "/log.jsonl", lines;
  evidence::Head head;
  auto read = evidence::read_log(path, [&](uint64_t, const Json& r) {
    head.log_id = r["log"].string();
    if (head.count == 0) head.digest = evidence::first_prev(head.log_id);
    evidence::Record later;
    later.kind = r["kind"].string();
    later.body = r["body"];
    auto line = evidence::record_line(later, head, kYear2099);
    REQUIRE(line);
    lines += *line + "\n";
    head.digest = sha256_hex(*line);
    head.count++;
    return true;
  });
  REQUIRE(read);
  w.write(path, lines, 0600);
  std::string manifest = w.box("fix") + "/manifest.json";
  w.sh("sed -i 's/\"created\": \"20[0-9]*/\"created\": \"2099/' '" + manifest + "' && grep -q 2099 '" + manifest + "'");
  w.sh("find .. -exec touch -h -d 2099-01-01 {} +");
}

void nobody_else_may_write(const World& w) {
  for (const std::string& top : {w.where() + "/.git/h5i", w.home() + "/.local", w.home() + "/.config", w.home() + "/.cache"}) {
    if (!fs::exists(top)) continue;
    for (const auto& e : fs::recursive_directory_iterator(top)) {
      struct stat st{};
      if (lstat(e.path().c_str(), &st) != 0 || S_ISLNK(st.st_mode)) continue;
      INFO(e.path());
      bool inside = e.path().string().find("/work/") != std::string::npos;
      if (!inside) CHECK((st.st_mode & 022) == 0);
    }
  }
}

std::vector<Condition> table() {
  return {
      {.name = "nothing is wrong"},
      // ---- the repository
      {.name = "no repository", .start = [](const World& w, Program& p) { p.cwd = w / "elsewhere"; }, .expect = {{"box create", "git.no-repository"}, kNoBox}},
      {.name = "a bare repository", .from = "repository", .make = [](World& w) {
         w.sh("git clone -q --bare . ../bare.git");
         w.repo = "bare.git";
       }, .expect = {kNoBox}},
      {.name = "a detached HEAD", .from = "repository", .make = [](World& w) {
         w.git({"checkout", "-q", "--detach"});
         w.make_boxes();
       }, .expect = {{"box apply, box rebase", "box.detached"}}},
      {.name = "an unborn branch", .make = [](World& w) { w.git({"checkout", "-q", "--orphan", "fresh"}); }, .expect = {{"box create", "git.unborn"}, {"box apply", "git.wrong-branch"}}},
      {.name = "a shallow clone", .from = "repository", .make = [](World& w) {
         w.sh("echo 2 > second && git add -A && git commit -qm second && git clone -q --depth 1 --template= file://$PWD ../shallow");
         w.repo = "shallow";
         w.make_boxes();
       }},
      {.name = "a SHA-256 repository", .from = "repository", .make = [](World& w) {
         w.sh("git init -q --object-format=sha256 --template= ../sha256 && cd ../sha256 && echo x > x && git add -A && git commit -qm first");
         w.repo = "sha256";
       }, .expect = {{"box create", "git.unsupported-extension"}, kNoBox}},
      {.name = "submodules", .from = "repository", .make = [](World& w) {
         w.sh("git init -q --template= ../sub && cd ../sub && echo s > s && git add -A && git commit -qm sub && cd ../r && git submodule -q add file://$PWD/../sub sub && git commit -qm sub");
         w.make_boxes();
       }},
      {.name = "a work tree of a work tree", .from = "repository", .make = [](World& w) {
         w.sh("git worktree add -q -b one ../one && cd ../one && git worktree add -q -b two ../two");
         w.repo = "two";
         w.make_boxes();
       }},
      {.name = "a name with a newline", .make = [](World& w) { w.sh("printf x > \"$(printf 'new\\nline')\" && git add -A && git commit -qm newline"); }, .expect = {{"box create, box rebase", "gate.name"}}},
      {.name = "a name that is not UTF-8", .from = "repository", .make = [](World& w) {
         w.sh("printf x > \"$(printf 'caf\\351')\" && git add -A && git commit -qm latin");
         w.make_boxes();
       }},
      {.name = "a great many files", .from = "repository", .make = [](World& w) {
         w.sh("for d in $(seq 50); do mkdir -p many/$d && (cd many/$d && seq " + std::to_string(many_files() / 50) +
              " | split -l 1 -a 4 -d - f) || exit 1; done; git add -A && git commit -qm many && git repack -adq");
         w.make_boxes();
       }, .start = [](const World&, Program& p) { p.timeout_s = 600; }, .large = true},
      // ---- what holds it
      {.name = "a read-only file system", .each = [](World& w) { w.mount_read_only(); }, .expect = {{"box run, box shell", "log.write"}, {"box create, box diff, box compare, box propose, box apply, box export, box rebase, box abort, box rm, box allow, policy init, log seal, plugin install, plugin trust, plugin untrust, plugin remove, key untrust, key rotate, websec open, websec export, websec close", "denied"}}, .mounts = true},
      {.name = "a full disk", .each = [](World& w) {
         w.mount_small(16 << 20);
         w.sh("cat /dev/zero > ../fill", false);
       }, .expect = {{"box propose, box apply, box export", "system.call|git.failed"}, {"box run, box shell", "log.write"}, {"box create, box abort, box allow, policy init, log seal, plugin install, plugin trust, plugin untrust, plugin remove, key rotate, websec export, websec close", "system.call"}, {"websec open", "log.write|system.call"}}, .mounts = true},
      {.name = "no HOME", .start = [](const World&, Program& p) { p.env.erase("HOME"); }, .expect = {{"plugin inspect, plugin verify", "not-found"}, {"plugin install, plugin trust, plugin untrust, plugin remove, key *, log *, box allow, box create, box gc, box ls, metrics", "home.missing"}, {kOpened, "home.missing"}, {"websec *", "home.missing"}}},
      {.name = "HOME is not writable", .each = [](World& w) { w.mount_read_only("/home"); }, .expect = {{"box allow, box create, box export, log seal, plugin install, plugin trust, plugin untrust, plugin remove, key untrust, key rotate, websec open, websec export, websec close", "denied"}}, .mounts = true},
      // ---- how it is started
      {.name = "standard input is closed", .start = closed({0})},
      {.name = "standard output is closed", .start = closed({1}), .sees = Sees::NO_OUTPUT},
      {.name = "standard error is closed", .start = closed({2}), .sees = Sees::NO_ERRORS},
      {.name = "all three are closed", .start = closed({0, 1, 2}), .sees = Sees::NOTHING},
      {.name = kReaderGone, .start = in_child(reader_gone), .sees = Sees::NO_OUTPUT},
      {.name = "standard output is full for ever", .start = [](const World&, Program& p) { p.out_to = "/dev/full"; }, .sees = Sees::NO_OUTPUT},
      {.name = "standard output is a full pipe", .start = in_child([] { full_pipe(0); })},
      {.name = "standard output is a full pipe that does not block", .start = in_child([] { full_pipe(O_NONBLOCK); })},
      {.name = "no terminal", .start = in_child([] { if (setsid() < 0) _exit(119); })},
      {.name = "the locale is C", .from = "repository", .make = [](World& w) {
         w.sh("printf x > \"$(printf 'caf\\303\\251')\" && git add -A && git commit -qm utf8");
         w.make_boxes();
       }, .start = variables({{"LC_ALL", "C"}, {"LANG", "C"}})},
      {.name = "umask 077", .start = in_child([] { umask(077); })},
      {.name = "umask 000", .start = in_child([] { umask(0); }), .after = nobody_else_may_write},
      {.name = "the clock went back", .make = from_the_future},
      // ---- the words
      {.name = "an empty word", .expect = bad_ids({{"box export", "usage"}}), .ids = true, .id = ""},
      {.name = "a huge word", .expect = bad_ids({{"key trust, plugin install, policy check", "system.call"}}), .ids = true, .id = std::string(130000, 'a')},
      // Any plain name is a rule of egress.
      {.name = "an unknown id", .expect = bad_ids({{kOpened, "box.not-found"}, {"box create", "tier.unknown"}, {"box allow, websec open", "ok"}, {"websec ls", "usage"}, {"websec *", "not-found"}}), .ids = true, .id = "nothing-is-called-this"},
      {.name = "control codes in an id", .expect = bad_ids({}), .ids = true, .id = "x\x1b[31m\r\n\x07\xc2\x9bz"},
      {.name = "an id that is an option", .expect = {{"box create", "box.name"}, {"*", "usage"}}, .ids = true, .id = "--upload-pack=touch"},
      // Where a file may be named as well, it is one that is not there.
      {.name = "an id that is a path", .expect = bad_ids({{"log show, log verify, policy show, policy explain, policy diff", "not-found"}}), .ids = true, .id = "../../../etc/passwd"},
      {.name = "an id that is not UTF-8", .expect = bad_ids({}), .ids = true, .id = "\xff\xfe"},
  };
}

}  // namespace

std::vector<Condition> conditions() { return table(); }

}  // namespace h5i::test
