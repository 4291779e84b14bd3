// Certificates as no authority would sign them, made with OpenSSL.
#pragma once
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

namespace h5i::test {

struct KeyFree {
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
};
using Key = std::unique_ptr<EVP_PKEY, KeyFree>;

inline Key ec_key(const char* curve = "P-256") { return Key(EVP_EC_gen(curve)); }
inline Key rsa_key(unsigned bits) { return Key(EVP_RSA_gen(bits)); }

struct NamePart {
  int nid = NID_commonName;
  std::string bytes;
  int type = V_ASN1_UTF8STRING;  // the bytes are put as they are
};
struct CertificateOf {
  std::vector<NamePart> subject = {{NID_commonName, "a.test"}};
  std::vector<NamePart> issuer;                       // empty: the subject
  std::vector<std::pair<int, std::string>> names;     // GEN_DNS and its kin, raw
  int64_t not_before = 1'700'000'000, not_after = 1'900'000'000;
  std::string raw_not_after;                          // instead
  const EVP_MD* digest = EVP_sha256();
  EVP_PKEY* key = nullptr;
  EVP_PKEY* signer = nullptr;                         // none: the key
  std::string raw_names;                              // the DER of the extension instead of `names`
};

inline void add_parts(X509_NAME* to, const std::vector<NamePart>& parts) {
  for (const NamePart& p : parts)
    REQUIRE(X509_NAME_add_entry_by_NID(to, p.nid, p.type, reinterpret_cast<const unsigned char*>(p.bytes.data()), static_cast<int>(p.bytes.size()),
                                       -1, 0) == 1);
}

inline std::string certificate(const CertificateOf& of) {
  std::unique_ptr<X509, void (*)(X509*)> x(X509_new(), X509_free);
  X509_set_version(x.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(x.get()), 1);
  ASN1_TIME_set(X509_getm_notBefore(x.get()), static_cast<time_t>(of.not_before));
  ASN1_TIME_set(X509_getm_notAfter(x.get()), static_cast<time_t>(of.not_after));
  if (!of.raw_not_after.empty()) ASN1_STRING_set(X509_getm_notAfter(x.get()), of.raw_not_after.data(), static_cast<int>(of.raw_not_after.size()));
  for (auto [set, parts] : {std::pair{&X509_set_subject_name, &of.subject}, std::pair{&X509_set_issuer_name, of.issuer.empty() ? &of.subject : &of.issuer}}) {
    std::unique_ptr<X509_NAME, void (*)(X509_NAME*)> name(X509_NAME_new(), X509_NAME_free);
    add_parts(name.get(), *parts);
    REQUIRE(set(x.get(), name.get()) == 1);
  }
  X509_set_pubkey(x.get(), of.key);
  if (!of.names.empty()) {
    std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> names(GENERAL_NAMES_new(), GENERAL_NAMES_free);
    for (const auto& [type, bytes] : of.names) {
      GENERAL_NAME* n = GENERAL_NAME_new();
      ASN1_STRING* s = type == GEN_IPADD ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
      ASN1_STRING_set(s, bytes.data(), static_cast<int>(bytes.size()));
      GENERAL_NAME_set0_value(n, type, s);
      sk_GENERAL_NAME_push(names.get(), n);
    }
    REQUIRE(X509_add1_ext_i2d(x.get(), NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) == 1);
  } else if (!of.raw_names.empty()) {
    std::unique_ptr<ASN1_OCTET_STRING, void (*)(ASN1_OCTET_STRING*)> raw(ASN1_OCTET_STRING_new(), ASN1_OCTET_STRING_free);
    ASN1_OCTET_STRING_set(raw.get(), reinterpret_cast<const unsigned char*>(of.raw_names.data()), static_cast<int>(of.raw_names.size()));
    std::unique_ptr<X509_EXTENSION, void (*)(X509_EXTENSION*)> e(X509_EXTENSION_create_by_NID(nullptr, NID_subject_alt_name, 0, raw.get()),
                                                                      X509_EXTENSION_free);
    X509_add_ext(x.get(), e.get(), -1);
  }
  REQUIRE(X509_sign(x.get(), of.signer ? of.signer : of.key, of.digest) > 0);
  unsigned char* der = nullptr;
  int n = i2d_X509(x.get(), &der);
  REQUIRE(n > 0);
  std::string out(reinterpret_cast<char*>(der), static_cast<size_t>(n));
  OPENSSL_free(der);
  return out;
}

}  // namespace h5i::test
