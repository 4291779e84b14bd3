// What a half in a box may say to the half on the host: packets, and facts of a send with its bytes. A message that is taken says again what it said; a send
// that is taken is to the scope, and its head asks for its URL, once.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "plugins/websec-http/engine/box.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i;
using namespace h5i::websec;
using namespace h5i::test;

namespace {

struct Pair {
  int ends[2];
  Pair() { want(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0); }
  ~Pair() {
    close(ends[0]);
    close(ends[1]);
  }
};

void about_a_send(const Message& m) {
  static const Scope scope = *Scope::parse("allow http://a.test\nallow https://192.0.2.1:8443\ndeny http://a.test/shut");
  Request asked;
  asked.method = "GET";
  SendOptions options;
  Intent i = intent_of(m.say);
  if (m.bytes.size() != 2) return;
  i.head = m.bytes[0];
  i.body = m.bytes[1];
  if (!not_as_asked(scope, options, asked, i).empty()) return;
  auto url = Url::parse(i.url);
  want(url.ok() && scope.decide(*url).allowed && !url->has_credentials());
  want(i.head.starts_with(i.method + " ") && i.head.find("\r\n\r\n") == i.head.size() - 4);
  const std::string target = url->path() + (url->query() ? "?" + *url->query() : "");
  want(i.head.starts_with(i.method + " " + target + " HTTP/1.") || i.head.starts_with(i.method + " " + i.url + " HTTP/1."));
  want(i.peer.ends_with(":" + std::to_string(*url->effective_port())));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Pair there, back;
  // Two bytes say how long a packet is.
  for (int packets = 0; size >= 2 && packets < 8; packets++) {
    const size_t n = std::min<size_t>(size_t{data[0]} | size_t{data[1]} << 8, size - 2);
    if (n > 0) (void)!send(there.ends[0], data + 2, n, MSG_NOSIGNAL);
    data += 2 + n;
    size -= 2 + n;
  }
  Channel from(there.ends[1]), to(back.ends[0]), again(back.ends[1]);
  std::string broken;
  while (auto m = from.receive(&broken)) {
    want(broken.empty());
    want(to.send(*m));
    auto same = again.receive(&broken);
    want(same && json::canonical(same->say) == json::canonical(m->say) && same->bytes == m->bytes);
    about_a_send(*m);
  }
  return 0;
}
