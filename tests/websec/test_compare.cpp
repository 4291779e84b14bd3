// Two bodies line by line, and what an answer matches.
#include <time.h>

#include <random>

#include "plugins/websec-http/compare/lines.hpp"
#include "plugins/websec-http/compare/match.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/slower.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

std::string text(const LineDiff& d) {
  std::string out;
  for (const Hunk& h : d.hunks) {
    out += "@ " + std::to_string(h.a) + " " + std::to_string(h.b) + "\n";
    for (const DiffLine& l : h.lines) out += l.kind + std::string(l.text) + "\n";
  }
  return out;
}

// What stays and what comes make the second text, what stays and what goes the first.
void fits(const std::vector<std::string>& a, const std::vector<std::string>& b, const LineDiff& d) {
  std::vector<std::string> left, right;
  size_t i = 0, j = 0;
  for (const Hunk& h : d.hunks) {
    while (i + 1 < h.a) left.push_back(a[i++]);
    while (j + 1 < h.b) right.push_back(b[j++]);
    for (const DiffLine& l : h.lines) {
      if (l.kind != '+') {
        left.emplace_back(l.text);
        i++;
      }
      if (l.kind != '-') {
        right.emplace_back(l.text);
        j++;
      }
    }
  }
  // Between hunks the texts are the same.
  while (i < a.size()) left.push_back(a[i++]);
  while (j < b.size()) right.push_back(b[j++]);
  REQUIRE(left == a);
  REQUIRE(right == b);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& l : lines) out += l + "\n";
  return out;
}

double seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

AnswerFacts answer() {
  AnswerFacts a;
  a.status = 404;
  a.body_bytes = 12;
  a.total_us = 5'000;
  a.ended = "complete";
  a.content_type = "text/html; charset=utf-8";
  a.names = {"Content-Type", "Location"};
  a.head = "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nLocation:  https://a.test/x \r\n\r\n";
  a.body = std::string("an \xff error\0 here", 16);
  return a;
}

}  // namespace

