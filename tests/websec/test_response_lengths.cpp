// Content-Length in all the spellings of the public vectors: 42 bytes behind the given lines, then the close.
#include "plugins/websec-http/http/response.hpp"

#include "tests/websec/vectors.hpp"

using namespace h5i;
using namespace h5i::websec;
using State = ResponseParser::State;

TEST_CASE("lengths of the public vectors are read as browsers read them, and strict mode takes only the canonical ones") {
  auto vectors = test::vector_json("http/content-lengths.json");
  if (!vectors) return;
  test::Tally read_on("http-content-lengths"), refused("http-content-lengths-strict");
  for (const json::Value& one : vectors->array()) {
    const std::string& lines = one["input"].string();
    std::string head = "HTTP/1.1 200 OK\r\n" + lines + "\r\n\r\n", name = json::canonical(one["input"]);
    StringSink body;
    ResponseRules rules;
    rules.strict = false;
    ResponseParser lenient(rules);
    lenient.feed(head + std::string(42, 'x'), body);
    lenient.end();
    bool done = lenient.state() == State::DONE;
    std::string got = done ? std::to_string(body.bytes.size()) : "null";
    read_on.count(name, got == json::canonical(one["output"]), got);

    bool canonical = lines == "Content-Length: 42" || lines == "Content-Length: 30";
    rules.strict = true;
    ResponseParser strict(rules);
    strict.feed(head + std::string(42, 'x'), body);
    bool kept = strict.state() == State::REFUSED && strict.raw_head() == head;
    refused.count(name, canonical ? strict.state() == State::DONE : kept, "state " + std::to_string(static_cast<int>(strict.state())));
  }
  read_on.finish(28);
  refused.finish(28);
}
