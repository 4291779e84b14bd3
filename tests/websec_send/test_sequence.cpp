// Requests in an order, and what is taken from one answer into the next.
#include "core/evidence/log.hpp"
#include "tests/support/schema.hpp"
#include "tests/websec_send/site.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

Json fits(const Ended& e) {
  CAPTURE(e.out, e.err);
  for (const std::string& error : schema_errors_of_text("websec-sequence", e.out)) FAIL_CHECK(error);
  auto v = json::parse(e.out);
  return v ? *v : Json();
}

std::string answer(const std::string& r) {
  if (r.starts_with("GET /form")) return "HTTP/1.1 200 very-secret-csrf\r\nX-Csrf-Token: very-secret-header\r\nContent-Length: 45\r\n\r\n<input name=csrf value=\"very-secret-csrf\"></i>";
  if (r.starts_with("POST /login")) return r.find("csrf=very-secret-csrf") != std::string::npos ? ok(R"({"user":{"id":42},"token":"very-secret-token"})") : "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n";
  return r.find("Bearer very-secret-token") != std::string::npos ? ok("mine") : "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n";
}

}  // namespace

TEST_CASE("what an answer gives is put where the next request wants it, and is a name everywhere else") {
  for (uid_t uid : people()) {
    CAPTURE(uid);
    Origin origin(answer);
    User user(uid);
    user.open("s", {origin.url("")}, {"--capture"});
    REQUIRE(user.run({"send", "s", origin.url("/login"), "--data", "csrf=old&user=a", "-H", "Content-Type: application/x-www-form-urlencoded"}).status == 0);
    const std::string n = std::to_string(user.records("s", "send")[0]["seq"].integer());
    auto plan = [&](const std::string& expect) {
      std::ofstream(user.home() + "/plan") << R"({"schema":"h5i.websec-sequence-plan/1","steps":[{"name":"form","request":{"url":")" + origin.url("/form") + R"x("},"expect":["status:200"],"take":[{"name":"csrf","regex":"value=\"([^\"]+)"},{"name":"h","header":"x-csrf-token"}]},)x" +
                                                  R"({"name":"login","replay":)" + n + R"(,"edits":["form.csrf={{csrf}}"],"expect":[")" + expect + R"("],"take":[{"name":"id","json":"$.user.id","secret":false},{"name":"token","json":"$.token"}]},)" +
                                                  R"({"request":{"url":")" + origin.url("/x") + R"("},"edits":["path=/user/{{id}}","header.Authorization=Bearer {{token}}"],"expect":["body~^mine$"]}]})";
      return user.home() + "/plan";
    };
    Ended e = user.run({"sequence", "s", "--plan", plan("status:200"), "--json"});
    Json doc = fits(e);
    CHECK(e.status == 0);
    CHECK(doc["complete"].boolean());
    auto arrived = origin.requests();
    REQUIRE(arrived.size() == 4);
    CHECK(arrived[2].find("csrf=very-secret-csrf&user=a") != std::string::npos);
    CHECK(arrived[3].starts_with("GET /user/42 HTTP/1.1\r\n"));
    CHECK(arrived[3].find("Authorization: Bearer very-secret-token\r\n") != std::string::npos);
    Ended people_read = user.run({"sequence", "s", "--plan", user.home() + "/plan"});
    CHECK(people_read.status == 0);
    CHECK((e.out + people_read.out).find("very-secret") == std::string::npos);
    CHECK(e.out.find("{{csrf}}") != std::string::npos);  // what the origin said back
    std::string lines;
    for (const char* kind : {"send", "sequence", "sequence-ended"})
      for (const Json& r : user.records("s", kind)) lines += json::canonical(r);
    CHECK(lines.find("very-secret") == std::string::npos);
    CHECK(user.records("s", "send")[2]["body"]["experiment"].string() == doc["name"].string());
    CHECK(evidence::verify_chain(user.log("s")));
    // What does not hold ends it: the third is not sent.
    Ended stopped = user.run({"sequence", "s", "--plan", plan("status:500"), "--json"});
    doc = fits(stopped);
    CHECK(stopped.status == 1);
    CHECK(doc["steps"].array()[1]["state"].string() == "failed");
    CHECK(doc["steps"].array()[2]["state"].string() == "not-run");
    CHECK(origin.requests().size() == 9);
  }
}

TEST_CASE("what is no sequence is refused before anything is sent, and so is a secret where it would be shown") {
  Origin origin(answer);
  User user(people().back());
  user.open("s", {origin.url("")}, {"--capture"});
  user.open("plain", {origin.url("")});
  const std::string request = R"("request":{"url":")" + origin.url("/form") + R"("})", take = R"("take":[{"name":"a","header":"X-A"}])";
  auto file = [&](const std::string& text) {
    std::ofstream(user.home() + "/plan") << text;
    return user.home() + "/plan";
  };
  for (const std::string& steps : {std::string(""), "{" + request + ",\"edits\":[\"query.x={{a}}\"]}", "{" + request + "," + take + "},{" + request + ",\"edits\":[\"query.x={{a}}\"]}", "{" + request + "," + take + "},{" + request + ",\"edits\":[\"path=/{{a}}\"]}",
                                   "{" + request + "," + take + "},{" + request + ",\"edits\":[\"header.X-Plain={{a}}\"]}", "{" + request + ",\"expect\":[\"nonsense\"]}", "{" + request + ",\"take\":[{\"name\":\"a\",\"regex\":\"nogroup\"}]}",
                                   "{" + request + ",\"take\":[{\"name\":\"a\",\"json\":\"x\"}]}", "{" + request + ",\"take\":[{\"name\":\"a\",\"json\":\"$.x\",\"header\":\"y\"}]}", "{" + request + ",\"replay\":1}", std::string("{}"), "{" + request + ",\"other\":1}",
                                   "{" + request + ",\"edits\":[\"body=@/etc/passwd\"]}"}) {
    Ended e = user.run({"sequence", "s", "--plan", file("{\"steps\":[" + steps + "]}")});
    CAPTURE(steps, e.out, e.err);
    CHECK(e.status == 64);
  }
  CHECK(user.run({"sequence", "s"}).status == 64);
  CHECK(user.run({"sequence", "s", "--plan", user.home() + "/none"}).status == 2);
  CHECK(user.run({"sequence", "s", "--plan", file("{\"steps\":[{\"replay\":999}]}")}).status == 2);
  Ended kept = user.run({"sequence", "plain", "--plan", file("{\"steps\":[{" + request + "}]}")});
  CHECK(kept.status == 2);
  CHECK(kept.err.find("--capture") != std::string::npos);
  CHECK(origin.connections() == 0);
  CHECK(user.run({"sequence", "s", "--plan", user.home() + "/plan"}).status == 0);  // the control
}