TEST_CASE("a difference of lines is unified, with its context and nothing more") {
  CHECK(diff_lines("a\nb\n", "a\nb\n").kind == LineDiff::Kind::SAME);
  CHECK(diff_lines("", "").kind == LineDiff::Kind::SAME);
  CHECK(text(diff_lines("", "a\n")) == "@ 1 1\n+a\n");
  CHECK(text(diff_lines("a", "")) == "@ 1 1\n-a\n");
  CHECK(text(diff_lines("a", "a\n")) == "@ 1 1\n-a\n+a\n");
  CHECK(text(diff_lines("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n")) == "@ 2 2\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
  std::string a, b;
  for (int i = 1; i <= 40; i++) {
    a += std::to_string(i) + "\n";
    b += (i == 5 || i == 30 ? "x" : std::to_string(i)) + "\n";
  }
  CHECK(text(diff_lines(a, b)) == "@ 2 2\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n@ 27 27\n 27\n 28\n 29\n-30\n+x\n 31\n 32\n 33\n");
}

TEST_CASE("whatever the texts are, the difference makes one of the other, and is no longer than it must be") {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; round++) {
    std::vector<std::string> a, b;
    const unsigned letters = 1 + random() % 4;
    for (unsigned i = random() % 25; i > 0; i--) a.push_back(std::string(1, static_cast<char>('a' + random() % letters)));
    b = a;
    if (random() % 3 == 0) b.clear();
    for (unsigned i = random() % 6; i > 0; i--) {
      if (!b.empty() && random() % 2) b.erase(b.begin() + static_cast<long>(random() % b.size()));
      else b.insert(b.begin() + static_cast<long>(random() % (b.size() + 1)), std::string(1, static_cast<char>('a' + random() % letters)));
    }
    const std::string left = joined(a), right = joined(b);
    LineDiff d = diff_lines(left, right);
    CAPTURE(left, right, text(d));
    fits(a, b, d);
    // The longest common part, the slow way.
    std::vector<std::vector<size_t>> common(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
    for (size_t i = 1; i <= a.size(); i++)
      for (size_t j = 1; j <= b.size(); j++) common[i][j] = a[i - 1] == b[j - 1] ? common[i - 1][j - 1] + 1 : std::max(common[i - 1][j], common[i][j - 1]);
    size_t changed = 0;
    for (const Hunk& h : d.hunks)
      for (const DiffLine& l : h.lines) changed += l.kind != ' ';
    REQUIRE(changed == a.size() + b.size() - 2 * common[a.size()][b.size()]);
  }
}

TEST_CASE("what is no text is said to be binary, and what is too much is not laid side by side") {
  CHECK(diff_lines(std::string_view("a\0b", 3), "a").kind == LineDiff::Kind::BINARY);
  CHECK(diff_lines("a", "\xff").kind == LineDiff::Kind::BINARY);
  CHECK(diff_lines("a", "\xc3").kind == LineDiff::Kind::BINARY);
  CHECK(diff_lines("a", std::string((4u << 20) + 1, 'a')).kind == LineDiff::Kind::TOO_DIFFERENT);
  std::string a, b;
  for (int i = 0; i < 60'000; i++) {
    a += "a" + std::to_string(i) + "\n";
    b += "b" + std::to_string(i) + "\n";
  }
  CHECK(diff_lines(a, b).kind == LineDiff::Kind::TOO_DIFFERENT);
  // The dearest that is taken: as many lines as may be, with more edits than may be among them.
  a.clear();
  b.clear();
  for (int i = 0; i < 49'000; i++) {
    a += std::to_string(i % 7) + "\n";
    b += std::to_string(i % 11) + "\n";
  }
  const double begun = seconds();
  CHECK(diff_lines(a, b).kind == LineDiff::Kind::TOO_DIFFERENT);
  CHECK(seconds() - begun < 5 * h5i::test::kSlower);
}

TEST_CASE("what is asked of an answer holds, does not, or cannot be known") {
  struct Row {
    const char* text;
    Verdict verdict;
  };
  const AnswerFacts a = answer();
  std::string where;
  for (const Row& r : {Row{"status:404", Verdict::HELD}, {"status:4xx", Verdict::HELD}, {"status:200", Verdict::DID_NOT}, {"!status:200", Verdict::HELD}, {"size:12", Verdict::HELD}, {"size>11", Verdict::HELD}, {"size>12", Verdict::DID_NOT},
                       {"size<13", Verdict::HELD}, {"time>4", Verdict::HELD}, {"time<5", Verdict::DID_NOT}, {"ended:complete", Verdict::HELD}, {"type:text/html", Verdict::HELD}, {"header.location", Verdict::HELD}, {"!header.Server", Verdict::HELD},
                       {"header.LOCATION~^https://[a-z.]+/x$", Verdict::HELD}, {"header.Location~^http:", Verdict::DID_NOT}, {"head~404", Verdict::HELD}, {"body~(?i)ERROR", Verdict::HELD}, {"body~\\x00 here$", Verdict::HELD},
                       {"body~\\xff", Verdict::HELD}, {"!body~error", Verdict::DID_NOT}, {"body~:>", Verdict::DID_NOT}}) {
    CAPTURE(r.text);
    auto m = Matcher::parse(r.text);
    REQUIRE(m.ok());
    CHECK(m->judge(a, &where) == r.verdict);
  }
  auto body = Matcher::parse("body~err"), head = Matcher::parse("!head~x"), header = Matcher::parse("header.A~x");
  CHECK(body->judge(a, &where) == Verdict::HELD);
  CHECK(where == "3 bytes at 5 of the body");
  AnswerFacts without = a;
  without.head.reset();
  without.body.reset();
  for (const auto* m : {&*body, &*head, &*header}) CHECK(m->judge(without, &where) == Verdict::UNKNOWN);
  for (const char* bad : {"", "!", "error", "status", "status:", "status:4", "status:4x", "status:abc", "status>400", "size:x", "size:", "size~1", "time:5", "body:x", "body~", "body~(", "body~(?=x)", "body~(a)\\1", "header.", "header.~x", "cookie~x", "ended>x", "host:x"}) {
    CAPTURE(bad);
    auto m = Matcher::parse(bad);
    REQUIRE_FALSE(m.ok());
    CHECK(m.error().code == H5I_E_INVALID);
  }
}

TEST_CASE("a pattern that others never end with is linear here") {
  AnswerFacts a = answer();
  a.body = std::string(4u << 20, 'a');
  std::string where;
  const double begun = seconds();
  for (const char* text : {"body~(a+)+$b", "body~(a|aa)+b", "body~(.*)*x", "body~([a-z]+)*[0-9]"}) {
    auto m = Matcher::parse(text);
    REQUIRE(m.ok());
    CHECK(m->judge(a, &where) == Verdict::DID_NOT);
  }
  CHECK(seconds() - begun < 10);
}
