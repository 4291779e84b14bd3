// What a session may use up: where it ends, and that no number of an outcome makes room.
#include "plugins/websec-http/budget/budget.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {
json::Value outcome(int64_t sent, int64_t wire, int64_t body, int64_t us) {
  return json::Object{{"sent_bytes", sent}, {"wire_bytes", wire}, {"body_bytes", body}, {"times", json::Object{{"total_us", us}}}};
}
}  // namespace

TEST_CASE("a send uses what its outcome says", "[budget]") {
  CHECK(amounts_of(nullptr) == Amounts{1, 0, 0, 0});
  CHECK(amounts_of(outcome(10, 200, 150, 7)) == Amounts{1, 210, 150, 7});
  json::Value coded = outcome(10, 200, 150, 7);
  coded["decoded_bytes"] = 9000;
  CHECK(amounts_of(coded).decoded == 9000);
  json::Value socket = outcome(10, 200, 0, 7);
  socket["frames"] = json::Object{{"bytes", 31}, {"sent_bytes", 12}};
  CHECK(amounts_of(socket).wire == 253);
}

TEST_CASE("no outcome gives anything back", "[budget]") {
  Budget b(json::Object{{"wire_bytes", 100}}, {});
  REQUIRE(!b.take());
  b.add(outcome(0, 60, 0, 0));
  CHECK(b.left_wire() == 40);
  b.add(outcome(-50, -1'000'000, INT64_MIN, INT64_MIN));
  CHECK(b.left_wire() == 40);
  json::Value odd = outcome(0, 0, 0, 0);
  odd["wire_bytes"] = 1e300;
  b.add(odd);
  CHECK(b.left_wire() == 0);
  for (int i = 0; i < 1000; i++) b.add(outcome(INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX));
  CHECK(b.left_wire() == 0);
  CHECK(b.take());
}

TEST_CASE("each limit ends it, and says which", "[budget]") {
  struct Row {
    json::Value limits;
    Amounts before, at;
    const char* word;
  };
  const Row rows[] = {
      {json::Object{{"sends", 3}}, {2, 0, 0, 0}, {3, 0, 0, 0}, "3 of 3 sends"},
      {json::Object{{"wire_bytes", 1000}}, {9, 999, 0, 0}, {9, 1000, 0, 0}, "1000 of 1000 bytes on the wire"},
      {json::Object{{"decoded_bytes", 5}}, {9, 9, 4, 0}, {9, 9, 6, 0}, "6 of 5 decoded bytes"},
      {json::Object{{"time_s", 2}}, {9, 9, 9, 1'999'999}, {9, 9, 9, 2'000'000}, "2 of 2 seconds"},
  };
  for (const Row& r : rows) {
    INFO(r.word);
    CHECK(!Budget(r.limits, r.before).take());
    auto over = Budget(r.limits, r.at).take();
    REQUIRE(over);
    CHECK(over->find(r.word) != std::string::npos);
    CHECK(!Budget(json::Object{}, r.at).take());  // without a limit the same is no end
  }
}

TEST_CASE("a send counts when it begins", "[budget]") {
  Budget b(json::Object{{"sends", 2}}, {});
  CHECK(!b.take());
  CHECK(!b.take());
  CHECK(b.take());
  CHECK(b.take());
  CHECK(b.value()["sends"]["spent"].integer() == 2);
  CHECK(b.text() == "2 of 2 sends");
  CHECK(b.left_wire() == UINT64_MAX);
}

TEST_CASE("a limit that is none of ours is not taken for none", "[budget]") {
  CHECK(Budget(json::Object{{"sends", 0}}, {}).take());
  CHECK(Budget(json::Object{{"sends", -5}}, {}).take());
  CHECK(!Budget(json::Object{{"time_s", INT64_MAX}}, {5, 5, 5, UINT64_C(1) << 50}).take());
}
