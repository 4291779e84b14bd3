#include <sys/stat.h>

#include "core/evidence/chain.hpp"
#include "core/evidence/record.hpp"
#include "tests/evidence/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::evidence;
using namespace h5i::test;

namespace {

std::string make_log(const std::string& path, int records) {
  auto log = Log::open(path);
  REQUIRE(log.ok());
  for (int i = 0; i < records; i++) {
    Record r;
    r.kind = "note";
    r.body = json::Object{{"n", i}, {"text", "fact number " + std::to_string(i)}};
    REQUIRE(log->append(r).ok());
  }
  return read_file(path);
}

ChainReport examine(const std::string& path, const std::string& bytes, std::optional<Anchor> anchor = {}) {
  spill(path, bytes);
  auto r = examine_chain(path, {}, anchor);
  REQUIRE(r.ok());
  return *r;
}

}  // namespace

TEST_CASE("an untouched log has an intact chain, with and without an anchor") {
  Scratch s;
  std::string bytes = make_log(s.path("log"), 6);
  CHECK_FALSE(examine(s.path("copy"), bytes).broken);
  auto lines = lines_of(bytes);
  CHECK_FALSE(examine(s.path("copy"), bytes, Anchor{6, sha256_hex(lines[5])}).broken);
  CHECK_FALSE(examine(s.path("copy"), bytes, Anchor{3, sha256_hex(lines[2])}).broken);
}

TEST_CASE("one byte changed anywhere breaks the chain at its record") {
  Scratch s;
  std::string bytes = make_log(s.path("log"), 5);
  auto lines = lines_of(bytes);
  Anchor anchor{5, sha256_hex(lines[4])};
  uint64_t record = 0;
  for (size_t i = 0; i < bytes.size(); i++) {
    for (int flip : {0x01, 0x20, 0x80}) {
      std::string bad = bytes;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      ChainReport r = examine(s.path("copy"), bad, anchor);
      INFO("byte " << i << " flip " << flip << ": " << r.why);
      REQUIRE(r.broken);
      REQUIRE(r.bad == record);
    }
    if (bytes[i] == '\n') record++;
  }
}

TEST_CASE("without an anchor every record but the last is still covered") {
  Scratch s;
  std::string bytes = make_log(s.path("log"), 4);
  size_t last = joined({lines_of(bytes)[0], lines_of(bytes)[1], lines_of(bytes)[2]}).size();
  uint64_t record = 0;
  for (size_t i = 0; i < last; i++) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    ChainReport r = examine(s.path("copy"), bad);
    REQUIRE(r.broken);
    REQUIRE(r.bad == record);
    if (bytes[i] == '\n') record++;
  }
}

TEST_CASE("a removed, added, moved or foreign record is named") {
  Scratch s;
  std::string bytes = make_log(s.path("log"), 6);
  auto lines = lines_of(bytes);
  auto other = lines_of(make_log(s.path("other"), 6));
  Anchor anchor{6, sha256_hex(lines[5])};
  auto with = [&](auto change) {
    auto l = lines;
    change(l);
    return examine(s.path("copy"), joined(l), anchor);
  };
  for (size_t i = 0; i < 6; i++) {
    INFO(i);
    auto removed = with([&](auto& l) { l.erase(l.begin() + static_cast<long>(i)); });
    CHECK(removed.broken);
    CHECK(removed.bad == i);
    CHECK(removed.code == (i == 5 ? Errc::LOG_TRUNCATED : Errc::LOG_CHAIN));
    auto twice = with([&](auto& l) { l.insert(l.begin() + static_cast<long>(i), l[i]); });
    CHECK(twice.broken);
    CHECK(twice.bad == i + 1);
    // Also the very first: two of the first three decide whose log it is.
    auto foreign = with([&](auto& l) { l[i] = other[i]; });
    CHECK(foreign.broken);
    CHECK(foreign.bad == i);
    CHECK(foreign.code == Errc::LOG_FOREIGN);
    for (size_t j = i + 1; j < 6; j++) {
      auto swapped = with([&](auto& l) { std::swap(l[i], l[j]); });
      CHECK(swapped.broken);
      CHECK(swapped.bad == i);
    }
  }
  auto cut = with([](auto& l) { l.clear(); });
  CHECK(cut.code == Errc::LOG_TRUNCATED);
  CHECK(cut.bad == 0);
}

TEST_CASE("with the id known, a log of another box is foreign from its first record") {
  Scratch s;
  make_log(s.path("log"), 3);
  make_log(s.path("other"), 3);
  std::string id = verify_chain(s.path("log"))->log_id;
  CHECK(verify_chain(s.path("log"), id).ok());
  auto r = verify_chain(s.path("other"), id);
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().code == Errc::LOG_FOREIGN);
  CHECK(r.error().evidence.rfind("record 0: ", 0) == 0);
}

TEST_CASE("a chain that was computed again does not match what was signed") {
  Scratch s;
  std::string bytes = make_log(s.path("log"), 5);
  auto lines = lines_of(bytes);
  Anchor anchor{5, sha256_hex(lines[4])};
  std::string prev = sha256_hex(lines[1]);
  for (size_t i = 2; i < 5; i++) {
    auto v = parse_json(lines[i], "line");
    REQUIRE(v.ok());
    (*v)["prev"] = prev;
    (*v)["body"]["text"] = "rewritten";
    lines[i] = json::canonical(*v);
    prev = sha256_hex(lines[i]);
  }
  CHECK_FALSE(examine(s.path("copy"), joined(lines)).broken);  // the control: by itself it looks whole
  auto r = examine(s.path("copy"), joined(lines), anchor);
  CHECK(r.broken);
  CHECK(r.bad == 4);
}

TEST_CASE("hostile files are reported, not believed and not fatal") {
  Scratch s;
  std::string good = make_log(s.path("log"), 2);
  CHECK(examine(s.path("copy"), good + std::string(3 * kMaxLine, 'x') + "\n" + good).bad == 2);
  CHECK(examine(s.path("copy"), good + std::string(3 * kMaxLine, 'x')).bad == 2);
  CHECK(examine(s.path("copy"), good + "\n").bad == 2);
  CHECK(examine(s.path("copy"), good + std::string(10, '\0') + "\n").bad == 2);
  CHECK(examine(s.path("copy"), good.substr(0, good.size() - 1)).bad == 1);
  CHECK(examine(s.path("copy"), "\xff\xfe").bad == 0);
  CHECK(examine(s.path("copy"), std::string(1000, '[') + "\n").bad == 0);
  CHECK_FALSE(examine(s.path("copy"), "").broken);
  CHECK_FALSE(examine_chain(s.path("absent")).ok());
  REQUIRE(mkfifo(s.path("fifo").c_str(), 0600) == 0);
  CHECK_FALSE(examine_chain(s.path("fifo")).ok());
  CHECK_FALSE(examine_chain(s.dir()).ok());
}

TEST_CASE("read_log gives records in order and stops when told") {
  Scratch s;
  make_log(s.path("log"), 5);
  std::vector<int64_t> seen;
  REQUIRE(read_log(s.path("log"), [&](uint64_t i, const Json& r) {
            CHECK(r["seq"].integer() == static_cast<int64_t>(i));
            seen.push_back(r["body"]["n"].integer());
            return i < 2;
          }).ok());
  CHECK(seen == std::vector<int64_t>{0, 1, 2});
}
