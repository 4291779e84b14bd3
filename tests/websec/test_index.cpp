// Questions about a session through its index have the answers that the whole log has, whatever became of the index.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "core/base/unique_fd.hpp"
#include "plugins/websec-http/engine/history.hpp"
#include "plugins/websec-http/engine/scan.hpp"
#include "plugins/websec-http/index/index.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text_file.hpp"

using namespace h5i;
using namespace h5i::websec;
using h5i::test::read_file;

namespace {

// A host that has a log in memory and counts the lines that it gives.
class Log {
 public:
  explicit Log(std::string id = "aaaa") : id_(std::move(id)) {
    add("websec-opened", json::Object{}, "host-observed");
  }
  uint64_t add(const char* kind, json::Value body, const char* lane = "engine-claimed") {
    text += json::canonical(json::Object{{"log", id_}, {"seq", next}, {"lane", lane}, {"kind", kind}, {"time", "2026-01-01T00:00:00.000Z"}, {"body", std::move(body)}}) + "\n";
    return next++;
  }
  uint64_t send(const std::string& url, const char* method = "GET", const std::string& experiment = "") {
    json::Value body = json::Object{{"url", url}, {"method", method}};
    if (!experiment.empty()) body["experiment"] = experiment;
    return add("send", std::move(body));
  }
  void outcome(uint64_t of, int status, int bytes = 100, int us = 1000, const char* ended = "complete", const char* type = "text/html") {
    add("outcome", json::Object{{"of", of}, {"status", status}, {"body_bytes", bytes}, {"ended", ended}, {"content_type", type}, {"times", json::Object{{"total_us", us}}}});
  }
  sdk::Host host() {
    table_.context = this;
    return sdk::Host(&table_);
  }

  std::string text;
  uint64_t next = 0;
  size_t given = 0;

 private:
  static h5i_status lines(void* context, uint64_t offset, h5i_sink_fn sink, void* sink_context, h5i_error*) {
    auto& self = *static_cast<Log*>(context);
    if (offset > self.text.size() || (offset > 0 && self.text[offset - 1] != '\n')) return H5I_E_INVALID;
    for (size_t end; (end = self.text.find('\n', offset)) != std::string::npos; offset = end + 1) {
      self.given++;
      if (h5i_status said = sink(sink_context, {self.text.data() + offset, end - offset}); said != H5I_OK) return said;
    }
    return H5I_OK;
  }
  static const void* interface_of(void* context, h5i_str id) { return sdk::to_view(id) == H5I_HOST_SESSION ? &static_cast<Log*>(context)->session_ : nullptr; }
  std::string id_;
  h5i_host_session session_{sizeof(h5i_host_session), 2, nullptr, nullptr, nullptr, nullptr, nullptr, lines};
  h5i_host table_{sizeof(h5i_host), 0, nullptr, interface_of};
};

// The working directory of an engine, with the folder of its index.
class Folder {
 public:
  Folder() : before_(std::filesystem::current_path()), own_(std::filesystem::temp_directory_path().string() + "/h5i-index-XXXXXX") {
    REQUIRE((mkdtemp(own_.data()) && chdir(own_.c_str()) == 0));
    std::filesystem::create_directories("state/index");
  }
  ~Folder() {
    (void)!chdir(before_.c_str());
    std::error_code ignored;
    std::filesystem::remove_all(own_, ignored);
  }

 private:
  std::string before_, own_;
};
constexpr const char* kRows = "state/index/rows";

void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes; }

std::string text_of(const Told& t) {
  std::string out = std::to_string(t.send.seq) + (t.send.refused ? " refused " : " sent ") + t.send.time + json::canonical(t.send.body) + json::canonical(t.send.outcome) + std::to_string(t.bytes);
  for (const json::Value& f : t.frames) out += json::canonical(f);
  return out + "\n";
}

