#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "core/plugin/frame.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::plugin;

namespace {

std::string packet(FrameHeader h, std::string_view body = {}) {
  std::string p(reinterpret_cast<const char*>(&h), sizeof h);
  return p + std::string(body);
}

FrameHeader header(FrameType t, uint32_t length) {
  FrameHeader h;
  h.type = static_cast<uint16_t>(t);
  h.request = 1;
  h.length = length;
  return h;
}

int open_descriptors() {
  int n = 0;
  for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
  return n;
}

}  // namespace

TEST_CASE("a well-formed frame decodes, and the same frame with one field wrong does not") {
  FrameHeader good = header(FrameType::RESULT, 2);
  REQUIRE(decode_frame(packet(good, "{}"), 0));

  auto refused = [](FrameHeader h, std::string_view body, size_t fds) {
    auto r = decode_frame(packet(h, body), fds);
    return !r && r.error().code == Errc::PLUGIN_PROTOCOL && !r.error().evidence.empty();
  };
  FrameHeader h = good;
  h.magic++;
  CHECK(refused(h, "{}", 0));
  h = good, h.version = 2;
  CHECK(refused(h, "{}", 0));
  h = good, h.type = 99;
  CHECK(refused(h, "{}", 0));
  h = good, h.type = 0;
  CHECK(refused(h, "{}", 0));
  h = good, h.request = 0;
  CHECK(refused(h, "{}", 0));
  h = good, h.reserved = 1;
  CHECK(refused(h, "{}", 0));
  h = good, h.flags = 2;
  CHECK(refused(h, "{}", 0));
  h = good, h.length = 3;
  CHECK(refused(h, "{}", 0));
  h = good, h.length = 1;
  CHECK(refused(h, "{}", 0));
  h = good, h.length = 0xffffffffu;
  CHECK(refused(h, "{}", 0));
  CHECK(refused(good, "{}", 1));                                      // a descriptor where none belongs
  CHECK(refused(header(FrameType::LOAD, 2), "{}", 0));                // the library is missing
  CHECK(decode_frame(packet(header(FrameType::LOAD, 2), "{}"), 1));   // control
  h = header(FrameType::DOCUMENT, kMaxInline + 1), h.flags = FrameHeader::kBodyInMemfd;
  CHECK(decode_frame(packet(h), 1));                                  // control
  CHECK(refused(h, "", 0));
  CHECK(refused(h, "x", 1));
  h.length = kMaxDocument + 1;
  CHECK(refused(h, "", 1));
  h.length = 10;                                                      // small bodies have one spelling only
  CHECK(refused(h, "", 1));
  CHECK(!decode_frame("short", 0));
}

TEST_CASE("frames go through a socket pair, small and large, with and without a descriptor, and leak nothing") {
  int before = open_descriptors();
  {
    auto pair = frame_socketpair();
    REQUIRE(pair);
    UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    for (size_t size : {size_t{0}, size_t{1}, size_t{kMaxInline}, size_t{kMaxInline} + 1, size_t{3} << 20}) {
      std::string body(size, 'x');
      REQUIRE(send_frame(pair->first, FrameType::LOAD, 7, body, {&null}));
      auto f = receive_frame(pair->second);
      REQUIRE(f);
      CHECK(f->type == FrameType::LOAD);
      CHECK(f->request == 7);
      CHECK(f->body == body);
      REQUIRE(f->fds.size() == 1);
      CHECK((fcntl(f->fds[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
    }
    auto over = send_frame(pair->first, FrameType::DOCUMENT, 1, std::string(kMaxDocument + 1, 'x'));
    REQUIRE(!over);
    CHECK(over.error().code == Errc::TOO_LARGE);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("garbage and too many descriptors are refused, and the descriptors are closed") {
  int before = open_descriptors();
  {
    auto pair = frame_socketpair();
    REQUIRE(pair);
    REQUIRE(send(pair->first.get(), "garbage", 7, 0) == 7);
    auto f = receive_frame(pair->second);
    REQUIRE(!f);
    CHECK(f.error().code == Errc::PLUGIN_PROTOCOL);

    UniqueFd a(open("/dev/null", O_RDONLY | O_CLOEXEC)), b(open("/dev/null", O_RDONLY | O_CLOEXEC));
    REQUIRE(send_frame(pair->first, FrameType::RESULT, 1, "{}", {&a, &b}));
    f = receive_frame(pair->second);
    REQUIRE(!f);
    CHECK(f.error().code == Errc::PLUGIN_PROTOCOL);

    pair->first.reset();
    f = receive_frame(pair->second);
    REQUIRE(!f);
    CHECK(f.error().code == Errc::NOT_FOUND);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("a body whose memfd can still change is refused") {
  auto sealed = sealed_memfd("test", std::string(10, 'y'));
  REQUIRE(sealed);
  auto read = read_sealed(*sealed, 10);
  REQUIRE(read);
  CHECK(*read == std::string(10, 'y'));
  CHECK(!read_sealed(*sealed, 11));
  CHECK(!read_sealed(*sealed, 9));
  CHECK(write(sealed->get(), "z", 1) < 0);

  char name[] = "/tmp/h5i-frame-XXXXXX";
  UniqueFd file(mkostemp(name, O_CLOEXEC));
  unlink(name);
  REQUIRE(write(file.get(), "0123456789", 10) == 10);
  auto f = read_sealed(file, 10);
  REQUIRE(!f);
  CHECK(f.error().code == Errc::PLUGIN_PROTOCOL);
}
