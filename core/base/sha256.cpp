// The low-level SHA256_* functions are deprecated in OpenSSL 3 in favour of EVP, which would pull in the provider
// machinery; they are what keeps the run path free of it (docs/adr/0003).
#define OPENSSL_SUPPRESS_DEPRECATED
#include "core/base/sha256.hpp"

#include <openssl/sha.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <vector>

#include "core/base/text.hpp"

namespace h5i {
static_assert(sizeof(SHA256_CTX) <= 128);

Sha256::Sha256() { SHA256_Init(new (ctx_) SHA256_CTX); }
void Sha256::update(std::string_view b) { SHA256_Update(reinterpret_cast<SHA256_CTX*>(ctx_), b.data(), b.size()); }
Digest Sha256::finish() {
  Digest d;
  SHA256_Final(d.data(), reinterpret_cast<SHA256_CTX*>(ctx_));
  return d;
}

Digest sha256(std::string_view b) {
  Sha256 h;
  h.update(b);
  return h.finish();
}

std::string sha256_hex(std::string_view b) {
  Digest d = sha256(b);
  return hex(d.data(), d.size());
}

Digest hmac_sha256(std::string_view key, std::string_view bytes) {
  unsigned char k[64] = {};
  if (key.size() > sizeof k) {
    Digest d = sha256(key);
    memcpy(k, d.data(), d.size());
  } else {
    memcpy(k, key.data(), key.size());
  }
  unsigned char in[64], out[64];
  for (int i = 0; i < 64; i++) {
    in[i] = k[i] ^ 0x36;
    out[i] = k[i] ^ 0x5c;
  }
  Sha256 a;
  a.update({reinterpret_cast<char*>(in), 64});
  a.update(bytes);
  Digest inner = a.finish();
  Sha256 b;
  b.update({reinterpret_cast<char*>(out), 64});
  b.update({reinterpret_cast<char*>(inner.data()), inner.size()});
  explicit_bzero(k, sizeof k);
  explicit_bzero(in, sizeof in);
  explicit_bzero(out, sizeof out);
  return b.finish();
}

Result<std::string> sha256_fd_hex(int fd, uint64_t* size) {
  Sha256 h;
  std::vector<char> buf(1 << 16);
  uint64_t off = 0;
  for (;;) {
    ssize_t n = pread(fd, buf.data(), buf.size(), static_cast<off_t>(off));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read while hashing");
    if (n == 0) break;
    h.update({buf.data(), static_cast<size_t>(n)});
    off += static_cast<uint64_t>(n);
  }
  if (size) *size = off;
  Digest d = h.finish();
  return hex(d.data(), d.size());
}

}  // namespace h5i
