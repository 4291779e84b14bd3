#include "plugins/websec-http/tls/certificate.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>

#include "plugins/websec-http/text/show.hpp"

namespace h5i::websec {
namespace {

template <auto F>
struct Free {
  template <class T>
  void operator()(T* p) const {
    F(p);
  }
};
using X509Ptr = std::unique_ptr<X509, Free<X509_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;

// What OpenSSL has to say about a certificate must not be taken for an error of the connection.
class OwnErrors {
 public:
  OwnErrors() { ERR_set_mark(); }
  ~OwnErrors() { ERR_pop_to_mark(); }
  OwnErrors(const OwnErrors&) = delete;
  OwnErrors& operator=(const OwnErrors&) = delete;
};

constexpr size_t kNameBytes = 260;  // of one alternative name, shown; a name in DNS has 253
constexpr int kWeakRsa = 2048, kWeakCurve = 224;

X509Ptr parse(std::string_view der, size_t* used) {
  const auto* begin = reinterpret_cast<const unsigned char*>(der.data());
  const unsigned char* at = begin;
  X509Ptr out(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  *used = out ? static_cast<size_t>(at - begin) : 0;
  return out;
}

std::string hex_digest(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &n, EVP_sha256(), nullptr) != 1) return {};
  std::string out;
  for (unsigned i = 0; i < n; i++)
    for (unsigned nibble : {digest[i] >> 4, digest[i] & 15}) out.push_back("0123456789abcdef"[nibble]);
  return out;
}

std::string_view bytes_of(const ASN1_STRING* s) {
  int n = ASN1_STRING_length(s);
  return n > 0 ? std::string_view(reinterpret_cast<const char*>(ASN1_STRING_get0_data(s)), static_cast<size_t>(n)) : std::string_view();
}

// A name's text for a person; *odd when it holds what cannot be shown as it is.
std::string shown(std::string_view raw, size_t cap, bool* odd) {
  *odd = *odd || show(raw, {.cap = SIZE_MAX}).escaped > 0;
  return show_field(raw, cap);
}

std::string object_text(const ASN1_OBJECT* o) {
  int nid = OBJ_obj2nid(o);
  if (nid != NID_undef) return OBJ_nid2sn(nid);
  char text[128] = {};
  OBJ_obj2txt(text, sizeof text, o, 1);
  return text;
}

// RFC 4514, in the order of the certificate, each part on its own.
std::string name_text(const X509_NAME* name, const CertificateLimits& limits, bool* odd) {
  std::string out;
  int n = X509_NAME_entry_count(name);
  for (int i = 0; i < n; i++) {
    if (static_cast<size_t>(i) == limits.parts) {
      out += ", ...";
      break;
    }
    const X509_NAME_ENTRY* entry = X509_NAME_get_entry(name, i);
    const ASN1_STRING* value = X509_NAME_ENTRY_get_data(entry);
    unsigned char* utf8 = nullptr;
    int size = ASN1_STRING_to_UTF8(&utf8, value);
    std::string text(size >= 0 ? std::string_view(reinterpret_cast<char*>(utf8), static_cast<size_t>(size)) : bytes_of(value));
    OPENSSL_free(utf8);
    *odd = *odd || size < 0;
    std::string escaped;
    for (char c : text) {
      if (std::string_view(",+\"\\<>;=").find(c) != std::string_view::npos) escaped.push_back('\\');
      escaped.push_back(c);
    }
    out += (i > 0 ? ", " : "") + show_field(object_text(X509_NAME_ENTRY_get_object(entry)), 64) + "=" + shown(escaped, limits.subject, odd);
    if (out.size() > limits.subject) break;
  }
  return show_field(out, limits.subject);
}

std::string name_der(const X509_NAME* name) {
  const unsigned char* bytes = nullptr;
  size_t n = 0;
  if (X509_NAME_get0_der(name, &bytes, &n) != 1 || !bytes) return {};
  return {reinterpret_cast<const char*>(bytes), n};
}

std::string address_text(std::string_view bytes) {
  std::string out;
  if (bytes.size() == 4) {
    for (char c : bytes) out += (out.empty() ? "" : ".") + std::to_string(static_cast<uint8_t>(c));
  } else if (bytes.size() == 16) {
    char group[8];
    for (size_t i = 0; i < 16; i += 2) {
      snprintf(group, sizeof group, "%x", static_cast<unsigned>(static_cast<uint8_t>(bytes[i]) << 8 | static_cast<uint8_t>(bytes[i + 1])));
      out += (i > 0 ? ":" : "") + std::string(group);
    }
  } else {
    out = std::to_string(bytes.size()) + " bytes";
  }
  return out;
}

void read_names(const X509* x, const CertificateLimits& limits, Certificate* out) {
  int found = 0;
  NamesPtr names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(x, NID_subject_alt_name, &found, nullptr)));
  if (!names) {
    out->names_unreadable = found != -1;  // -1: there is none; -2: there are two
    return;
  }
  out->names_total = static_cast<size_t>(sk_GENERAL_NAME_num(names.get()));
  for (size_t i = 0; i < out->names_total; i++) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), static_cast<int>(i));
    std::string text;
    switch (name->type) {
      case GEN_DNS: text = "dns:" + shown(bytes_of(name->d.dNSName), kNameBytes, &out->name_bytes); break;
      case GEN_EMAIL: text = "email:" + shown(bytes_of(name->d.rfc822Name), kNameBytes, &out->name_bytes); break;
      case GEN_URI: text = "uri:" + shown(bytes_of(name->d.uniformResourceIdentifier), kNameBytes, &out->name_bytes); break;
      case GEN_IPADD: text = "ip:" + address_text(bytes_of(name->d.iPAddress)); break;
      default: text = "other"; break;
    }
    if (i < limits.names) out->names.push_back(std::move(text));
  }
}

