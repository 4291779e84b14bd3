#include "plugins/websec-http/decode/decode.hpp"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <chrono>
#include <fstream>

#include "plugins/websec-http/http/response.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/encoders.hpp"

using namespace h5i::websec;
using namespace h5i::test;

namespace {

std::string zstd(const std::string& s, int window = 0) {
  ZSTD_CCtx* c = ZSTD_createCCtx();
  if (window) ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window);
  ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0);
  ZSTD_outBuffer out{};
  std::string bytes(ZSTD_compressBound(s.size()) + 64, '\0');
  out.dst = bytes.data();
  out.size = bytes.size();
  ZSTD_inBuffer in{s.data(), s.size(), 0};
  REQUIRE(ZSTD_compressStream2(c, &out, &in, ZSTD_e_end) == 0);
  ZSTD_freeCCtx(c);
  bytes.resize(out.pos);
  return bytes;
}

struct Decoded {
  std::string bytes, facts;
  bool whole = false, stopped = false;
  bool operator==(const Decoded&) const = default;
};
Decoded decode(const std::string& encoded, const std::vector<std::string>& codings, DecodeLimits limits = {}, size_t step = SIZE_MAX) {
  StringSink sink;
  BodyDecoder d(codings, limits, sink);
  for (size_t at = 0; at < encoded.size() && !d.stopped(); at += std::min(step, encoded.size() - at)) d.take(std::string_view(encoded).substr(at, step));
  Decoded out;
  out.whole = d.finish();
  out.stopped = d.stopped();
  CHECK(d.decoded() == sink.bytes.size());
  out.bytes = std::move(sink.bytes);
  for (const DecodeFact& f : d.facts()) out.facts += (out.facts.empty() ? "" : " ") + std::string(f.id) + ":" + f.coding;
  return out;
}
Decoded in_any_steps(const std::string& encoded, const std::vector<std::string>& codings) {
  Decoded all = decode(encoded, codings);
  for (size_t step : {size_t(1), size_t(2), size_t(3), size_t(100)}) CHECK((decode(encoded, codings, {}, step) == all));
  return all;
}

std::string text() {
  std::string s;
  for (int i = 0; i < 3000; i++) s += "line " + std::to_string(i * i) + "\n";
  return s;
}
size_t resident() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * static_cast<size_t>(getpagesize());
}
// Keeps nothing, as whoever faces a bomb does, and looks at the memory while it is decoded.
struct Watcher : BodySink {
  uint64_t n = 0, looked = 0;
  size_t peak = 0;
  bool take(std::string_view b) override {
    n += b.size();
    if (n - looked > (1u << 20)) {
      looked = n;
      peak = std::max(peak, resident());
    }
    return true;
  }
};

}  // namespace

TEST_CASE("each coding and lists of them, for any split of the bytes") {
  std::string s = text();
  struct Case {
    std::string encoded;
    std::vector<std::string> codings;
  };
  for (const Case& c : {Case{gzip(s), {"gzip"}}, Case{gzip(s), {"X-GZIP"}}, Case{deflated(s, 15), {"deflate"}}, Case{brotli(s), {"br"}}, Case{zstd(s), {"zstd"}},
                        Case{gzip(gzip(s)), {"gzip", "gzip"}}, Case{brotli(gzip(s)), {"gzip", "br"}}, Case{zstd(brotli(deflated(s, 15))), {"deflate", "br", "zstd"}}, Case{s, {}}}) {
    Decoded d = in_any_steps(c.encoded, c.codings);
    INFO((c.codings.empty() ? "none" : c.codings[0]));
    CHECK(d.bytes == s);
    CHECK(d.whole);
    CHECK(d.facts == "");
  }
  for (std::string empty : {gzip(""), deflated("", 15), brotli(""), zstd("")}) CHECK(!empty.empty());
  CHECK(decode(gzip(""), {"gzip"}).whole);
  CHECK(decode(zstd(""), {"zstd"}).whole);
  CHECK(decode(brotli(""), {"br"}).whole);
}

