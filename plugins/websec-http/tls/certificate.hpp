// One certificate (RFC 5280) as values that may be shown. Read by OpenSSL; an error of it stays here.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace h5i::websec {

struct CertificateLimits {
  size_t bytes = 64 * 1024;  // of one certificate in DER; OpenSSL itself takes a whole chain of 100 KiB
  size_t names = 32;         // alternative names that are listed
  size_t subject = 300;      // bytes of a subject or an issuer, shown
  size_t parts = 16;         // of a subject or an issuer
};

// All strings went through text/show.
struct Certificate {
  bool readable = false;
  size_t bytes = 0;
  size_t trailing = 0;        // bytes behind it, which are in no digest
  std::string sha256;         // of its DER, in hexadecimal; of everything when it is not readable
  std::string subject, issuer;                    // "CN=a.test, O=Example"
  std::vector<std::string> names;                 // "dns:a.test", "ip:192.0.2.1", "uri:...", "email:...", "other"
  size_t names_total = 0;
  bool names_unreadable = false;
  bool name_bytes = false;                        // see tls-name-bytes
  std::optional<int64_t> not_before, not_after;   // seconds since 1970
  std::string key;                                // "RSA", "EC P-256", "ED25519"; empty: not understood
  int key_bits = 0;
  bool weak_key = false;
  std::string signature;                          // "sha256WithRSAEncryption"
  bool weak_signature = false;
  bool self_issued = false;                       // subject and issuer are the same name
  bool self_signed = false;                       // ... and its own key signed it
  std::string raw_subject, raw_issuer;            // DER of the names, to compare: not for a terminal
};
Certificate read_certificate(std::string_view der, const CertificateLimits& limits);

// Whether it is for this host: a name in ASCII, or an address ("192.0.2.1", "2001:db8::1"). Alternative names only, wildcards for one whole label.
bool certificate_is_for(std::string_view der, const std::string& host);

// "2026-11-30T19:00:00Z", in years of four digits.
std::string utc_text(int64_t seconds);

}  // namespace h5i::websec