using Each = sdk::Status (*)(const sdk::Host&, const Wanted&, const std::function<sdk::Result<bool>(Told&)>&);
std::string told(Log& log, const Wanted& wanted, Each each = each_send) {
  std::string out;
  auto done = each(log.host(), wanted, [&](Told& t) -> sdk::Result<bool> {
    out += text_of(t);
    return true;
  });
  return done.ok() ? out : "failed: " + done.error().text;
}

Filters filters(const std::vector<std::string>& words) {
  Filters out;
  for (const std::string& w : words) {
    auto f = parse_filter(w);
    REQUIRE(f.ok());
    out.push_back(*f);
  }
  return out;
}

// The index says of all of these what the whole log says, read once.
void same(Log& log, const std::vector<Filters>& questions) {
  std::vector<std::pair<IndexRow, std::string>> all;
  REQUIRE(scan_sends(log.host(), {.frames = true}, [&](Told& t) -> sdk::Result<bool> {
    all.emplace_back(t.send.row(), text_of(t));
    return true;
  }).ok());
  for (const Filters& f : questions) {
    std::string expected;
    std::vector<uint64_t> numbers;
    for (const auto& [row, text] : all)
      if (hold(f, row)) expected += text, numbers.push_back(row.seq);
    CHECK((told(log, {.filters = f, .frames = true}) == expected));
    for (size_t most : {size_t{0}, size_t{1}, size_t{7}}) {
      auto last = last_sends(log.host(), f, most);
      REQUIRE(last.ok());
      CHECK(last->cut == (numbers.size() > most));
      CHECK(last->from == (numbers.empty() || most == 0 ? UINT64_MAX : numbers[numbers.size() - std::min(most, numbers.size())]));
    }
  }
  std::string a, b;
  auto add = [](std::string& to) { return [&](const json::Value& r) { return to += json::canonical(r), true; }; };
  CHECK((each_line(log.host(), {"finding", "frame"}, UINT64_MAX, add(a)).ok() && scan_lines(log.host(), {"finding", "frame"}, UINT64_MAX, add(b)).ok()));
  CHECK((a == b));
}

// Few lines were given: no scan.
bool quick(Log& log, const Wanted& wanted) {
  const size_t before = log.given;
  (void)told(log, wanted);
  return log.given - before < 20;
}

std::vector<Filters> questions() {
  std::vector<Filters> out;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{}, {"host:a"}, {"host:a.test", "status:404"}, {"status:2xx"}, {"path:/x", "method:POST"}, {"refused:yes"}, {"refused:no", "size>150"},
                                                                                  {"time>1"}, {"ended:unknown-outcome"}, {"ended:complete", "type:json"}, {"seq:5"}, {"seq:9999"}, {"host:nobody"}, {"path:%27"}})
    out.push_back(filters(words));
  return out;
}

Log ordinary(int sends = 60) {
  Log log;
  for (int i = 0; i < sends; i++) {
    const uint64_t seq = log.send("http://" + std::string(i % 3 ? "a" : "b") + ".test/x" + std::to_string(i % 11) + "?q", i % 4 ? "GET" : "POST", i % 10 ? "" : "e1");
    if (i % 17 == 3) log.add("refused", json::Object{{"url", "http://c.test/"}, {"method", "GET"}, {"why", "no rule"}});
    if (i % 23 == 5) log.add("frame", json::Object{{"of", seq}, {"text", i}});
    if (i % 29 != 7) log.outcome(seq, i % 5 ? 200 : 404, i, i * 100, "complete", i % 2 ? "text/html" : "application/json");
    if (i % 31 == 1) log.add("finding", json::Object{{"title", i}});
    if (i % 37 == 1) log.add("outcome", json::Object{{"of", seq}, {"status", 299}}, "box-claimed");
  }
  return log;
}

}  // namespace

