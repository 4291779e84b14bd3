#include "core/evidence/keys.hpp"

#include <dirent.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "core/base/ids.hpp"
#include "core/base/sha256.hpp"
#include "core/base/text.hpp"
#include "core/evidence/files.hpp"
#include "core/os/owned_file.hpp"

namespace h5i::evidence {
namespace {

// RFC 8410: both structures have one form only for Ed25519, so the bytes before the key are constants.
constexpr unsigned char kPublicPrefix[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};
constexpr unsigned char kPrivatePrefix[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                                            0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};
constexpr size_t kMaxKeyFile = 4096;

using Pkey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using MdCtx = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

// The system's openssl.cnf may load engines and providers into us; nothing of it is wanted.
void start_crypto() { OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr); }

void wipe(std::string& s) { explicit_bzero(s.data(), s.size()); }

std::string to_pem(const char* label, const unsigned char* prefix, size_t n, const unsigned char* key) {
  std::string der(reinterpret_cast<const char*>(prefix), n);
  der.append(reinterpret_cast<const char*>(key), 32);
  std::string body = base64(der);
  std::string out = std::string("-----BEGIN ") + label + "-----\n" + body + "\n-----END " + label + "-----\n";
  wipe(der);
  wipe(body);
  return out;
}

bool parse_pem(std::string_view text, const std::string& label, const unsigned char* prefix, size_t n,
               unsigned char* key) {
  std::string begin = "-----BEGIN " + label + "-----", end = "-----END " + label + "-----";
  size_t a = text.find(begin), b = text.find(end);
  if (a == std::string_view::npos || b == std::string_view::npos || b < a) return false;
  std::string body, der;
  for (char c : text.substr(a + begin.size(), b - a - begin.size()))
    if (c != '\n' && c != '\r' && c != ' ') body += c;
  bool ok = unbase64(body, &der) && der.size() == n + 32 && memcmp(der.data(), prefix, n) == 0;
  if (ok) memcpy(key, der.data() + n, 32);
  wipe(body);
  wipe(der);
  return ok;
}

Error crypto_error(const char* what) { return make_error(Errc::INTERNAL, what, "libcrypto refused"); }

Result<std::map<std::string, PublicKey>> keys_in(const std::string& dir) {
  std::map<std::string, PublicKey> out;
  std::unique_ptr<DIR, int (*)(DIR*)> d(opendir(dir.c_str()), closedir);
  if (!d) {
    if (errno == ENOENT) return out;
    return sys_error("cannot read " + printable(dir));
  }
  while (dirent* e = readdir(d.get())) {
    std::string name = e->d_name;
    if (name.size() != 68 || name.substr(64) != ".pub") continue;
    auto text = H5I_TRY(os::read_owned_file(dir + "/" + name, geteuid(), kMaxKeyFile, Errc::DENIED));
    if (!text) continue;  // removed meanwhile
    PublicKey k = H5I_TRY(PublicKey::from_pem(*text));
    // The name is what the user sees; a file that holds another key is not what was trusted.
    if (k.id() != name.substr(0, 64))
      return make_error(Errc::CORRUPT, "the key file " + printable(dir + "/" + name) + " was changed",
                        "it holds key " + k.id());
    out[k.id()] = k;
  }
  return out;
}

}  // namespace

std::string PublicKey::id() const { return sha256_hex({reinterpret_cast<const char*>(raw.data()), raw.size()}); }
std::string PublicKey::pem() const { return to_pem("PUBLIC KEY", kPublicPrefix, sizeof kPublicPrefix, raw.data()); }

Result<PublicKey> PublicKey::from_pem(std::string_view text) {
  PublicKey k;
  if (!parse_pem(text, "PUBLIC KEY", kPublicPrefix, sizeof kPublicPrefix, k.raw.data()))
    return make_error(Errc::INVALID, "not a public key",
                      "an Ed25519 key in PEM is expected, as h5i key show prints it");
  return k;
}

Result<PrivateKey> PrivateKey::generate() {
  PrivateKey k;
  H5I_TRY(random_bytes(k.seed_.data(), k.seed_.size()));
  std::string pem = k.pem();
  auto out = from_pem(pem);
  wipe(pem);
  return out;
}

Result<PrivateKey> PrivateKey::from_pem(std::string_view text) {
  start_crypto();
  PrivateKey k;
  if (!parse_pem(text, "PRIVATE KEY", kPrivatePrefix, sizeof kPrivatePrefix, k.seed_.data()))
    return make_error(Errc::CORRUPT, "the host key is not readable", "an Ed25519 key in PEM is expected");
  Pkey p(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, k.seed_.data(), 32), EVP_PKEY_free);
  size_t n = 32;
  if (!p || EVP_PKEY_get_raw_public_key(p.get(), k.public_.raw.data(), &n) != 1)
    return crypto_error("cannot use the host key");
  return k;
}

PrivateKey::PrivateKey(PrivateKey&& o) noexcept : seed_(o.seed_), public_(o.public_) {
  explicit_bzero(o.seed_.data(), o.seed_.size());
}
PrivateKey& PrivateKey::operator=(PrivateKey&& o) noexcept {
  if (this == &o) return *this;
  seed_ = o.seed_;
  public_ = o.public_;
  explicit_bzero(o.seed_.data(), o.seed_.size());
  return *this;
}
PrivateKey::~PrivateKey() { explicit_bzero(seed_.data(), seed_.size()); }

std::string PrivateKey::pem() const {
  return to_pem("PRIVATE KEY", kPrivatePrefix, sizeof kPrivatePrefix, seed_.data());
}

