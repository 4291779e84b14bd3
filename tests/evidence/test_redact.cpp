#include <filesystem>

#include "core/base/ids.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/evidence/patterns.hpp"
#include "core/evidence/redact.hpp"
#include "tests/evidence/planted.hpp"
#include "tests/evidence/scratch.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/slower.hpp"
#include "tests/support/slower.hpp"

using namespace h5i;
using namespace h5i::evidence;
using namespace h5i::test;

namespace {

std::string in_chunks(const std::string& text, size_t size, std::vector<std::string> values = {}) {
  Redactor r(values);
  std::string out;
  for (size_t i = 0; i < text.size(); i += size) out += r.feed(std::string_view(text).substr(i, size));
  return out + r.finish();
}

std::string at_once(const std::string& text, std::vector<std::string> values = {}) {
  return in_chunks(text, text.size() + 1, std::move(values));
}

// The longest part of the secret that still stands in the text.
size_t left_of(const std::string& secret, const std::string& text) {
  size_t longest = 0;
  for (size_t i = 0; i < secret.size(); i++)
    while (i + longest < secret.size() && text.find(secret.substr(i, longest + 1)) != std::string::npos) longest++;
  return longest;
}

std::string percent(const std::string& s, bool all) {
  std::string out;
  for (char c : s) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain && !all)
      out += c;
    else
      out += "%" + hex(&c, 1);
  }
  return out;
}

std::string unicode_escapes(const std::string& s) {
  std::string out;
  for (char c : s) out += ((c & 0x80) ? "\\x" : "\\u00") + hex(&c, 1);
  return out;
}

}  // namespace

TEST_CASE("planted secrets are found, under their rule, in every manner of printing") {
  std::map<std::string, std::pair<int, int>> figures;  // rule: found, planted
  size_t planted = 0, found = 0;
  for (uint64_t seed = 1; seed <= 5; seed++)
    for (const Planted& p : planted_secrets(seed)) {
      std::map<std::string, uint64_t> counts;
      std::string out = redact(p.text, &counts);
      bool gone = left_of(p.secret, out) < 8;
      planted++;
      found += gone;
      figures[p.rule].second++;
      figures[p.rule].first += gone;
      INFO(p.text << "\n became " << out);
      CHECK(gone);
      CHECK(out.find("‹redacted›") != std::string::npos);
      if (p.rule.rfind("GENERIC", 0) != 0) CHECK(counts.count(p.rule) == 1);
    }
  printf("redaction recall: %zu of %zu planted secrets, %zu rules\n", found, planted, figures.size());
  CHECK(figures.size() >= 24);
}

TEST_CASE("how the output is cut into chunks changes nothing") {
  std::string text;
  for (const Planted& p : planted_secrets(7)) text += "ordinary line before\n" + p.text;
  std::string whole = at_once(text);
  CHECK(whole.size() < text.size());
  for (size_t size : {1, 2, 3, 5, 7, 16, 61, 64, 1000, 4096}) {
    std::string got = in_chunks(text, size);
    size_t same = 0;
    while (same < got.size() && same < whole.size() && got[same] == whole[same]) same++;
    INFO("chunks of " << size << ": " << printable(got.substr(same > 80 ? same - 80 : 0, 300)));
    CHECK(same == whole.size());
    CHECK(got.size() == whole.size());
  }
  // Each one cut in two at every place.
  for (const Planted& p : planted_secrets(8)) {
    std::string expected = at_once(p.text);
    for (size_t i = 0; i <= p.text.size(); i++) {
      Redactor r;
      std::string out = r.feed(std::string_view(p.text).substr(0, i));
      out += r.feed(std::string_view(p.text).substr(i));
      out += r.finish();
      if (out != expected) {
        INFO(p.text << "\ncut at " << i);
        REQUIRE(out == expected);
      }
    }
  }
}

