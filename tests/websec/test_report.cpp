// A report of findings: what an origin or a tester wrote is text in it.
#include <regex>
#include <set>

#include "plugins/websec-http/report/report.hpp"
#include "tests/support/catch.hpp"
#include "tests/websec/sequences.hpp"

using namespace h5i;
using namespace h5i::websec;
using namespace h5i::test;

namespace {

Report report_with(const std::string& origin, const std::string& tester) {
  Report r{"s", "01jd", "2026-01-02T03:04:05.678Z", "http 1.2.3", "allow http://x.test\n", std::string(32, 'a'), 40, std::string(64, 'b'), {}, {}};
  r.findings = {{20, "2026-01-02T03:04:05.678Z", tester, "low", tester + "\n" + tester, {3, 7}, {}},
                {21, "2026-01-02T03:04:05.678Z", "second", "high", "", {3}, {}},
                {22, "2026-01-02T03:04:05.678Z", tester, "medium", "", {7}, Withdrawal{23, "2026-01-02T03:04:06.000Z", tester}}};
  r.sends = {{3, "2026-01-02T03:04:05.678Z", origin, origin, origin, origin, origin, 200, std::string(64, '1'), std::string(64, '2'), std::string(64, '3'), std::string(64, '4'), origin, origin},
             {7, "2026-01-02T03:04:05.678Z", "GET", "http://x.test/" + origin, "127.0.0.1:80", "connect-failed", "", 0, "", "", "", "", std::nullopt, std::nullopt}};
  return r;
}

// What is left of Markdown without its blocks and spans of code, by CommonMark's rules: a block ends at a line of at least as many backticks alone,
// a span at the next run of just as many.
std::string outside_code(const std::string& text) {
  std::string out;
  size_t fence = 0;
  std::string prose;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    size_t run = line.find_first_not_of('`') == std::string::npos ? line.size() : line.find_first_not_of('`');
    if (fence > 0) {
      if (run >= fence && run == line.size()) fence = 0;
      continue;
    }
    if (run >= 3 && line.find('`', run) == std::string::npos) {
      fence = run;
      continue;
    }
    prose += line + "\n";
  }
  REQUIRE(fence == 0);
  for (size_t at = 0; at < prose.size();) {
    if (prose[at] == '\\' && at + 1 < prose.size()) {
      out += prose.substr(at, 2);
      at += 2;
      continue;
    }
    if (prose[at] != '`') {
      out += prose[at++];
      continue;
    }
    size_t run = std::min(prose.find_first_not_of('`', at), prose.size()) - at, close = at + run;
    for (;;) {
      close = prose.find('`', close);
      REQUIRE(close != std::string::npos);  // every span ends
      size_t other = std::min(prose.find_first_not_of('`', close), prose.size()) - close;
      if (other == run) break;
      close += other;
    }
    at = close + run;
    out += "CODE";
  }
  return out;
}

// Tags of an HTML document that are not ours, with what is in them.
std::vector<std::string> foreign_tags(const std::string& html) {
  static const std::set<std::string> kOurs = {"!doctype html", "html lang=\"en\"", "html", "head", "meta charset=\"utf-8\"", "meta name=\"referrer\" content=\"no-referrer\"", "title", "style", "body", "h1", "h2", "h3", "dl", "dt", "dd", "code", "pre", "p", "p class=\"note\"", "section", "ul", "li"};
  std::vector<std::string> out;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    size_t end = html.find('>', at);
    REQUIRE(end != std::string::npos);
    std::string tag = html.substr(at + 1, end - at - 1);
    if (tag.starts_with("/")) tag.erase(0, 1);
    if (kOurs.count(tag) == 0 && !tag.starts_with("meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-")) out.push_back(tag);
  }
  return out;
}