TEST_CASE("an index answers as the log does, and reads little of it") {
  Folder here;
  Log log = ordinary();
  same(log, questions());
  CHECK(quick(log, {.filters = filters({"seq:5"})}));
  CHECK(quick(log, {.filters = filters({"host:nobody"})}));
  // What is added is taken over: an outcome that came late, too.
  const uint64_t late = log.send("http://late.test/");
  same(log, questions());
  log.outcome(late, 418);
  same(log, {filters({"status:418"}), filters({"host:late", "status:418"})});
  CHECK(quick(log, {.filters = filters({"status:418"})}));
  // The control: where there is no index the whole log is read.
  std::filesystem::remove_all("state");
  CHECK_FALSE(quick(log, {.filters = filters({"seq:5"})}));
  same(log, questions());
}

TEST_CASE("without an index the log has the same answers") {
  Folder here;
  Log log = ordinary(30);
  for (const Filters& f : questions()) {
    CHECK((told(log, {.filters = f, .frames = true}) == told(log, {.filters = f, .frames = true}, scan_sends)));
    for (uint64_t most : {uint64_t{0}, uint64_t{2}, UINT64_MAX}) {
      auto a = last_sends(log.host(), f, most), b = scan_last_sends(log.host(), f, most);
      REQUIRE((a.ok() && b.ok()));
      CHECK((a->from == b->from && a->until == b->until && a->cut == b->cut));
    }
  }
}

TEST_CASE("a document that began is of the log as it was then") {
  Folder here;
  Log log = ordinary(20);
  const uint64_t open = log.send("http://open.test/"), until = log.next - 1;
  log.outcome(open, 200);
  log.add("frame", json::Object{{"of", open}, {"text", "later"}});
  log.send("http://more.test/");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{}, {"ended:unknown-outcome"}, {"status:200"}, {"host:open"}, {"host:more"}})
    for (uint64_t end : {until, until - 1, uint64_t{0}, log.next - 1}) {
      const Wanted wanted{.filters = filters(words), .from = 3, .until = end, .frames = true};
      CAPTURE(words, end, told(log, wanted), told(log, wanted, scan_sends));
      CHECK((told(log, wanted) == told(log, wanted, scan_sends)));
    }
  CHECK(told(log, {.filters = filters({"ended:unknown-outcome", "host:open"}), .until = until}).find("open.test") != std::string::npos);
}

TEST_CASE("a row that is not what its line says is not shown, and the index is made anew") {
  for (const char* change : {"UPDATE sent SET status = 404 WHERE seq = 1", "UPDATE sent SET at = (SELECT at FROM sent WHERE seq = 3) WHERE seq = 1", "UPDATE sent SET outcome = at", "UPDATE sent SET at = at + 1",
                             "UPDATE sent SET at = 1 << 40", "UPDATE sent SET at = -1", "UPDATE sent SET host = NULL", "UPDATE sent SET refused = 1", "UPDATE sent SET path = x'41'", "UPDATE host SET name = x'6e6f626f6479' WHERE id = 1",
                             "UPDATE word SET name = x'00' WHERE name = CAST('GET' AS BLOB)", "UPDATE sent SET outcome_seq = 7", "UPDATE sent SET size = 'text'", "UPDATE sent SET experiment = 99"}) {
    CAPTURE(change);
    Folder here;
    Log log = ordinary(60);
    same(log, {Filters{}});
    {
      UniqueFd fd(open(kRows, O_RDWR | O_CLOEXEC));
      Database db(fd.get(), false);
      REQUIRE(db.run(change));
      REQUIRE(db.changes() > 0);
    }
    same(log, questions());
    CHECK(quick(log, {.filters = filters({"seq:1"})}));  // there is an index again
  }
}