TEST_CASE("a known value is scrubbed in every form, cut at every place") {
  Dice d(3);
  for (std::string value : {std::string("abcd"), std::string("todo-foo"), d.pick(kAlnumChars, 9), d.pick(kUrlChars, 40),
                            std::string("p\"a\\s/s ü 1"), std::string("aaaaaaaa"), std::string("two\nlines of it"),
                            d.pick(kAlnumChars, 3000)}) {
    std::string html;
    std::map<std::string, std::string> forms;
    forms["plain"] = value;
    forms["hex"] = hex(value.data(), value.size());
    forms["percent"] = percent(value, false);
    forms["percent all"] = percent(value, true);
    forms["json"] = json::canonical(Json(value));
    forms["json in json"] = unicode_escapes(value);
    for (int before = 0; before < 3; before++) {
      std::string padded = std::string(static_cast<size_t>(before), '\x01') + value + std::string("zz");
      forms["base64 " + std::to_string(before)] = base64(padded);
      std::string url = base64(padded);
      for (char& c : url) c = c == '+' ? '-' : c == '/' ? '_' : c;
      forms["base64url " + std::to_string(before)] = url;
      std::string wrapped;
      for (size_t i = 0; i < padded.size(); i += 45) wrapped += base64(padded.substr(i, 45)) + "\r\n";
      forms["base64 wrapped " + std::to_string(before)] = wrapped;
    }
    std::string coloured, wide;
    for (char c : value) coloured += c, coloured += "\x1b[1m";
    forms["coloured"] = coloured;
    if (value.find('\n') == std::string::npos && value.find("ü") == std::string::npos) {
      for (char c : value) wide += c, wide += '\0';
      forms["utf-16"] = wide;
      std::string framed;
      for (size_t i = 0; i < value.size(); i += 3) framed += value.substr(i, 3) + "\r\n";
      forms["re-framed"] = framed;
    }
    for (const auto& [name, form] : forms) {
      std::string text = "before (" + form + ") after\n";
      std::string whole = at_once(text, {value});
      INFO(name << ": " << text.substr(0, 300) << "\n became " << whole.substr(0, 300));
      CHECK(whole.find("‹redacted›") != std::string::npos);
      CHECK(left_of(form, whole) < 9);  // of base64, the padding and what stands beside the value
      CHECK(whole.rfind("before (", 0) == 0);
      CHECK(whole.find(") after\n") != std::string::npos);
      size_t stride = text.size() > 500 ? 97 * (test::kSlower > 1 ? 10 : 1) : 1;
      for (size_t i = 0; i <= text.size(); i += stride) {
        Redactor r({value});
        std::string out = r.feed(std::string_view(text).substr(0, i));
        out += r.feed(std::string_view(text).substr(i));
        out += r.finish();
        if (out != whole) {
          INFO("cut at " << i);
          REQUIRE(out == whole);
        }
      }
      CHECK(in_chunks(text, 1, {value}) == whole);
    }
  }
}

TEST_CASE("a terminal sequence hides neither a value nor a credential that begins with its last letter") {
  CHECK(at_once("\x1b[ hunter22\n", {"hunter22"}) == "\x1b[ ‹redacted›\n");
  CHECK(at_once("\x1b[1mmine1234\n", {"mine1234"}) == "\x1b[1m‹redacted›\n");
  CHECK(at_once("\x1b[1mine1234\n", {"mine1234"}) == "\x1b[1‹redacted›\n");
  Dice d(5);
  std::string body = d.pick(kAlnumChars, 36);
  std::string prefix = std::string("gh") + "p_";
  CHECK(redact("\x1b[" + prefix + body + "\n") == "\x1b[" + prefix + "‹redacted›\n");
  CHECK(redact("\x1b[1" + prefix + body + "\n") == "\x1b[1" + prefix + "‹redacted›\n");
}

TEST_CASE("zero bytes at a chunk's edge change nothing") {
  Dice d(6);
  std::string value = d.pick(kAlnumChars, 24);
  for (std::string zeros : {std::string("\0", 1), std::string("\0\0", 2), std::string("\0\xff\0", 3)}) {
    std::string text = "token: \"" + zeros + value + zeros + "\" and" + zeros;
    std::string whole = at_once(text);
    CHECK(whole.find("‹redacted›") != std::string::npos);
    for (size_t size : {1, 2, 3, 9}) CHECK(in_chunks(text, size) == whole);
  }
}

TEST_CASE("values overlap, repeat and are too short") {
  std::map<std::string, uint64_t> counts;
  Redactor r({"abcd", "cdef", "xyz", ""});
  std::string out = r.feed("..abcdef..abcdabcd..xyz..") + r.finish();
  CHECK(out == "..‹redacted›..‹redacted›‹redacted›..xyz..");
  CHECK(r.counts().at("too-short") == 2);
  CHECK(r.counts().at("EXACT") == 4);
  CHECK(at_once("aaaaaaaaaa", {"aaaa"}) == "‹redacted›");
  CHECK(in_chunks("aaaaaaaaaab", 1, {"aaaa"}) == "‹redacted›b");
}

TEST_CASE("text without secrets comes out as it went in") {
  Dice d(11);
  for (int round = 0; round < 40; round++) {
    std::string text;
    for (int i = 0; i < 2000; i++) text += static_cast<char>(d.roll(256));
    CHECK(in_chunks(text, 1 + d.roll(100), {"a value that is not there"}) == text);
  }
  for (std::string text :
       {"", "\x1b", "\x1b[", "-----BEGIN", "password", "password=", "https://", "eyJ", "a%", "a\\", "sk-"})
    for (size_t size : {1, 2, 100}) CHECK(in_chunks(text, size, {"never here"}) == text);
}

TEST_CASE("a prompt is shown at once, also one that asks for a password") {
  for (std::string prompt : {"Password: ", "Enter token: ", "Overwrite? [y/N] ", "$ ",
                             "api_key = ", "Authorization: Bearer ", "secret", "sk-", "https://", "-----BEGIN "}) {
    Redactor r({"hunter22"});
    CHECK(r.feed(prompt) == prompt);
  }
}

