#include "plugins/websec-http/tls/session.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace h5i::websec {
namespace {

constexpr size_t kMostChain = 16;  // certificates that are told

std::string last_error(const char* otherwise) {
  const unsigned long e = ERR_peek_last_error();
  const char* reason = e != 0 ? ERR_reason_error_string(e) : nullptr;
  ERR_clear_error();
  return reason ? reason : otherwise;
}

int add_certificates(SSL_CTX* context, const std::string& pem) {
  std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  int added = 0;
  while (X509* x = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    added += X509_STORE_add_cert(SSL_CTX_get_cert_store(context), x);
    X509_free(x);
  }
  ERR_clear_error();
  return added;
}

}  // namespace

sdk::Result<TlsContext> TlsContext::make(const Options& options) {
  TlsContext out;
  out.context_ = {SSL_CTX_new(TLS_client_method()), SSL_CTX_free};
  SSL_CTX* c = out.context_.get();
  if (c == nullptr) return sdk::failure(H5I_E_SYSTEM, "TLS: " + last_error("no context"));
  out.verify_ = options.verify;
  SSL_CTX_set_options(c, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(c, SSL_MODE_AUTO_RETRY);
  // Without verification the certificate is looked at all the same, and what was found is told.
  SSL_CTX_set_verify(c, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (SSL_CTX_set_default_verify_paths(c) != 1) return sdk::failure(H5I_E_SYSTEM, "TLS: " + last_error("the system has no trust store"));
  ERR_clear_error();
  if (!options.ca_pem.empty() && add_certificates(c, options.ca_pem) == 0) return sdk::failure(H5I_E_INVALID, "the file of authorities holds no certificate (PEM)");
  return out;
}

TlsSession::TlsSession(const TlsContext& context, const std::string& name, bool is_address, const std::vector<std::string>& alpn)
    : ssl_(SSL_new(context.context_.get()), SSL_free), verify_(context.verify_) {
  if (!ssl_) {
    error_ = last_error("no memory");
    return;
  }
  SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(ssl_.get());
  X509_VERIFY_PARAM* wanted = SSL_get0_param(ssl_.get());
  X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool named = is_address ? X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str()) == 1
                                : X509_VERIFY_PARAM_set1_host(wanted, name.c_str(), 0) == 1 && SSL_set_tlsext_host_name(ssl_.get(), name.c_str()) == 1;
  if (!named) error_ = "no name to hold a certificate against: " + last_error("invalid");
  std::string list;
  for (const std::string& p : alpn) list += static_cast<char>(p.size()) + p;
  if (!list.empty() && SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(list.data()), static_cast<unsigned>(list.size())) != 0) error_ = "no protocol to offer";
}

void TlsSession::give(std::string_view from_peer) {
  if (ssl_ && !from_peer.empty()) BIO_write(SSL_get_rbio(ssl_.get()), from_peer.data(), static_cast<int>(from_peer.size()));
}

std::string TlsSession::take() {
  std::string out;
  if (!ssl_) return out;
  BIO* bio = SSL_get_wbio(ssl_.get());
  out.resize(BIO_ctrl_pending(bio));
  if (out.empty()) return out;
  const int n = BIO_read(bio, out.data(), static_cast<int>(out.size()));
  out.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return out;
}

TlsSession::State TlsSession::state_of(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return State::WANTS_MORE;
    case SSL_ERROR_ZERO_RETURN: return State::CLOSED;
    default: break;
  }
  error_ = untrusted() ? "the certificate is not trusted: " + verdict() : "TLS: " + last_error("the peer broke off");
  ERR_clear_error();
  return State::FAILED;
}

TlsSession::State TlsSession::handshake() {
  if (!error_.empty()) return State::FAILED;
  ERR_clear_error();
  const int r = SSL_do_handshake(ssl_.get());
  return r == 1 ? State::DONE : state_of(r);
}

TlsSession::State TlsSession::write(std::string_view plain) {
  if (!error_.empty()) return State::FAILED;
  ERR_clear_error();
  while (!plain.empty()) {
    size_t went = 0;
    const int r = SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &went);
    if (r != 1) return state_of(r);
    plain.remove_prefix(went);
  }
  return State::DONE;
}

TlsSession::State TlsSession::read(char* into, size_t size, size_t* got) {
  *got = 0;
  if (!error_.empty()) return State::FAILED;
  ERR_clear_error();
  const int r = SSL_read_ex(ssl_.get(), into, size, got);
  return r == 1 ? State::DONE : state_of(r);
}

void TlsSession::close() {
  if (error_.empty() && ssl_ && SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

bool TlsSession::untrusted() const { return verify_ && SSL_get_verify_result(ssl_.get()) != X509_V_OK && !SSL_is_init_finished(ssl_.get()); }

std::string TlsSession::alpn() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

std::string TlsSession::version() const { return SSL_get_version(ssl_.get()); }
std::string TlsSession::cipher() const { return SSL_get_cipher_name(ssl_.get()); }
std::string TlsSession::verdict() const { return X509_verify_cert_error_string(SSL_get_verify_result(ssl_.get())); }
bool TlsSession::resumed() const { return SSL_session_reused(ssl_.get()) == 1; }

std::vector<std::string> TlsSession::chain() const {
  std::vector<std::string> out;
  const STACK_OF(X509)* chain = SSL_get_peer_cert_chain(ssl_.get());
  for (int i = 0; chain && i < sk_X509_num(chain) && out.size() < kMostChain; i++) {
    unsigned char* der = nullptr;
    const int n = i2d_X509(sk_X509_value(chain, i), &der);
    if (n > 0) out.emplace_back(reinterpret_cast<char*>(der), static_cast<size_t>(n));
    OPENSSL_free(der);
  }
  return out;
}

}  // namespace h5i::websec