TEST_CASE("deflate without its wrapping is read, and said") {
  Decoded d = in_any_steps(deflated(text(), -15), {"deflate"});
  CHECK(d.bytes == text());
  CHECK(d.facts == "deflate-raw:deflate");
  CHECK(in_any_steps(deflated("x", -15), {"deflate"}).bytes == "x");
}

TEST_CASE("members, frames and bytes behind the end") {
  Decoded d = in_any_steps(gzip("one") + gzip("two"), {"gzip"});
  CHECK(d.bytes == "onetwo");
  CHECK(d.facts == "gzip-members:gzip");
  CHECK(in_any_steps(zstd("one") + zstd("two"), {"zstd"}).bytes == "onetwo");
  struct Case {
    std::string encoded, coding;
  };
  for (const Case& c : {Case{gzip("one") + "junk", "gzip"}, Case{gzip("one") + "\x1f" "junk", "gzip"}, Case{deflated("one", 15) + "junk", "deflate"},
                        Case{deflated("one", -15) + "junk", "deflate"}, Case{brotli("one") + "junk", "br"}, Case{zstd("one") + "junk and more", "zstd"}}) {
    Decoded j = in_any_steps(c.encoded, {c.coding});
    INFO(c.coding);
    CHECK(j.bytes == "one");
    CHECK(j.facts.find("bytes-after-coding:" + c.coding) != std::string::npos);
    CHECK_FALSE(j.stopped);
  }
}

TEST_CASE("a body that is cut or is not what its header says") {
  std::string s = text();
  struct Case {
    std::string encoded, coding;
  };
  for (const Case& c : {Case{gzip(s), "gzip"}, Case{deflated(s, 15), "deflate"}, Case{brotli(s), "br"}, Case{zstd(s), "zstd"}}) {
    INFO(c.coding);
    Decoded cut = decode(c.encoded.substr(0, c.encoded.size() / 2), {c.coding});
    CHECK(cut.facts == "coding-cut:" + c.coding);
    CHECK_FALSE(cut.whole);
    CHECK(s.starts_with(cut.bytes));
    Decoded wrong = decode("<!doctype html><p>plain", {c.coding});
    CHECK(wrong.facts.find("coding-error:" + c.coding) != std::string::npos);
    CHECK(wrong.stopped);
    CHECK(decode("", {c.coding}).whole);  // HEAD, 304
    CHECK(decode("", {c.coding}).facts == "");
  }
  std::string damaged = gzip(s);
  damaged[damaged.size() - 6] ^= 1;  // its checksum
  CHECK(decode(damaged, {"gzip"}).facts == "coding-error:gzip");
}

TEST_CASE("a coding that nobody knows is named, and what lies above it comes off") {
  Decoded d = decode(gzip("rest"), {"gzip", "sdch", "gzip"});
  CHECK(d.bytes == "rest");
  CHECK(d.facts == "coding-unknown:sdch");
  StringSink sink;
  BodyDecoder left({"gzip", "sdch", "gzip"}, {}, sink);
  CHECK(left.left_on() == std::vector<std::string>{"gzip", "sdch"});
  CHECK(decode("as it is", {"compress"}).bytes == "as it is");
  CHECK(decode("as it is", {"compress"}).facts == "coding-unknown:compress");
}

TEST_CASE("more codings than anybody means are left on") {
  std::string s = "x";
  for (int i = 0; i < 6; i++) s = gzip(s);
  Decoded d = decode(s, std::vector<std::string>(6, "gzip"));
  CHECK(d.bytes == s);
  CHECK(d.facts == "too-many-codings:gzip");
  CHECK(decode(s, std::vector<std::string>(5, "gzip")).bytes == gzip("x"));
}

