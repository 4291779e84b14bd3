#include "core/broker/client_hello.hpp"
#include "tests/broker/hello.hpp"
#include "tests/support/catch.hpp"

using namespace h5i::broker;
using namespace h5i::test;

namespace {

std::string fault(const std::string& bytes) {
  HelloRead r = read_client_hello(bytes);
  if (!r.fault.empty()) return std::string(r.fault);
  return r.used ? "" : "more";
}
std::string with(const Extensions& e) { return record(hello_message(e)); }

}  // namespace

TEST_CASE("the server name of a hello is read, whole or in parts, in one record or in many", "[broker][hello]") {
  std::string hello = hello_for("A.Example.com");
  HelloRead r = read_client_hello(hello + "early data");
  CHECK(r.fault.empty());
  CHECK(r.used == hello.size());
  CHECK(r.name == "a.example.com");
  for (size_t n = 0; n < hello.size(); n++) CHECK(fault(hello.substr(0, n)) == "more");
  std::string message = hello_message({{0, name_extension("a.example.com")}}), cut;
  for (char c : message) cut += record(std::string_view(&c, 1));
  HelloRead in_many = read_client_hello(cut);
  CHECK(in_many.fault.empty());
  CHECK(in_many.used == cut.size());
  CHECK(in_many.name == "a.example.com");
}

TEST_CASE("a hello whose server name is not the one that counts is refused", "[broker][hello]") {
  auto name = name_extension("a.example");
  CHECK(fault(with({{0, name}})).empty());
  CHECK(fault(with({{10, "x"}, {0, name}, {16, "y"}})).empty());
  CHECK(fault(with({})) == "no-server-name");
  CHECK(fault(with({{10, "x"}})) == "no-server-name");
  CHECK(fault(with({{0, name}, {0, name_extension("b.example")}})) == "hello");
  CHECK(fault(with({{10, "x"}, {10, "y"}, {0, name}})) == "hello");
  CHECK(fault(with({{0, name}, {0xfe0d, "outer"}})) == "encrypted-hello");
  CHECK(fault(with({{0xffce, "x"}, {0, name}})) == "encrypted-hello");
  std::string one = std::string(1, '\0') + sized(2, "a.example"), other = std::string(1, '\0') + sized(2, "b.example");
  CHECK(fault(with({{0, sized(2, one + other)}})) == "server-name");
  CHECK(fault(with({{0, sized(2, "\1" + sized(2, "a.example"))}})) == "server-name");
  CHECK(fault(with({{0, sized(2, one) + "x"}})) == "hello");
  CHECK(fault(with({{0, ""}})) == "hello");
  for (const char* bad : {"", "a.example.", "10.0.0.1", "a example", "a.example:443", "*.example", "a_b.example", "127.1", "[::1]"}) {
    INFO(bad);
    CHECK(fault(with({{0, name_extension(bad)}})) == "server-name");
  }
  CHECK(fault(with({{0, name_extension(std::string("a.example\0.b", 12))}})) == "server-name");
}

TEST_CASE("what is no hello is refused at its first byte, and a hello is bounded", "[broker][hello]") {
  CHECK(fault("G") == "not-tls");
  CHECK(fault("\x80") == "not-tls");
  CHECK(fault("\x17\x03\x03") == "not-tls");
  CHECK(fault("\x16\x02") == "not-tls");
  CHECK(fault("\x16\x03\x05") == "not-tls");
  CHECK(fault(std::string("\x16\x03\x01\x00\x00", 5)) == "hello");
  CHECK(fault(record("\x02xxxx")) == "hello");
  std::string message = hello_message({{0, name_extension("a.example")}});
  CHECK(fault(record(message + "x")) == "hello");
  CHECK(fault(with({{0, name_extension("a.example")}, {21, std::string(kMaxHello, 'p')}})) == "too-long");
  CHECK(fault(with({{0, name_extension("a.example")}, {21, std::string(14'000, 'p')}})).empty());
  message[5] = '\x7f';
  CHECK(fault(record(message.substr(0, message.size() - 1) + message.back())).empty());  // an unknown version is the server's affair
  message[38] = 33;  // a session id longer than there is
  CHECK(fault(record(message)) == "hello");
}

TEST_CASE("a second hello that a server asked for has the name of the first", "[broker][hello]") {
  std::string_view fault;
  for (bool same : {true, false}) {
    HelloWatch w("a.example");
    std::string change = record("\1", 20), early = record("zero", 23), second = hello_for(same ? "a.example" : "evil.example");
    std::string all = early + change + second;
    // Before the server has said what it wants, no message of the handshake passes.
    CHECK(w.take(all, &fault) == early.size() + change.size());
    CHECK(w.take(second, &fault) == 0);
    w.server_says(record(std::string("\1\x70"), 21));
    std::string answer = server_hello(true);
    for (char c : answer) w.server_says(std::string_view(&c, 1));
    CHECK(w.take(second.substr(0, 20), &fault) == 0);
    CHECK(fault.empty());
    size_t n = w.take(second + "more", &fault);
    CHECK(n == (same ? second.size() + 4 : 0));
    CHECK(fault == (same ? "" : "server-name"));
  }
  fault = {};
  HelloWatch garbled("a.example");
  garbled.server_says(server_hello(true));
  CHECK(garbled.take(record("\x10xxxx"), &fault) == 0);
  CHECK(fault == "hello");
  fault = {};
  HelloWatch plain("a.example");
  plain.server_says(server_hello(false));
  CHECK(plain.take(record("\x10xxxx") + "anything", &fault) == 18);
  HelloWatch text("a.example");
  CHECK(text.take("GET / HTTP/1.1", &fault) == 0);
  CHECK(fault == "not-tls");
}
