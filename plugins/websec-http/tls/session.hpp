// One TLS client connection as bytes in and bytes out: OpenSSL over memory, so that a ClientHello too is a byte that somebody else writes, after the record.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "h5i/plugin.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace h5i::websec {

// Trust and protocol versions of an act. May be shared by threads.
class TlsContext {
 public:
  struct Options {
    bool verify = true;     // false: who answers is told, and is not a condition
    std::string ca_pem;     // trusted beside the system's
  };
  // H5I_E_INVALID: `ca_pem` holds no certificate. H5I_E_SYSTEM: no trust store.
  static sdk::Result<TlsContext> make(const Options& options);

 private:
  friend class TlsSession;
  std::shared_ptr<ssl_ctx_st> context_;
  bool verify_ = true;
};

class TlsSession {
 public:
  // `name`: a host, sent as the server's name and held against the certificate, or an address, which is only held against it. `alpn`: in order of preference.
  TlsSession(const TlsContext& context, const std::string& name, bool is_address, const std::vector<std::string>& alpn);

  enum class State { WANTS_MORE, DONE, CLOSED, FAILED };
  void give(std::string_view from_peer);  // bytes of the peer
  std::string take();                     // bytes for the peer; must be looked at after each of the calls below
  State handshake();
  // All of `plain` becomes bytes for the peer. FAILED when the session is no more.
  State write(std::string_view plain);
  // DONE: *got bytes of what the peer said.
  State read(char* into, size_t size, size_t* got);
  void close();  // says so to the peer

  const std::string& error() const { return error_; }
  bool untrusted() const;      // the handshake failed because of who answered
  std::string alpn() const;    // what was agreed, or ""
  std::string version() const;
  std::string cipher() const;
  std::string verdict() const; // "ok", or why the certificate is not trusted
  std::vector<std::string> chain() const;  // DER, the peer's own first
  bool resumed() const;

 private:
  State state_of(int result);
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  std::string error_;
  bool verify_;
};

}  // namespace h5i::websec
