// Ed25519 keys (RFC 8032): the host's own, and the public ones that the user trusts.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"

namespace h5i::evidence {

struct PublicKey {
  std::array<unsigned char, 32> raw{};
  std::string id() const;   // SHA-256 of the 32 bytes, hex
  std::string pem() const;  // SubjectPublicKeyInfo (RFC 8410), as `openssl pkey -pubin` reads it
  static Result<PublicKey> from_pem(std::string_view text);
  bool operator==(const PublicKey&) const = default;
};

// The secret half. Wiped when it goes; never printed, never in a core dump of ours (the process is made non-dumpable
// by whoever loads one).
class PrivateKey {
 public:
  static Result<PrivateKey> generate();
  static Result<PrivateKey> from_pem(std::string_view text);
  ~PrivateKey();
  PrivateKey(PrivateKey&& o) noexcept;
  PrivateKey& operator=(PrivateKey&& o) noexcept;
  std::string pem() const;  // PKCS#8 (RFC 8410). The caller wipes it
  const PublicKey& public_key() const { return public_; }
  Result<std::string> sign(std::string_view bytes) const;  // 64 bytes

 private:
  PrivateKey() = default;
  std::array<unsigned char, 32> seed_{};
  PublicKey public_;
};

bool signature_matches(const PublicKey& key, std::string_view bytes, std::string_view signature);

// In <state>/keys (0700): host.key (0600), host.pub, retired/<id>.pub.
class HostKey {
 public:
  explicit HostKey(std::string state_dir) : dir_(std::move(state_dir) + "/keys") {}
  std::string public_path() const { return dir_ + "/host.pub"; }
  // Made when there is none: exclusively and atomically, so that of several that start at once all use one.
  Result<PrivateKey> load_or_create() const;
  // KEY_MISSING when there is none; DENIED when somebody else may read or has made it.
  Result<PrivateKey> load() const;
  // Of the secret key when there is one, whatever host.pub says; else of host.pub, which only this user or root may have
  // written (DENIED). nullopt when there is neither.
  Result<std::optional<PublicKey>> public_key() const;
  // A new key; the old one's public half is kept as retired and stays accepted, its secret half is gone.
  Result<PrivateKey> rotate() const;
  // Of keys that were rotated away, by id. DENIED as for the trust store.
  Result<std::map<std::string, PublicKey>> retired() const;

 private:
  Result<void> publish(const PrivateKey& key) const;
  std::string path() const { return dir_ + "/host.key"; }
  std::string dir_;
};

// In <config>/trust/keys: <id>.pub. A key counts only when nobody but this user or root can have put it there: DENIED.
class TrustStore {
 public:
  explicit TrustStore(std::string config_dir) : dir_(std::move(config_dir) + "/trust/keys") {}
  Result<std::map<std::string, PublicKey>> all() const;
  // True when it was not trusted before.
  Result<bool> add(const PublicKey& key) const;
  // By id or an unambiguous beginning of at least eight digits; the full id. KEY_UNTRUSTED when there is none.
  Result<std::string> remove(std::string_view id) const;

 private:
  std::string dir_;
};

}  // namespace h5i::evidence