TEST_CASE("no input holds back more than is promised") {
  std::vector<std::string> endless = {
      "password=", "eyJ", "https://user:", "token: \"", "\x1b[", "Authorization: x", "-----BEGIN PRIVATE KEY-----\n"};
  for (const std::string& start : endless)
    for (char fill : {'a', 'Z', '1', '-', '=', '\\', '%', '\x1b', '\0', '\n'}) {
      Redactor r({"aaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "ZZZZZZZZZZZZZZZZZZZZZZZ1"});
      std::string out = r.feed(start);
      size_t in = start.size();
      std::string piece(1000, fill);
      bool secret = false;
      for (int i = 0; i < 60; i++) {
        out += r.feed(piece);
        in += piece.size();
        secret |= out.find("‹redacted›") != std::string::npos;
        INFO(start << " and then " << printable(std::string(1, fill)));
        if (!secret) REQUIRE(in - out.size() <= Redactor::kHold);
      }
    }
}

TEST_CASE("time is linear in the text, whatever the text") {
  std::vector<std::string> units = {"a",
                                    "key",
                                    "password",
                                    "password=",
                                    "secret=secret=",
                                    "eyJ",
                                    "eyJ.",
                                    "eyJa-",
                                    "://",
                                    "http://a:",
                                    "@:",
                                    "AKIA",
                                    "sk-",
                                    "ghp_",
                                    "-----BEGIN ",
                                    "-----BEGIN PRIVATE KEY-----\n",
                                    "\"token\":\"",
                                    "\\",
                                    "\\\\\"",
                                    "\x1b[",
                                    "\x1b[1m",
                                    "%",
                                    "%4",
                                    "\\u00",
                                    "Bearer ",
                                    "authorization:",
                                    "token: a",
                                    "aaaaaaab",
                                    std::string("a\0", 2),
                                    "x-x_x.",
                                    "\n",
                                    "secret ",
                                    "token:token:"};
  std::vector<std::string> values = {std::string(40, 'a') + "b", "abababababababac", "secretsecretsecret!"};
  double worst = 0, worst_bytes = 0;
  std::string worst_unit;
  for (const std::string& u : units) {
    std::string text;
    while (text.size() < 200'000) text += u;
    int64_t t0 = monotonic_ns();
    at_once(text, values);
    double once = static_cast<double>(monotonic_ns() - t0) / static_cast<double>(text.size());
    std::string shorter = text.substr(0, 20'000);
    t0 = monotonic_ns();
    in_chunks(shorter, 1, values);
    double bytes = static_cast<double>(monotonic_ns() - t0) / static_cast<double>(shorter.size());
    if (once > worst) worst = once, worst_unit = u;
    worst_bytes = std::max(worst_bytes, bytes);
    INFO(u << ": " << once << " ns a byte at once, " << bytes << " one by one");
    CHECK(once < 4000 * kSlower);
    CHECK(bytes < 60'000 * kSlower);
  }
  printf("redaction: worst hostile text %.0f ns a byte (%s), one byte at a time %.0f\n", worst,
         printable(worst_unit).c_str(), worst_bytes);
}

TEST_CASE("placeholders quiet reports and never redaction") {
  CHECK(placeholder("changeme"));
  CHECK(placeholder("<your-token>"));
  CHECK(placeholder("${TOKEN}"));
  CHECK(placeholder("xxxxxxxxxxxx"));
  CHECK_FALSE(placeholder("q8Zr4Wn1Lx0P"));
  CHECK(redact("password=changeme123\n") == "password=‹redacted›\n");
  CHECK(secrets_in("password=changeme123\n").empty());
  auto found = secrets_in("# a file\n\npassword=q8Zr4Wn1Lx0P\nurl = redis://:k3Jh7sQw@h\npassword=<your password>\n");
  REQUIRE(found.size() == 2);
  CHECK(found[0].rule == "PASSWORD_ASSIGNMENT");
  CHECK(found[0].line == 3);
  CHECK(found[1].line == 4);
}

TEST_CASE("ordinary build output is left alone") {
  const char* source = getenv("H5I_SOURCE_DIR");
  REQUIRE(source);
  size_t lines = 0, bytes = 0, hits = 0, files = 0;
  int64_t took = 0;
  std::map<std::string, uint64_t> counts;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(source) + "/tests/evidence/corpus")) {
    if (entry.path().extension() != ".log") continue;
    files++;
    std::string text = read_file(entry.path());
    int64_t t0 = monotonic_ns();
    std::string out = redact(text, &counts);
    took += monotonic_ns() - t0;
    auto a = lines_of(text), b = lines_of(out);
    lines += a.size();
    bytes += text.size();
    for (size_t i = 0; i < a.size() && i < b.size(); i++)
      if (a[i] != b[i]) {
        hits++;
        UNSCOPED_INFO(entry.path().filename().string() << ": " << b[i]);
      }
    CHECK(a.size() == b.size());
  }
  printf("redaction false positives: %zu of %zu lines (%zu bytes, %zu logs), %.0f ns a byte\n", hits, lines, bytes,
         files, static_cast<double>(took) / static_cast<double>(bytes));
  CHECK(files >= 8);
  CHECK(hits * 1000 <= lines);  // one line in a thousand at most
}
