// A peer's certificates: first byte which name was meant and how many certificates there are, each but the last behind two bytes of its length.
// Whatever they hold, what is told is bounded and may be shown, and OpenSSL is left without an error of ours.
#include <openssl/err.h>

#include <cstdlib>
#include <string>

#include "plugins/websec-http/text/show.hpp"
#include "plugins/websec-http/tls/facts.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i;
using namespace h5i::websec;
using namespace h5i::test;

namespace {

void safe(const json::Value& v) {
  if (v.is_string()) {
    Shown s = show(v.string(), {.cap = SIZE_MAX});
    want(s.escaped == 0 && s.text == v.string());
  }
  for (const json::Value& e : v.array()) safe(e);
  for (const auto& [k, e] : v.object()) safe(e);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  constexpr const char* kNames[] = {"a.test", "192.0.2.1", "x.b.test", "[2001:db8::1]"};
  TlsPeer peer;
  peer.name = kNames[data[0] & 3];
  std::string_view s(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (int more = data[0] >> 2 & 15; more > 0 && s.size() >= 2; more--) {
    size_t n = static_cast<uint8_t>(s[0]) << 8 | static_cast<uint8_t>(s[1]);
    peer.chain.emplace_back(s.substr(2, n));
    s.remove_prefix(std::min(s.size(), n + 2));
  }
  peer.chain.emplace_back(s);
  peer.alpn = std::string(s.substr(0, 40));
  TlsReport report = read_tls(peer, 1'800'000'000);
  json::Value v = tls_value(peer, report);
  safe(v);
  std::string text;
  json::write(text, v);
  want(text.size() < 32 * 1024);
  want(report.chain.size() <= 8 && report.chain_total == peer.chain.size() && report.facts.size() <= 8 * tls_fact_kinds());
  for (const TlsFact& f : report.facts) want(f.at < std::max<size_t>(report.chain.size(), 1));
  want(ERR_peek_error() == 0);
  // A name with a NUL is nobody's.
  if (!report.chain.empty()) want(!certificate_is_for(peer.chain[0], std::string("a.test\0", 7)));
  return 0;
}