TEST_CASE("an index that is cut, changed, another's or none is made anew") {
  Folder here;
  Log log = ordinary(150);
  same(log, {Filters{}});
  const std::string good = read_file(kRows);
  REQUIRE(good.size() > 12 * kPageBytes);
  auto again = [&](const std::string& bytes, const std::string& what) {
    CAPTURE(what);
    put(kRows, bytes);
    CHECK((told(log, {.filters = filters({"status:404"})}) == told(log, {.filters = filters({"status:404"})}, scan_sends)));
    CHECK((told(log, {}) == told(log, {}, scan_sends)));
    CHECK(quick(log, {.filters = filters({"seq:5"})}));
  };
  for (size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{4095}, size_t{4096}, good.size() / 2, good.size() - 1}) again(good.substr(0, size), "cut to " + std::to_string(size));
  std::mt19937 random(7);
  for (size_t page = 0; page < good.size() / kPageBytes; page++) {
    std::string bytes = good;
    bytes[page * kPageBytes + random() % kPageBytes] ^= static_cast<char>(1 << random() % 8);
    again(bytes, "a bit of page " + std::to_string(page));
  }
  std::string swapped = good;
  std::swap_ranges(swapped.begin() + kPageBytes, swapped.begin() + 2 * kPageBytes, swapped.begin() + 3 * kPageBytes);
  again(swapped, "two pages in each other's place");
  again(std::string(good.size(), '\0'), "zeros");
  again("not an index", "text");
  // Of another session, whose lines are as many.
  Log other("bbbb");
  for (int i = 0; i < 150; i++) other.outcome(other.send("http://other.test/"), 404);
  std::filesystem::remove(kRows);
  same(other, {Filters{}});
  again(read_file(kRows), "another log's");
  // Of this log's beginning: what is missing is added, and nothing is read again.
  put(kRows, good);
  log.outcome(log.send("http://new.test/"), 200);
  CHECK(quick(log, {.filters = filters({"host:new"})}));
  same(log, {filters({"host:new"})});
}

TEST_CASE("the schema of an index is ours to the letter") {
  for (const char* change : {"CREATE TRIGGER t AFTER INSERT ON sent BEGIN DELETE FROM sent; END", "CREATE VIEW v AS SELECT 1", "CREATE TABLE more(x)", "CREATE INDEX more ON sent(size)", "DROP INDEX sent_status", "UPDATE meta SET version = 99",
                             "UPDATE meta SET next = 0", "UPDATE meta SET last = end", "UPDATE meta SET digest = x''", "DELETE FROM meta", "INSERT INTO meta SELECT * FROM meta", "UPDATE meta SET log = x'62'", "ALTER TABLE sent ADD COLUMN more"}) {
    CAPTURE(change);
    Folder here;
    Log log = ordinary(60);
    same(log, {Filters{}});
    {
      UniqueFd fd(open(kRows, O_RDWR | O_CLOEXEC));
      Database db(fd.get(), false);
      REQUIRE(db.run(change));
    }
    struct stat before {}, after {};
    REQUIRE(stat(kRows, &before) == 0);
    const UniqueFd held(open(kRows, O_RDONLY | O_CLOEXEC));  // so that its number is not given again
    log.outcome(log.send("http://new.test/"), 200);
    same(log, questions());
    REQUIRE(stat(kRows, &after) == 0);
    CHECK(before.st_ino != after.st_ino);
  }
}

TEST_CASE("an index whose writer was killed is not read") {
  Folder here;
  Log log = ordinary(60);
  same(log, {Filters{}});
  {
    UniqueFd fd(open(kRows, O_RDWR | O_CLOEXEC));
    Database db(fd.get(), false);
    REQUIRE(db.run("DELETE FROM sent WHERE seq = 1"));
  }
  // The control: without the mark nothing tells.
  CHECK(told(log, {.filters = filters({"seq:1"})}).empty());
  put("state/index/lock", "w");
  same(log, questions());
  CHECK_FALSE(told(log, {.filters = filters({"seq:1"})}).empty());
  CHECK(read_file("state/index/lock").empty());
}

