#include "core/os/service_manager.hpp"

#include "tests/support/catch.hpp"

using namespace h5i;

namespace {

std::string u32(uint32_t v) {
  std::string out;
  for (int i = 0; i < 4; i++) out += static_cast<char>(v >> (8 * i));
  return out;
}

// An answer as the specification lays it out: fields of (code, signature, value), each aligned to 8.
std::string message(uint8_t type, const std::string& fields, const std::string& body = "") {
  std::string m = std::string("l") + static_cast<char>(type) + '\0' + '\1' + u32(static_cast<uint32_t>(body.size())) + u32(9) +
                  u32(static_cast<uint32_t>(fields.size())) + fields;
  while (m.size() % 8 != 0) m += '\0';
  return m + body;
}
const std::string kReplyTo2 = std::string("\5\1u\0", 4) + u32(2);
const std::string kErrorName = std::string("\4\1s\0", 4) + u32(3) + std::string("a.B\0", 4);

}  // namespace

TEST_CASE("a call to the bus is laid out as its specification says", "[os][bus]") {
  const std::string hello = os::hello_message(1);
  // Little endian, a call, version 1; no body, serial 1.
  CHECK(hello.substr(0, 12) == std::string("l\1\0\1", 4) + u32(0) + u32(1));
  CHECK(hello.size() % 8 == 0);
  CHECK(hello.find(std::string("\1\1o\0", 4) + u32(21) + "/org/freedesktop/DBus" + '\0') == 16);
  CHECK(hello.find("Hello") != std::string::npos);

  const std::string scope = os::start_scope_message(7, "h5i-ab.scope", {258, 3});
  const size_t body = scope.find(u32(12) + "h5i-ab.scope");
  REQUIRE(body != std::string::npos);
  CHECK(body % 8 == 0);
  CHECK(scope.substr(4, 4) == u32(static_cast<uint32_t>(scope.size() - body)));
  CHECK(scope.find(std::string("PIDs\0\2au\0", 9)) != std::string::npos);
  CHECK(scope.find(u32(8) + u32(258) + u32(3)) != std::string::npos);  // 8 bytes of numbers
  const size_t delegate = scope.find(std::string("Delegate\0\1b\0", 12));
  REQUIRE(delegate != std::string::npos);
  size_t value = (delegate + 12 + 3) / 4 * 4;
  CHECK(scope.substr(value, 4) == u32(1));
  CHECK(scope.substr(scope.size() - 4) == u32(0));  // no further units
  // It reads as a whole message.
  auto parsed = os::parse_bus_message(scope);
  REQUIRE(parsed);
  CHECK(parsed->size == scope.size());
  CHECK(parsed->type == 1);
}

TEST_CASE("an answer of the bus is read as far as it is there, and refused where it lies", "[os][bus]") {
  const std::string answer = message(os::kBusAnswer, kReplyTo2, "body");
  auto parsed = os::parse_bus_message(answer + "next");
  REQUIRE(parsed);
  CHECK(parsed->size == answer.size());
  CHECK(parsed->reply_to == 2);
  for (size_t i = 0; i < answer.size(); i++) {
    auto part = os::parse_bus_message(std::string_view(answer).substr(0, i));
    REQUIRE(part);
    CHECK(part->size == 0);
  }
  auto error = os::parse_bus_message(message(os::kBusError, kErrorName + std::string(4, '\0') + kReplyTo2));
  REQUIRE(error);
  CHECK(error->type == os::kBusError);
  CHECK(error->error_name == "a.B");
  CHECK(error->reply_to == 2);

  std::string endian = answer;
  endian[0] = 'B';
  CHECK_FALSE(os::parse_bus_message(endian));
  CHECK_FALSE(os::parse_bus_message(message(os::kBusAnswer, std::string("\4\1s\0", 4) + u32(0xffffffff) + std::string(8, '\0'))));
  CHECK_FALSE(os::parse_bus_message(message(os::kBusAnswer, std::string("\4\1s\0", 4) + u32(9) + "short")));
  CHECK_FALSE(os::parse_bus_message(message(os::kBusAnswer, std::string("\5\1x\0", 4) + u32(2))));
  CHECK_FALSE(os::parse_bus_message(message(os::kBusAnswer, std::string("\5\2uu\0", 5))));
  std::string huge = answer;
  huge.replace(4, 4, u32(0xfffffff0));
  CHECK_FALSE(os::parse_bus_message(huge));
}

TEST_CASE("a scope that cannot be had is refused with a reason", "[os][bus]") {
  auto refused = os::start_scope("not a unit name", {1});
  REQUIRE_FALSE(refused);
  CHECK_FALSE(refused.error().evidence.empty());
}
