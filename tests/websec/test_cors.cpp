#include "plugins/websec-http/cors/cors.hpp"

#include "tests/websec/vectors.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

struct Ask {
  Url url = *Url::parse("https://api.test/x");
  DocumentRequest request;
  Ask(std::string_view method, Fields fields, bool credentials = false, const char* document = "https://app.test/") {
    request = {Url::parse(document)->origin(), &url, method, std::move(fields), credentials};
  }
  Ask(const Ask&) = delete;
};

const Field kOurs{"Access-Control-Allow-Origin", "https://app.test"}, kAll{"access-control-allow-origin", "*"},
    kWithCredentials{"Access-Control-Allow-Credentials", "true"};

}  // namespace

TEST_CASE("fields of web-platform-tests need a preflight", "[cors][vectors]") {
  auto data = test::vector_json("cors/not-cors-safelisted.json");
  if (!data) return;
  test::Tally tally("not-cors-safelisted");
  size_t number = 0;
  for (const json::Value& c : data->array()) {
    const std::string &name = c.array().at(0).string(), &value = c.array().at(1).string();
    Ask ask("GET", {{name, value}});
    tally.count(std::to_string(++number), plan_cors(ask.request).kind == CorsPlan::Kind::PREFLIGHT, name + " needs none");
  }
  tally.finish(12);
}

TEST_CASE("a field that every form could send needs no preflight, and its neighbours do", "[cors]") {
  const std::string long_value(129, 'a'), fits(128, 'a'), long_type = "text/plain; a=" + std::string(115, '0');
  for (const Field& safe : Fields{{"Accept", "*/*"},
                                  {"ACCEPT", "text/html;q=0.5\t"},
                                  {"Accept-Language", "de, en;q=0.5"},
                                  {"Content-Language", "de"},
                                  {"Content-Type", "text/plain"},
                                  {"Content-Type", " Text/Plain ; charset=utf-8"},
                                  {"content-type", "multipart/form-data; boundary=x"},
                                  {"content-type", "application/x-www-form-urlencoded"},
                                  {"Range", "bytes=0-"},
                                  {"Range", "bytes=5-5"},
                                  {"Range", "bytes=09-10"},
                                  {"Accept", fits},
                                  {"Content-Type", std::string_view(long_type).substr(0, 128)}}) {
    INFO(safe.name << ": " << safe.value);
    CHECK(is_safelisted_field(safe));
  }
  for (const Field& unsafe : Fields{{"Accept", "a\x01"},
                                    {"Accept", "a{"},
                                    {"Accept", long_value},
                                    {"Accept-Language", "de_DE"},
                                    {"Content-Language", "de\xc3\xa4"},
                                    {"Content-Type", "application/json"},
                                    {"Content-Type", "text/plain, application/json"},
                                    {"Content-Type", "text/plain; a=\"b\""},
                                    {"Content-Type", ""},
                                    {"Content-Type", "text"},
                                    {"Content-Type", "text/html"},
                                    {"Content-Type", long_type},
                                    {"Range", "bytes=-5"},
                                    {"Range", "bytes=5-4"},
                                    {"Range", "bytes=10-9"},
                                    {"Range", "bytes=0-1,3-4"},
                                    {"Range", "bytes = 0-"},
                                    {"Range", "bytes=0-x"},
                                    {"Range", "lines=0-"},
                                    {"Authorization", "x"},
                                    {"X-A", ""},
                                    {"Accept-Charset", "x"}}) {
    INFO(unsafe.name << ": " << unsafe.value);
    CHECK(!is_safelisted_field(unsafe));
  }
  CHECK(unsafe_names({{"X-B", "1"}, {"Accept", "x"}, {"x-a", "1"}, {"X-b", "2"}}) == std::vector<std::string>{"x-a", "x-b"});
  CHECK(unsafe_names(Fields(8, {"Accept", fits})).empty());
  CHECK(unsafe_names(Fields(9, {"Accept", fits})) == std::vector<std::string>{"accept"});
}

TEST_CASE("a request to another origin is simple, or asks first and says why", "[cors]") {
  Ask own("PUT", {{"X-A", "1"}}, true, "https://api.test:443/");
  CHECK(plan_cors(own.request).kind == CorsPlan::Kind::SAME_ORIGIN);
  CHECK(check_response(own.request, {}).allowed);
  for (const char* other : {"http://api.test/", "https://api.test:8443/", "https://app.test/", "data:,x"}) {
    Ask simple("POST", {{"Content-Type", "text/plain"}}, false, other);
    CHECK(plan_cors(simple.request).kind == CorsPlan::Kind::SIMPLE);
  }
  Ask ask("PUT", {{"X-B", "1"}, {"Accept", "*/*"}, {"Content-Type", "application/json"}});
  CorsPlan plan = plan_cors(ask.request);
  CHECK(plan.kind == CorsPlan::Kind::PREFLIGHT);
  CHECK(plan.origin == "https://app.test");
  CHECK(plan.because == std::vector<std::string>{"method PUT", "field content-type", "field x-b"});
  CHECK(plan.request_method == "PUT");
  CHECK(plan.request_headers == "content-type,x-b");
  Ask opaque("GET", {}, false, "data:,x");
  CHECK(plan_cors(opaque.request).origin == "null");
  for (const char* method : {"get", "DELETE", "PATCH", "OPTIONS", ""}) CHECK(!is_safelisted_method(method));
}

