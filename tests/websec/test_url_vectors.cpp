// The URL parser against urltestdata.json, toascii.json and percent-encoding.json of web-platform-tests.
#include "plugins/websec-http/url/charset.hpp"
#include "plugins/websec-http/url/url.hpp"
#include "tests/websec/vectors.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

std::string difference(const json::Value& want, const Url& url) {
  const std::pair<const char*, std::string> parts[] = {
      {"href", url.href()},         {"protocol", url.protocol()}, {"username", url.username()}, {"password", url.password()},
      {"host", url.host_and_port()}, {"hostname", url.hostname()}, {"port", url.port_text()},    {"pathname", url.path()},
      {"search", url.search()},     {"hash", url.hash()},         {"origin", url.origin().text()}};
  for (const auto& [name, have] : parts)
    if (want[name].is_string() && want[name].string() != have) return std::string(name) + " is " + have + ", not " + want[name].string();
  return "";
}

}  // namespace

TEST_CASE("URLs of web-platform-tests are read as browsers read them, and none that must fail is accepted", "[url][vectors]") {
  auto data = test::vector_json("url/urltestdata.json");
  if (!data) return;
  test::Tally tally("urltestdata");
  size_t number = 0, accepted = 0;
  for (const json::Value& c : data->array()) {
    if (!c.is_object()) continue;
    std::string id = std::to_string(++number);
    std::optional<Url> base;
    if (c["base"].is_string()) {
      auto parsed = Url::parse(c["base"].string());
      if (parsed) base = *parsed;
      else if (!c["failure"].boolean()) {
        tally.count(id, false, "the base " + c["base"].string() + " was refused");
        continue;
      }
    }
    auto url = Url::parse(c["input"].string(), base ? &*base : nullptr);
    std::string wrong;
    if (c["failure"].boolean()) {
      if (url) wrong = "accepted as " + url->href(), accepted++;
    } else if (!url) {
      wrong = url.error().text;
    } else {
      wrong = difference(c, *url);
      auto again = Url::parse(url->href());
      if (wrong.empty() && (!again || again->href() != url->href())) wrong = "another URL when it is read again";
    }
    tally.count(id, wrong.empty(), c["input"].string() + ": " + wrong);
  }
  CHECK(accepted == 0);
  tally.finish(880);
}

TEST_CASE("domains of web-platform-tests become the same ASCII", "[url][vectors]") {
  auto data = test::vector_json("url/toascii.json");
  if (!data) return;
  test::Tally tally("toascii");
  size_t number = 0;
  for (const json::Value& c : data->array()) {
    if (!c.is_object()) continue;
    auto host = parse_host(c["input"].string(), true);
    bool same = c["output"].is_string() ? host && host->text == c["output"].string() : !host;
    tally.count(std::to_string(++number), same, c["input"].string() + ": " + (host ? host->text : host.error().text) + ", not " + c["output"].string());
  }
  tally.finish(85);
}

TEST_CASE("text is percent-encoded in the encodings of a document as web-platform-tests say", "[url][vectors]") {
  auto data = test::vector_json("url/percent-encoding.json");
  if (!data) return;
  test::Tally tally("percent-encoding");
  size_t number = 0;
  for (const json::Value& c : data->array()) {
    if (!c.is_object()) continue;
    std::string wrong;
    for (const auto& [charset, want] : c["output"].object()) {
      auto have = percent_encode_in(charset, c["input"].string(), EncodeSet::SPECIAL_QUERY);
      if (!have || *have != want.string()) wrong += charset + " gives " + have.value_or("nothing") + ", not " + want.string() + "; ";
    }
    tally.count(std::to_string(++number), wrong.empty(), wrong);
  }
  tally.finish(7);
}
