// Any bytes as what a box says to the egress proxy: the head of a request, a TLS hello, a chunked body, and what follows a hello. What was
// read in one piece is read in two; what travels on is read again as the same request; and a name is only ever one that a rule could hold.
#include <string>

#include "core/broker/client_hello.hpp"
#include "core/broker/head.hpp"
#include "tests/fuzz/target.hpp"

namespace {

using namespace h5i::broker;
using h5i::test::want;

void head(std::string_view bytes) {
  HeadRead r = read_head(bytes);
  want(r.fault.empty() || r.used == 0);
  want(r.used <= bytes.size() && r.used <= kMaxHead);
  if (!r.used) return;
  for (size_t n : {size_t{1}, r.used / 2, r.used - 1}) {
    HeadRead part = read_head(bytes.substr(0, n));
    want(part.fault.empty() && part.used == 0);
  }
  want(r.head.target.port != 0 && r.head.target.name.empty() == r.head.target.address.has_value());
  auto again = parse_target(r.head.target.text());
  want(again && *again == r.head.target);
  if (r.head.connect) return;
  // What the origin gets has one request in it, of the same form and framing.
  std::string on = r.head.to_origin();
  want(on.find("\r\n\r\n") + 4 == on.size());
  std::string back = on;
  size_t space = back.find(' ');
  back.insert(space + 1, "http://" + r.head.target.text());
  HeadRead second = read_head(back);
  if (on.size() > kMaxHead - 400 || r.head.fields.size() + 2 > kMaxFields) return;  // what was added may be too much
  want(second.used == back.size());
  want(second.head.body == r.head.body && second.head.length == r.head.length && second.head.path == r.head.path && second.head.target == r.head.target);
}

void hello(std::string_view bytes) {
  HelloRead r = read_client_hello(bytes);
  want(r.used <= bytes.size() && r.used <= kMaxHello);
  if (!r.used) return;
  want(r.fault.empty());
  for (size_t n = 0; n < r.used; n += 1 + r.used / 16) {
    HelloRead part = read_client_hello(bytes.substr(0, n));
    want(part.fault.empty() && part.used == 0);
  }
  auto name = h5i::policy::canonical_host(r.name);
  want(name && *name == r.name);
}

void chunks(std::string_view bytes) {
  ChunkWatch whole, split;
  size_t all = whole.take(bytes), first = split.take(bytes.substr(0, bytes.size() / 3));
  want(all <= bytes.size());
  want(all == bytes.size() || whole.ended() || whole.broken());
  size_t rest = first == bytes.size() / 3 ? split.take(bytes.substr(first)) : 0;
  want(first + rest == all && split.ended() == whole.ended() && split.broken() == whole.broken());
}

// The first byte says how much of it is the server's.
void watch(std::string_view bytes) {
  if (bytes.empty()) return;
  size_t n = std::min(bytes.size() - 1, static_cast<size_t>(static_cast<uint8_t>(bytes[0])));
  std::string_view server = bytes.substr(1, n), client = bytes.substr(1 + n);
  HelloWatch one("a.example"), two("a.example");
  std::string_view fault_one, fault_two;
  one.server_says(server);
  for (size_t i = 0; i < server.size(); i++) two.server_says(server.substr(i, 1));
  size_t a = one.take(client, &fault_one);
  size_t half = two.take(client.substr(0, client.size() / 2), &fault_two), b = half;
  if (fault_two.empty()) b += two.take(client.substr(half), &fault_two);
  want(a <= client.size() && a == b && fault_one == fault_two);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  head(bytes);
  hello(bytes);
  chunks(bytes);
  watch(bytes);
  return 0;
}