Result<std::string> PrivateKey::sign(std::string_view bytes) const {
  start_crypto();
  Pkey p(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed_.data(), 32), EVP_PKEY_free);
  MdCtx c(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::string out(64, '\0');
  size_t n = out.size();
  if (!p || !c || EVP_DigestSignInit(c.get(), nullptr, nullptr, nullptr, p.get()) != 1 ||
      EVP_DigestSign(c.get(), reinterpret_cast<unsigned char*>(out.data()), &n,
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()) != 1 ||
      n != 64)
    return crypto_error("cannot sign");
  return out;
}

bool signature_matches(const PublicKey& key, std::string_view bytes, std::string_view signature) {
  start_crypto();
  if (signature.size() != 64) return false;
  Pkey p(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.raw.data(), 32), EVP_PKEY_free);
  MdCtx c(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  return p && c && EVP_DigestVerifyInit(c.get(), nullptr, nullptr, nullptr, p.get()) == 1 &&
         EVP_DigestVerify(c.get(), reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                          reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()) == 1;
}

Result<PrivateKey> HostKey::load() const {
  FileFacts facts;
  auto text = read_small_file(path(), kMaxKeyFile, &facts);
  if (!text) {
    if (text.error().code == Errc::NOT_FOUND)
      return make_error(Errc::KEY_MISSING, "this host has no key yet", "no file " + printable(path()));
    return std::move(text).error();
  }
  Error refused;
  if (facts.owner != geteuid())
    refused =
        make_error(Errc::DENIED, "the host key " + printable(path()) + " is not used",
                   "it belongs to user " + std::to_string(facts.owner), "remove it, then h5i key show makes a new one");
  else if ((facts.mode & 077) != 0)
    refused = make_error(Errc::DENIED, "the host key " + printable(path()) + " is not used",
                         "others may read or write it", "h5i key rotate makes a new one: this one may be known");
  if (!refused.what.empty()) {
    wipe(*text);
    return refused;
  }
  auto key = PrivateKey::from_pem(*text);
  wipe(*text);
  return key;
}

Result<void> HostKey::publish(const PrivateKey& key) const {
  auto now = read_small_file(public_path(), kMaxKeyFile);
  if (now && *now == key.public_key().pem()) return {};
  return replace_file(public_path(), key.public_key().pem(), 0644);
}

Result<PrivateKey> HostKey::load_or_create() const {
  auto key = load();
  if (!key && key.error().code == Errc::KEY_MISSING) {
    H5I_TRY(make_directories(dir_));
    PrivateKey fresh = H5I_TRY(PrivateKey::generate());
    std::string pem = fresh.pem();
    auto made = create_file(path(), pem, 0600);
    wipe(pem);
    if (!made && made.error().code != Errc::EXISTS) return std::move(made).error();
    key = load();
  }
  if (key) H5I_TRY(publish(*key));
  return key;
}

Result<PrivateKey> HostKey::rotate() const {
  H5I_TRY(make_directories(dir_ + "/retired"));
  // The old public half first: a crash in between leaves one key too many accepted, never signatures without a key.
  if (auto old = load(); old) {
    H5I_TRY(replace_file(dir_ + "/retired/" + old->public_key().id() + ".pub", old->public_key().pem(), 0644));
  } else if (old.error().code != Errc::KEY_MISSING && old.error().code != Errc::DENIED) {
    return std::move(old).error();
  }
  PrivateKey fresh = H5I_TRY(PrivateKey::generate());
  std::string pem = fresh.pem();
  auto made = replace_file(path(), pem, 0600);
  wipe(pem);
  if (!made) return std::move(made).error();
  H5I_TRY(publish(fresh));
  return fresh;
}

Result<std::optional<PublicKey>> HostKey::public_key() const {
  prctl(PR_SET_DUMPABLE, 0);  // from here on this process may hold the secret key
  auto own = load();
  if (own) return std::optional<PublicKey>(own->public_key());
  if (own.error().code != Errc::KEY_MISSING) return std::move(own).error();
  auto text = H5I_TRY(os::read_owned_file(public_path(), geteuid(), kMaxKeyFile, Errc::DENIED));
  if (!text) return std::optional<PublicKey>();
  return std::optional<PublicKey>(H5I_TRY(PublicKey::from_pem(*text)));
}

Result<std::map<std::string, PublicKey>> HostKey::retired() const { return keys_in(dir_ + "/retired"); }

Result<std::map<std::string, PublicKey>> TrustStore::all() const { return keys_in(dir_); }

Result<bool> TrustStore::add(const PublicKey& key) const {
  if (H5I_TRY(all()).count(key.id())) return false;
  H5I_TRY(make_directories(dir_));
  H5I_TRY(replace_file(dir_ + "/" + key.id() + ".pub", key.pem(), 0644));
  return true;
}

Result<std::string> TrustStore::remove(std::string_view id) const {
  std::vector<std::string> found;
  for (const auto& [known, key] : H5I_TRY(all()))
    if (id.size() >= 8 && known.compare(0, id.size(), id) == 0) found.push_back(known);
  if (found.empty())
    return make_error(Errc::KEY_UNTRUSTED, "no trusted key " + printable(id, {.limit = 80}),
                      "ids have at least eight digits here", "h5i key show lists them");
  if (found.size() > 1)
    return make_error(Errc::INVALID, "more than one trusted key begins with " + printable(id),
                      found[0] + ", " + found[1], "give more digits");
  if (unlink((dir_ + "/" + found[0] + ".pub").c_str()) != 0) return sys_error("cannot remove key " + found[0]);
  return found[0];
}

}  // namespace h5i::evidence