TEST_CASE("where no index can be had the log is read, and nobody hangs") {
  Log log = ordinary(60);
  auto control = [&] {
    same(log, {filters({"status:404"})});
    return !quick(log, {.filters = filters({"seq:5"})});
  };
  SECTION("a link in the place of the rows") {
    Folder here;
    put("elsewhere", "");
    REQUIRE(symlink("../../elsewhere", kRows) == 0);
    same(log, {filters({"status:404"})});
    CHECK(read_file("elsewhere").empty());
  }
  SECTION("a fifo in the place of the rows") {
    Folder here;
    REQUIRE(mkfifo(kRows, 0600) == 0);
    same(log, {filters({"status:404"})});
  }
  SECTION("a folder in the place of the lock") {
    Folder here;
    REQUIRE(mkdir("state/index/lock", 0700) == 0);
    CHECK(control());
  }
  SECTION("a link in the place of the folder") {
    Folder here;
    std::filesystem::rename("state/index", "state/other");
    REQUIRE(symlink("other", "state/index") == 0);
    CHECK(control());
  }
  SECTION("a lock that somebody keeps") {
    Folder here;
    same(log, {Filters{}});
    UniqueFd lock(open("state/index/lock", O_RDWR | O_CLOEXEC));
    REQUIRE(flock(lock.get(), LOCK_EX) == 0);
    const time_t began = time(nullptr);
    CHECK((told(log, {.filters = filters({"seq:5"})}) == told(log, {.filters = filters({"seq:5"})}, scan_sends)));
    CHECK(time(nullptr) - began < 10);
  }
  SECTION("no room for it") {
    Folder here;
    const rlimit little{20'000, RLIM_INFINITY}, all{RLIM_INFINITY, RLIM_INFINITY};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
    Log large = ordinary(200);
    const std::string without = told(large, {.filters = filters({"seq:5"})});
    REQUIRE(setrlimit(RLIMIT_FSIZE, &all) == 0);
    CHECK((without == told(large, {.filters = filters({"seq:5"})}, scan_sends)));
    CHECK_FALSE(std::filesystem::exists(kRows));
    same(large, {filters({"status:404"})});
    CHECK(quick(large, {.filters = filters({"seq:5"})}));
  }
}

TEST_CASE("a log that no index can be made of is read as it is") {
  Folder here;
  Log log = ordinary(30);
  SECTION("a number twice") {
    log.next--;
    log.send("http://twice.test/");
    same(log, {Filters{}, filters({"host:twice"})});
  }
  SECTION("lines of another log") {
    Log other("cccc");
    other.next = log.next;
    other.send("http://other.test/");
    log.text += other.text.substr(other.text.find('\n') + 1);
    log.next = other.next;
    same(log, {Filters{}, filters({"host:other"})});
  }
  SECTION("a line that is none") {
    log.text += "{\n";
    CHECK(told(log, {}).starts_with("failed: the session's log has an unreadable line"));
    CHECK(told(log, {}, scan_sends).ends_with(told(log, {})));
  }
  SECTION("a last line that is cut") {
    const std::string before = told(log, {});
    log.text += "{\"log\":";
    CHECK((told(log, {}) == before));
  }
}

TEST_CASE("hostile text is text") {
  Folder here;
  Log log;
  for (const std::string& part : {std::string("%27%20OR%201=1--"), std::string("a'b\"c"), std::string(200'000, 'y'), std::string("\xf0\x9f\x98\x80"), std::string("%00%ff"), std::string("*?[]_%")}) {
    log.outcome(log.send("http://x.test/" + part), 200, 1, 1, part.substr(0, 100).c_str(), part.substr(0, 100).c_str());
    log.send("http://" + part.substr(0, 60) + ".test/", part.substr(0, 60).c_str());
    log.add("refused", json::Object{{"url", part}, {"why", part}});
    log.add("outcome", json::Object{{"of", part}, {"status", part}, {"body_bytes", part}, {"times", 1}});
  }
  log.outcome(1, INT32_MAX, -1, -1);
  log.add("outcome", json::Object{{"of", 1}, {"status", INT64_MIN}, {"body_bytes", INT64_MAX}});
  log.add("send", nullptr);
  log.add("outcome", nullptr);
  std::vector<Filters> asked = questions();
  for (const char* word : {"path:'", "path:%27", "path:yyy", "host:'", "ended:a'b\"c", "type:%", "method:a'b\"c", "path:\xf0\x9f", "path:_", "path:*", "size>1"}) asked.push_back(filters({word}));
  same(log, asked);
  CHECK(quick(log, {.filters = filters({"seq:1"})}));
}

TEST_CASE("any question about any log has the log's answer, while the log grows and the index is damaged") {
  Folder here;
  std::mt19937 random(20260101);
  auto one_of = [&](const std::vector<std::string>& list) { return list[random() % list.size()]; };
  Log log;
  std::vector<uint64_t> open;
  for (int round = 0; round < 30; round++) {
    for (size_t n = random() % 30; n > 0; n--) {
      switch (random() % 6) {
        case 0:
        case 1: open.push_back(log.send("http://" + one_of({"a", "b", "aa", "c.a"}) + ".test/" + one_of({"", "x", "y/x", "%41"}), one_of({"GET", "POST"}).c_str(), one_of({"", "e1", "e2"}))); break;
        case 2:
          if (!open.empty()) {
            const size_t which = random() % open.size();
            log.outcome(open[which], static_cast<int>(random() % 500), static_cast<int>(random() % 300), static_cast<int>(random() % 9000), one_of({"complete", "short"}).c_str(), one_of({"", "text/html"}).c_str());
            if (random() % 4) open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
          }
          break;
        case 3: log.add("refused", json::Object{{"url", "http://" + one_of({"a", "z"}) + ".test/"}, {"why", one_of({"no rule", "rate"})}}); break;
        case 4: log.add(one_of({"frame", "finding", "event"}).c_str(), json::Object{{"of", random() % (log.next + 1)}}); break;
        default: log.add("send", json::Object{{"url", "http://a.test/"}}, "box-claimed");
      }
    }
    if (random() % 5 == 0 && std::filesystem::exists(kRows)) {
      std::string bytes = read_file(kRows);
      if (random() % 2) bytes.resize(random() % bytes.size());
      else bytes[random() % bytes.size()] ^= 0x10;
      put(kRows, bytes);
    }
    std::vector<Filters> asked;
    for (int q = 0; q < 6; q++) {
      Filters f;
      for (size_t n = random() % 4; n > 0; n--)
        f.push_back(filters({one_of({"host:a", "host:a.test", "path:x", "path:/", "method:GET", "status:2xx", "status:200", "status:4xx", "ended:complete", "ended:unknown-outcome", "ended:rate", "type:html", "refused:yes", "refused:no",
                                     "size>100", "size>0", "time>3", "seq:" + std::to_string(random() % (log.next + 2))})})[0]);
      if (random() % 6 == 0) f.push_back({Filter::Field::EXPERIMENT, one_of({"e1", "e2", "e3"})});
      asked.push_back(std::move(f));
    }
    same(log, asked);
    const Wanted part{.filters = asked[0], .from = random() % (log.next + 1), .until = random() % (log.next + 1), .frames = true};
    CHECK((told(log, part) == told(log, part, scan_sends)));
  }
}

TEST_CASE("many processes at one index get the log's answer") {
  Folder here;
  Log log = ordinary(30);
  std::vector<pid_t> children;
  for (unsigned i = 0; i < 4; i++) {
    const pid_t pid = fork();
    if (pid == 0) {
      std::mt19937 random(i);
      bool good = true;
      for (int n = 0; n < 15; n++) {
        log.outcome(log.send("http://a.test/"), 404);
        // Each has a log that grows in another way: to each of the others' indexes are none.
        if (random() % 8 == 0) log.add("finding", json::Object{{"title", i}});
        const Wanted wanted{.filters = {*parse_filter("status:404")}};
        good = good && told(log, wanted) == told(log, wanted, scan_sends);
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
}
