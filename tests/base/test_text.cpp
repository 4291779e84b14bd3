#include "core/base/text.hpp"

#include "tests/support/catch.hpp"

using namespace h5i;

TEST_CASE("control sequences become visible text") {
  CHECK(printable("\x1b]52;c;aGk=\a") == "\\x1b]52;c;aGk=\\x07");
  CHECK(printable("a\x1b[2K\rOK\x1b[6n") == "a\\x1b[2K\\x0dOK\\x1b[6n");
  CHECK(printable("\xc2\x9b" "31m") == "\\u{9b}31m");  // C1 CSI in UTF-8
  CHECK(printable("\x9b" "31m") == "\\x9b31m");        // and as a byte
  CHECK(printable("a\xe2\x80\xae" "b") == "a\\u{202e}b");
  CHECK(printable("\xe2\x80\x8b") == "\\u{200b}");
  CHECK(printable("x\xf3\xa0\x85\xa8") == "x\\u{e0168}");  // a selector that carries a byte
  CHECK(printable("\xf4\x8f\xbf\xbd\xe3\x85\xa4") == "\\u{10fffd}\\u{3164}");
  CHECK(printable("line\nnext\t") == "line\\nnext\\t");
  CHECK(printable("line\nnext\t", {.newlines = true}) == "line\nnext\t");
  CHECK(printable("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80") == "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
  CHECK(printable("\x7f") == "\\x7f");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(printable("abcdef", {.limit = 3}) == "abc…");
}

TEST_CASE("a stream that was coloured ends without colour") {
  TextFilter f({.newlines = true, .colour = true});
  CHECK(f.feed("a\x1b[41mb") == "a\x1b[41mb");
  CHECK(f.feed("c\x1b[3") == "c");
  CHECK(f.finish() == "\\x1b[3\x1b[0m");
  CHECK(f.finish() == "");
  CHECK(f.feed("plain") + f.finish() == "plain");
}

TEST_CASE("colour is kept only when asked and only as SGR") {
  CHECK(printable("\x1b[1;31mred\x1b[0m", {.colour = true}) == "\x1b[1;31mred\x1b[0m");
  // What hides text is dropped, in each of its spellings; the numbers of a colour are no requests.
  for (const char* hiding : {"\x1b[8m", "\x1b[08m", "\x1b[1;8m", "\x1b[8;31m", "\x1b[8:1m", "\x1b[38;5;1;8m", "\x1b[38;2;1;2;3;8m", "\x1b[38;8m", "\x1b[48;9;8m", "\x1b[38;5m", "\x1b[38m", "\x1b[38;5;m"})
    CHECK(printable(std::string("a") + hiding + "b", {.colour = true}) == "ab");
  for (const char* shown : {"\x1b[m", "\x1b[0m", "\x1b[28m", "\x1b[38;5;8m", "\x1b[48;5;8;1m", "\x1b[38;2;8;8;8m", "\x1b[38:5:8m", "\x1b[58;2;8;8;8;4m", "\x1b[18m"})
    CHECK(printable(std::string("a") + shown + "b", {.colour = true}) == std::string("a") + shown + "b");
  CHECK(printable("\x1b[1;31H", {.colour = true}) == "\\x1b[1;31H");
  CHECK(printable("\x1b[31", {.colour = true}) == "\\x1b[31");
}

TEST_CASE("a sequence cut by a chunk's edge reads as if it had not been cut") {
  const std::string raw = "a\x1b[1;31mb\xe2\x80\xae" "c\xf0\x9f\x98\x80" "d\x1b]0;t\a\r\ne\xff\xe2\x80";
  TextRules rules{.newlines = true, .colour = true};
  std::string whole = printable(raw, rules);
  for (size_t step = 1; step < raw.size(); step++) {
    TextFilter f(rules);
    std::string out;
    for (size_t i = 0; i < raw.size(); i += step) out += f.feed(std::string_view(raw).substr(i, step));
    out += f.finish();
    CHECK(out == whole + "\x1b[0m");
  }
}

TEST_CASE("base64 and hex are strict both ways") {
  for (std::string s : {"", "f", "fo", "foo", "foob", "fooba", "foobar"}) {
    std::string back;
    REQUIRE(unbase64(base64(s), &back));
    CHECK(back == s);
    REQUIRE(unhex(hex(s.data(), s.size()), &back));
    CHECK(back == s);
  }
  CHECK(base64("foobar") == "Zm9vYmFy");
  std::string o;
  for (const char* bad : {"A", "AA=A", "AB==", "Zm9=", "Zm 9", "====", "Zg==Zg=="}) {
    INFO(bad);
    CHECK_FALSE(unbase64(bad, &o));
  }
  CHECK_FALSE(unhex("0G", &o));
  CHECK_FALSE(unhex("abc", &o));
}

TEST_CASE("markdown from a box carries no markup") {
  CHECK(markdown_escape("<b>|`x`|[a](b)") == "&lt;b&gt;&#124;&#96;x&#96;&#124;\\[a\\](b)");
}
