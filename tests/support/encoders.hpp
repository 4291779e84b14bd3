// Content codings as a server makes them.
#pragma once
#include <brotli/encode.h>
#include <zlib.h>

#include <string>

#include "tests/support/catch.hpp"

namespace h5i::test {

// window: 15 for zlib's wrapping, -15 for none, 31 for gzip.
inline std::string deflated(const std::string& s, int window) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&z, s.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(s.data()));
  z.avail_in = static_cast<uInt>(s.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}
inline std::string gzip(const std::string& s) { return deflated(s, 31); }
inline std::string brotli(const std::string& s) {
  std::string out(BrotliEncoderMaxCompressedSize(s.size()) + 64, '\0');
  size_t n = out.size();
  REQUIRE(BrotliEncoderCompress(5, 22, BROTLI_MODE_GENERIC, s.size(), reinterpret_cast<const uint8_t*>(s.data()), &n, reinterpret_cast<uint8_t*>(out.data())));
  out.resize(n);
  return out;
}

}  // namespace h5i::test
