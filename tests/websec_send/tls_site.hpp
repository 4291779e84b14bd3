// An origin that speaks TLS with a certificate of an authority that the test makes for itself.
#pragma once
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>

#include "tests/websec_send/site.hpp"

namespace h5i::test {

struct Identity {
  std::shared_ptr<EVP_PKEY> key;
  std::shared_ptr<X509> certificate;
  std::string pem() const {
    std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new(BIO_s_mem()), BIO_free);
    REQUIRE(PEM_write_bio_X509(bio.get(), certificate.get()) == 1);
    char* text = nullptr;
    long size = BIO_get_mem_data(bio.get(), &text);
    return {text, static_cast<size_t>(size)};
  }
};

// `names`: as OpenSSL has them, "DNS:a.test,IP:127.0.0.1"; "" makes an authority. Signed by `by`, or by itself. `seconds`: from now until it ends.
inline Identity certificate(const std::string& subject, const std::string& names, const Identity* by, long seconds = 3600) {
  Identity out{{EVP_EC_gen("P-256"), EVP_PKEY_free}, {X509_new(), X509_free}};
  X509* x = out.certificate.get();
  static long serial = 1;
  ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
  X509_set_version(x, 2);
  X509_gmtime_adj(X509_getm_notBefore(x), -7200);
  X509_gmtime_adj(X509_getm_notAfter(x), seconds);
  X509_set_pubkey(x, out.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(subject.c_str()), -1, -1, 0);
  X509_set_issuer_name(x, X509_get_subject_name(by ? by->certificate.get() : x));
  X509V3_CTX context;
  X509V3_set_ctx(&context, by ? by->certificate.get() : x, x, nullptr, nullptr, 0);
  auto extend = [&](int nid, const char* value) {
    X509_EXTENSION* e = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
    REQUIRE(e != nullptr);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
  };
  if (names.empty()) extend(NID_basic_constraints, "critical,CA:TRUE");
  else extend(NID_subject_alt_name, names.c_str());
  REQUIRE(X509_sign(x, (by ? by->key : out.key).get(), EVP_sha256()) > 0);
  return out;
}

// One connection after the other, a process of its own. What it saw is in files: the first bytes on the wire, and each request behind TLS.
class TlsOrigin : public Listener {
 public:
  using Answer = std::function<std::string(const std::string& request)>;
  TlsOrigin(const Identity& identity, Answer answer, std::string alpn = "http/1.1", bool says_goodbye = true) {
    begin([&] { serve(identity, answer, alpn, says_goodbye); });
  }
  std::string url(const std::string& path = "/") const { return "https://127.0.0.1:" + port() + path; }
  int connections() const { return count("connection"); }
  std::vector<std::string> requests() const {
    std::vector<std::string> out;
    for (int i = 0; i < count("request"); i++) out.push_back(read_file(seen_.path() + "/request" + std::to_string(i)));
    return out;
  }
  // The name that the last ClientHello had; "-" for none.
  std::string server_name() const { return read_file(seen_.path() + "/name"); }

 private:
  static int choose(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* in, unsigned in_size, void* self) {
    const auto& alpn = *static_cast<const std::string*>(self);
    for (unsigned i = 0; i < in_size; i += in[i] + 1u)
      if (std::string(reinterpret_cast<const char*>(in + i + 1), in[i]) == alpn) {
        *out = in + i + 1;
        *size = in[i];
        return SSL_TLSEXT_ERR_OK;
      }
    return alpn.empty() ? SSL_TLSEXT_ERR_NOACK : SSL_TLSEXT_ERR_ALERT_FATAL;  // "": it does not hear what is offered
  }
  [[noreturn]] void serve(const Identity& identity, const Answer& answer, std::string& alpn, bool says_goodbye) {
    SSL_CTX* context = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate(context, identity.certificate.get()) != 1 || SSL_CTX_use_PrivateKey(context, identity.key.get()) != 1) _exit(1);
    SSL_CTX_set_alpn_select_cb(context, choose, &alpn);
    for (int n = 0, r = 0;;) {
      UniqueFd c(accept(fd_.get(), nullptr, nullptr));
      if (!c) _exit(1);
      std::ofstream(seen_.path() + "/connection" + std::to_string(n++)) << "x";
      SSL* ssl = SSL_new(context);
      SSL_set_fd(ssl, c.get());
      if (SSL_accept(ssl) == 1) {
        const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
        std::ofstream(seen_.path() + "/name") << (name ? name : "-");
        for (;;) {
          std::string request;
          char piece[65536];
          while (request.find("\r\n\r\n") == std::string::npos) {
            int got = SSL_read(ssl, piece, sizeof piece);
            if (got <= 0) break;
            request.append(piece, static_cast<size_t>(got));
          }
          if (request.empty()) break;
          std::string file = seen_.path() + "/request" + std::to_string(r++);
          std::ofstream(file + ".new", std::ios::binary) << request;
          rename((file + ".new").c_str(), file.c_str());
          std::string said = answer(request);
          SSL_write(ssl, said.data(), static_cast<int>(said.size()));
          if (said.find("Connection: close") != std::string::npos || said.find("Content-Length") == std::string::npos) break;
        }
        if (says_goodbye) SSL_shutdown(ssl);
      }
      SSL_free(ssl);
      ERR_clear_error();
    }
  }
};

}  // namespace h5i::test
