// What a TLS connection shows of its peer, for the log: bounded, and in strings that may be shown.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h5i/json.hpp"
#include "plugins/websec-http/tls/certificate.hpp"

namespace h5i::websec {

enum class TlsFactId : uint8_t {
#define H5I_TLS_FACT(NAME, ID, MEANING) NAME,
#include "plugins/websec-http/tls/facts.def"
#undef H5I_TLS_FACT
};
std::string_view tls_fact_id(TlsFactId id);       // "tls-expired"
std::string_view tls_fact_meaning(TlsFactId id);  // one line
size_t tls_fact_kinds();

struct TlsPeer {
  std::string version;             // SSL_get_version(): "TLSv1.3"
  std::string cipher;              // SSL_get_cipher_name()
  std::string alpn;                // what the peer chose, raw; empty: nothing
  std::string verify;              // OpenSSL's word on the chain, "ok" or the text of its error; empty: it was not asked
  std::string name;                // the host that was meant: of the URL, not of a redirect or a proxy
  std::vector<std::string> chain;  // DER, in the order in which it came, the peer's own first
};

struct TlsFact {
  TlsFactId id;
  size_t at = 0;  // which certificate of the chain
};

struct TlsLimits {
  CertificateLimits certificate;
  size_t chain = 8;             // certificates that are looked at; a chain of more than four is rare
  size_t names_of_issuers = 2;  // their alternative names say nothing here
};

struct TlsReport {
  std::vector<Certificate> chain;  // at most TlsLimits::chain
  size_t chain_total = 0;
  std::vector<TlsFact> facts;      // each id once for a certificate
  bool has(TlsFactId id) const;
};
// `now`: seconds since 1970.
TlsReport read_tls(const TlsPeer& peer, int64_t now, const TlsLimits& limits = {});

// {"version", "cipher", "alpn", "verify", "name", "chain": [{"subject", "issuer", "names", "names_total", "not_before", "not_after", "key", "key_bits",
// "signature", "self_signed", "sha256"}], "chain_total", "facts": [{"id", "at"}]}; what is not known is left out. Less than 32 KiB.
json::Value tls_value(const TlsPeer& peer, const TlsReport& report);

}  // namespace h5i::websec