TEST_CASE("the output cap holds to the byte, and what lies at it passes") {
  std::string s = text();
  DecodeLimits limits;
  limits.output = s.size();
  for (auto [encoded, coding] : {std::pair{gzip(s), "gzip"}, std::pair{brotli(s), "br"}, std::pair{zstd(s), "zstd"}, std::pair{deflated(s, 15), "deflate"}}) {
    limits.output = s.size();
    CHECK(decode(encoded, {coding}, limits).facts == "");
    limits.output = s.size() - 1;
    Decoded d = decode(encoded, {coding}, limits);
    CHECK(d.facts == std::string("decoded-too-large:") + coding);
    CHECK(d.bytes.size() == s.size() - 1);
    CHECK(d.stopped);
  }
}

TEST_CASE("bombs stop at a cap, soon and in little memory") {
  std::string zeros(size_t(96) << 20, '\0');
  struct Bomb {
    std::string name, encoded;
    std::vector<std::string> codings;
  };
  std::vector<Bomb> bombs;
  bombs.push_back({"gzip", gzip(zeros), {"gzip"}});
  bombs.push_back({"deflate", deflated(zeros, 15), {"deflate"}});
  bombs.push_back({"brotli", brotli(zeros), {"br"}});
  bombs.push_back({"zstd", zstd(zeros), {"zstd"}});
  bombs.push_back({"double gzip", gzip(bombs[0].encoded), {"gzip", "gzip"}});
  bombs.push_back({"gzip in brotli", brotli(bombs[0].encoded), {"gzip", "br"}});
  std::string().swap(zeros);
  for (const Bomb& b : bombs) {
    INFO(b.name << ", " << b.encoded.size() << " bytes");
    CHECK(b.encoded.size() < 400000);
    for (bool by_ratio : {true, false}) {
      DecodeLimits limits;
      if (!by_ratio) limits.ratio = UINT64_MAX;
      Watcher counter;
      size_t before = resident();
      BodyDecoder d(b.codings, limits, counter);
      auto start = std::chrono::steady_clock::now();
      for (size_t at = 0; at < b.encoded.size() && !d.stopped(); at += 1000) d.take(std::string_view(b.encoded).substr(at, 1000));
      double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      CHECK(d.stopped());
      REQUIRE(d.facts().size() == 1);
      CHECK(d.facts()[0].id == (by_ratio ? "decoded-ratio" : "decoded-too-large"));
      CHECK(counter.n <= limits.output);
      CHECK(seconds < 10);
      CHECK(counter.peak > 0);
      CHECK(counter.peak < before + (size_t(24) << 20));
    }
  }
}

TEST_CASE("a page that compresses well is no bomb") {
  std::string page(size_t(3) << 20, ' ');
  CHECK(decode(gzip(page), {"gzip"}).bytes.size() == page.size());
  CHECK(decode(brotli(page), {"br"}).facts == "");
}

TEST_CASE("a zstd window beyond what a content coding may have is refused") {
  std::string s;
  uint32_t x = 1;
  for (size_t i = 0; i < (size_t(9) << 20); i++) s += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  CHECK(decode(zstd(s, 27), {"zstd"}).facts == "coding-error:zstd");
  CHECK(decode(zstd(s, 23), {"zstd"}).bytes == s);
}

TEST_CASE("a sink that wants no more stops the decoding, with codings and without") {
  struct Full : BodySink {
    bool take(std::string_view) override { return false; }
  } full;
  for (const std::vector<std::string>& codings : {std::vector<std::string>{}, std::vector<std::string>{"gzip"}}) {
    BodyDecoder d(codings, {}, full);
    CHECK_FALSE(d.take(codings.empty() ? "x" : gzip("x")));
    CHECK(d.stopped());
    CHECK_FALSE(d.take("x"));
    CHECK_FALSE(d.finish());
    CHECK(d.facts().empty());
  }
}

TEST_CASE("the codings of a response are those of its headers, in order") {
  ResponseParser p({});
  StringSink sink;
  p.feed("HTTP/1.1 200 OK\r\nContent-Encoding: gzip,, identity\r\ncontent-encoding: BR\r\nContent-Length: 0\r\n\r\n", sink);
  REQUIRE(p.has_head());
  CHECK(content_codings(p.head().fields) == std::vector<std::string>{"gzip", "BR"});
}