void read_key(const X509* x, Certificate* out) {
  const EVP_PKEY* key = X509_get0_pubkey(x);
  if (!key) return;
  const char* type = EVP_PKEY_get0_type_name(key);
  out->key = show_field(type ? type : "", 64);
  out->key_bits = EVP_PKEY_get_bits(key);
  if (EVP_PKEY_is_a(key, "EC")) {
    char group[64] = {};
    size_t n = 0;
    if (EVP_PKEY_get_group_name(key, group, sizeof group, &n) == 1) out->key += " " + show_field(group, 64);
    out->weak_key = out->key_bits < kWeakCurve;
  } else if (EVP_PKEY_is_a(key, "RSA") || EVP_PKEY_is_a(key, "RSA-PSS") || EVP_PKEY_is_a(key, "DSA")) {
    out->weak_key = out->key_bits < kWeakRsa;
  }
}

std::optional<int64_t> seconds_of(const ASN1_TIME* t) {
  tm at{};
  if (!t || ASN1_TIME_to_tm(t, &at) != 1) return std::nullopt;
  return static_cast<int64_t>(timegm(&at));
}

}  // namespace

std::string utc_text(int64_t seconds) {
  auto t = static_cast<time_t>(seconds);
  tm at{};
  char text[40] = {};
  if (!gmtime_r(&t, &at) || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &at) == 0) return {};
  return text;
}

Certificate read_certificate(std::string_view der, const CertificateLimits& limits) {
  OwnErrors own;
  Certificate out;
  out.bytes = der.size();
  size_t used = 0;
  X509Ptr x = der.size() <= limits.bytes ? parse(der, &used) : nullptr;
  out.sha256 = hex_digest(der.substr(0, x ? used : der.size()));
  if (!x) return out;
  out.readable = true;
  out.trailing = der.size() - used;
  const X509_NAME *subject = X509_get_subject_name(x.get()), *issuer = X509_get_issuer_name(x.get());
  out.subject = name_text(subject, limits, &out.name_bytes);
  out.issuer = name_text(issuer, limits, &out.name_bytes);
  out.raw_subject = name_der(subject);
  out.raw_issuer = name_der(issuer);
  read_names(x.get(), limits, &out);
  read_key(x.get(), &out);
  out.not_before = seconds_of(X509_get0_notBefore(x.get()));
  out.not_after = seconds_of(X509_get0_notAfter(x.get()));

  const X509_ALGOR* algorithm = nullptr;
  X509_get0_signature(nullptr, &algorithm, x.get());
  const ASN1_OBJECT* object = nullptr;
  if (algorithm) X509_ALGOR_get0(&object, nullptr, nullptr, algorithm);
  if (object) {
    int nid = OBJ_obj2nid(object);
    out.signature = show_field(nid != NID_undef ? OBJ_nid2ln(nid) : object_text(object), 128);
  }
  int digest = NID_undef, kind = NID_undef, bits = 0;
  uint32_t flags = 0;
  if (X509_get_signature_info(x.get(), &digest, &kind, &bits, &flags) == 1)
    out.weak_signature = digest == NID_md5 || digest == NID_sha1 || digest == NID_md5_sha1;

  out.self_issued = X509_NAME_cmp(subject, issuer) == 0;
  EVP_PKEY* key = out.self_issued ? X509_get0_pubkey(x.get()) : nullptr;
  out.self_signed = key && X509_verify(x.get(), key) == 1;
  return out;
}

bool certificate_is_for(std::string_view der, const std::string& host) {
  OwnErrors own;
  size_t used = 0;
  X509Ptr x = der.size() <= CertificateLimits{}.bytes ? parse(der, &used) : nullptr;
  if (!x || host.empty() || host.find('\0') != std::string::npos) return false;
  std::string name = host;
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') name = name.substr(1, name.size() - 2);
  std::unique_ptr<ASN1_OCTET_STRING, Free<ASN1_OCTET_STRING_free>> address(a2i_IPADDRESS(name.c_str()));
  if (address) return X509_check_ip_asc(x.get(), name.c_str(), 0) == 1;
  if (name.back() == '.') name.pop_back();
  return X509_check_host(x.get(), name.data(), name.size(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, nullptr) == 1;
}

}  // namespace h5i::websec