std::vector<Sequence> hostile() {
  std::vector<Sequence> out = hostile_sequences();
  for (const char* text : {"<img src=x onerror=alert(1)>", "</code></pre><script>alert(1)</script>", "\"><svg onload=x>", "' onmouseover='x", "&lt;b&gt;", "&#x3c;script&#x3e;", "javascript:alert(1)", "[x](javascript:alert(1))", "![x](http://other.test/p.png)",
                           "<http://other.test>", "http://other.test/ www.other.test a@other.test", "[a]: http://other.test", "`", "``", "``` `", "` `` ``` ```` `````", "\n```\n<script>x</script>\n```\n", "\n````````\n# h\n", "~~~\nx", "# heading", "- [ ] x", "1. x", "> x", "    code",
                           "***", "---", "===", "|a|b|\n|-|-|", "$x$", "\\", "\\`", "`\\", "<!-- x", "]]>", "<![CDATA[", "<?php", "{{x}}", "{% x %}", ":smile: @everyone #1 !1", "+ x", "\ttab", "\r\n\r\n<p>"})
    out.push_back({text, text});
  return out;
}

}  // namespace

TEST_CASE("nothing that an origin or a tester wrote comes alive in a report") {
  const std::string plain_md = outside_code(report_markdown(report_with("x", "x")));
  for (const Sequence& q : hostile()) {
    INFO(q.what);
    const Report r = report_with(q.bytes, q.bytes);
    const std::string md = report_markdown(r), html = report_html(r);
    CHECK(harm(md, true) == "");
    CHECK(harm(html, true) == "");
    CHECK(foreign_tags(html) == std::vector<std::string>{});
    for (const char* never : {" src=", " href=", "<a", "<img", "<script", "<svg", "<link", "<iframe"}) {
      std::string tags;
      for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) tags += html.substr(at, html.find('>', at) - at + 1);
      CHECK(tags.find(never) == std::string::npos);
    }
    // Of Markdown: outside of code no mark is left that is not ours. Escaped ones have no meaning.
    std::string rest = std::regex_replace(outside_code(md), std::regex(R"(\\[!-/:-@\[-`{-~])"), "E");
    for (const char* mark : {"`", "<", "*", "_", "[", "]", "!", "|", "~", "://", "$", "&", "@"}) {
      INFO(mark);
      CHECK(rest.find(mark) == std::string::npos);
    }
    // As many headings and points as without it.
    auto begins = [](const std::string& text, const char* with) {
      size_t n = text.starts_with(with);
      for (size_t at = text.find(std::string("\n") + with); at != std::string::npos; at = text.find(std::string("\n") + with, at + 1)) n++;
      return n;
    };
    for (const char* mark : {"# ", "## ", "### ", "- ", "    ", "\t", "+ ", "==", "--"}) CHECK(begins(outside_code(md), mark) == begins(plain_md, mark));
  }
}

TEST_CASE("a report names the log's head, how to verify it, the scope, and each send with its digests") {
  Report r = report_with("v", "t");
  for (const std::string& text : {report_markdown(r), report_html(r)}) {
    for (const std::string& part : {std::string(64, 'b'), std::string(32, 'a'), std::string(64, '1'), std::string(64, '4'), std::string("h5i log verify s"), std::string("head -n 40 log.jsonl"), std::string("http://x.test"), std::string("no answer (connect-failed)"), std::string("engine-claimed")})
      CHECK(text.find(part) != std::string::npos);
    CHECK(text.find("second") < text.find("Record 20"));  // high before low
    CHECK(text.find("record 22") > text.find("Withdrawn"));
  }
  r.findings.clear();
  CHECK(report_markdown(r).find("No finding.") != std::string::npos);
  CHECK(report_html(r).find("No finding.") != std::string::npos);
}

TEST_CASE("words keep their letters and a span its text") {
  CHECK(code_span("a`b") == "`` a`b ``");
  CHECK(code_span("```") == "```` ``` ````");
  CHECK(code_span("") == "(empty)");
  CHECK(code_span("a\nb") == "` a\\nb `");
  CHECK(markdown_words("  a_b c") == "a\\_b c");
  CHECK(markdown_words("gr\xc3\xbc\xc3\x9f") == "gr\xc3\xbc\xc3\x9f");
}
