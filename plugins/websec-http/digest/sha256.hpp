// SHA-256 in 64 hexadecimal digits.
#pragma once
#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

namespace h5i::websec {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string hex() {  // once
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_DigestFinal_ex(context_.get(), digest, &size) != 1) return {};
    constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    for (unsigned i = 0; i < size; i++) {
      out += kDigits[digest[i] >> 4];
      out += kDigits[digest[i] & 15];
    }
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

inline std::string sha256_hex(std::string_view bytes) {
  Sha256 h;
  h.add(bytes);
  return h.hex();
}

}  // namespace h5i::websec