TEST_CASE("a response is read by the origin that it names, and with credentials only when it says so", "[cors]") {
  Ask plain("GET", {}), with("GET", {}, true);
  CHECK(check_response(plain.request, {kAll}).allowed);
  CHECK(check_response(plain.request, {kOurs}).allowed);
  CHECK(check_response(with.request, {kOurs, kWithCredentials}).allowed);
  CHECK(check_response(with.request, {kAll, kWithCredentials}).why.find("*") != std::string::npos);
  CHECK(!check_response(with.request, {kAll, kWithCredentials}).allowed);
  CHECK(!check_response(with.request, {kOurs}).allowed);
  CHECK(!check_response(with.request, {kOurs, {"Access-Control-Allow-Credentials", "True"}}).allowed);
  for (const Fields& bad : {Fields{},
                            {{"Access-Control-Allow-Origin", ""}},
                            {{"Access-Control-Allow-Origin", "https://app.test/"}},
                            {{"Access-Control-Allow-Origin", "http://app.test"}},
                            {{"Access-Control-Allow-Origin", "https://APP.test"}},
                            {{"Access-Control-Allow-Origin", "null"}},
                            {{"Access-Control-Allow-Origin", "https://app.test, https://b.test"}},
                            {kOurs, kOurs},
                            {kAll, kAll},
                            {{"Access-Control-Allow-Origin", "https://app.test.evil.test"}},
                            {{"Access-Control-Allow-Origin", "*.test"}}}) {
    CHECK(!check_response(plain.request, bad).allowed);
    CHECK(!check_response(with.request, bad).allowed);
  }
  Ask opaque("GET", {}, false, "data:,x");
  CHECK(check_response(opaque.request, {{"Access-Control-Allow-Origin", "null"}}).allowed);
}

TEST_CASE("a preflight allows what it lists, and * is everything but Authorization and nothing with credentials", "[cors]") {
  Ask put("PUT", {{"X-A", "1"}}), authorized("PUT", {{"Authorization", "x"}}), with("PUT", {{"X-A", "1"}}, true), post("POST", {{"X-A", "1"}});
  const Field methods{"Access-Control-Allow-Methods", "GET , PUT"}, names{"Access-Control-Allow-Headers", "x-b, X-A"},
      any_method{"Access-Control-Allow-Methods", "*"}, any_name{"Access-Control-Allow-Headers", "*"},
      authorization{"Access-Control-Allow-Headers", "authorization"};
  CHECK(check_preflight(put.request, 204, {kOurs, methods, names}).allowed);
  CHECK(check_preflight(put.request, 200, {kAll, any_method, any_name}).allowed);
  CHECK(check_preflight(post.request, 200, {kAll, names}).allowed);
  CHECK(!check_preflight(put.request, 200, {methods, names}).allowed);
  CHECK(!check_preflight(put.request, 200, {kOurs, names}).allowed);
  CHECK(!check_preflight(put.request, 200, {kOurs, methods}).allowed);
  CHECK(!check_preflight(put.request, 200, {kOurs, {"Access-Control-Allow-Methods", "put"}, names}).allowed);
  CHECK(!check_preflight(put.request, 200, {kOurs, {"Access-Control-Allow-Methods", "PUT /"}, names}).allowed);
  CHECK(!check_preflight(put.request, 200, {kOurs, methods, {"Access-Control-Allow-Headers", "x-a x-b"}}).allowed);
  for (int status : {0, 199, 300, 301, 404, 500}) CHECK(!check_preflight(put.request, status, {kOurs, methods, names}).allowed);
  CHECK(check_preflight(authorized.request, 200, {kOurs, methods, any_name}).why == "Access-Control-Allow-Headers is without authorization");
  CHECK(check_preflight(authorized.request, 200, {kOurs, methods, any_name, authorization}).allowed);
  CHECK(check_preflight(with.request, 200, {kOurs, kWithCredentials, methods, names}).allowed);
  CHECK(!check_preflight(with.request, 200, {kOurs, kWithCredentials, any_method, names}).allowed);
  CHECK(!check_preflight(with.request, 200, {kOurs, kWithCredentials, methods, any_name}).allowed);
  CHECK(!check_preflight(with.request, 200, {kOurs, methods, names}).allowed);
  CHECK(preflight_lifetime({}) == 5);
  CHECK(preflight_lifetime({{"Access-Control-Max-Age", "600"}}) == 600);
  CHECK(preflight_lifetime({{"Access-Control-Max-Age", "99999999999999999999"}}) == 7200);
  for (const char* bad : {"", "-1", "1.5", "1, 2"}) CHECK(preflight_lifetime({{"Access-Control-Max-Age", bad}}) == 5);
}
