// The jar against http-state, its dates against http-state's examples, and the suffix list against publicsuffix.org's tests.
#include <sstream>

#include "plugins/websec-http/cookie/cookie_date.hpp"
#include "plugins/websec-http/cookie/jar.hpp"
#include "tests/websec/vectors.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

constexpr int64_t kNewYear2018 = 1514764800;

std::string ascii(const std::string& domain) {
  auto host = parse_host(domain, true);
  return host ? host->text : "";
}

}  // namespace

TEST_CASE("the jar of http-state holds what it should", "[cookie][vectors]") {
  auto data = test::vector_json("cookies/http-state.json");
  if (!data) return;
  auto list = SuffixList::builtin();
  REQUIRE(list);
  test::Tally tally("http-state");
  for (const json::Value& c : data->array()) {
    std::string id = c["test"].string();
    auto origin = Url::parse("http://home.example.org:8888/cookie-parser?" + id);
    auto target = Url::parse(c["sent-to"].is_string() ? c["sent-to"].string() : "/cookie-parser-result?" + id, &*origin);
    REQUIRE(target);
    Jar jar;
    for (const json::Value& line : c["received"].array()) (void)jar.store(*origin, line.string(), {}, *list, kNewYear2018);
    std::string want, have = jar.select(*target, {}, *list, kNewYear2018 + 1).header;
    for (const json::Value& pair : c["sent"].array()) want += (want.empty() ? "" : "; ") + pair["name"].string() + "=" + pair["value"].string();
    tally.count(id, have == want, "sent " + have.substr(0, 80) + ", not " + want.substr(0, 80));
  }
  tally.finish(214);
}

TEST_CASE("the dates of http-state are read", "[cookie][vectors]") {
  auto data = test::vector_json("cookies/dates.json");
  if (!data) return;
  test::Tally tally("cookie-dates");
  for (const json::Value& c : data->array()) {
    auto date = parse_cookie_date(c["test"].string());
    std::string have = date ? imf_fixdate(*date) : "none", want = c["expected"].is_string() ? c["expected"].string() : "none";
    tally.count(c["test"].string(), have == want, have + ", not " + want);
  }
  tally.finish(15);
}

TEST_CASE("registrable domains are those of publicsuffix.org", "[cookie][vectors]") {
  auto text = test::vector_file("psl/tests.txt");
  if (!text) return;
  auto list = SuffixList::builtin();
  REQUIRE(list);
  test::Tally tally("public-suffix");
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string domain, want;
    if (line.starts_with("//") || !(words >> domain >> want)) continue;
    auto have = list->registrable_domain(domain == "null" ? "" : ascii(domain));
    tally.count(domain, have.value_or("null") == (want == "null" ? "null" : ascii(want)), have.value_or("null") + ", not " + want);
  }
  tally.finish(78);
}
