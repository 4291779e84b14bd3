#include "core/evidence/verify.hpp"

#include "core/base/text.hpp"
#include "core/evidence/files.hpp"

namespace h5i::evidence {
namespace {

// The seal at `path` when it is there. Signed by a key that is accepted, or an error: a bad signature beside a log is
// never the same as none.
Result<std::optional<Seal>> accepted_seal(const std::string& path, const std::map<std::string, KnownKey>& keys) {
  auto s = read_seal(path);
  if (!s) {
    if (s.error().code == Errc::NOT_FOUND) return std::optional<Seal>();
    return std::move(s).error();
  }
  auto key = keys.find(s->key_id);
  if (key == keys.end())
    return make_error(Errc::KEY_UNTRUSTED,
                      "the seal " + printable(path) + " is signed by a key that is not trusted here",
                      "key " + s->key_id, "h5i key trust FILE, or --key FILE");
  if (!signature_matches(key->second.key, s->signed_bytes(), s->signature))
    return make_error(Errc::LOG_SEAL, "the signature of the seal " + printable(path) + " is wrong",
                      "it is not what key " + s->key_id + " signed");
  return std::optional<Seal>(*s);
}

void take_newest(LogVerdict& v, const std::optional<Seal>& s, const char* from) {
  if (!s || (v.has_seal && v.seal.count >= s->count)) return;
  v.has_seal = true;
  v.seal = *s;
  v.seal_from = from;
}

}  // namespace

Result<LogVerdict> verify_log(const VerifyInputs& in) {
  LogVerdict v;
  auto beside = accepted_seal(in.seal_path.empty() ? seal_path(in.log_path) : in.seal_path, in.keys);
  // Without a seal beside it the log is looked at first: its id names the seal that the host kept.
  std::string id;
  if (beside && *beside) {
    id = (*beside)->log_id;
  } else {
    v.chain = H5I_TRY(examine_chain(in.log_path));
    id = v.chain.head.log_id;
  }
  if (beside) take_newest(v, *beside, "beside the log");
  Result<std::optional<Seal>> kept = std::optional<Seal>();
  if (!in.state_dir.empty() && !id.empty()) kept = accepted_seal(kept_seal_path(in.state_dir, id), in.keys);
  if (kept) take_newest(v, *kept, "kept by this host");

  if (v.has_seal) {
    v.chain = H5I_TRY(examine_chain(in.log_path, v.seal.log_id, Anchor{v.seal.count, v.seal.head}));
    v.key_from = in.keys.at(v.seal.key_id).from;
  }
  if (v.chain.broken)
    v.error = chain_error(in.log_path, v.chain);
  else if (!beside)
    v.error = beside.error();
  else if (!kept)
    v.error = kept.error();
  return v;
}

Error unsealed_error(const std::string& path, const LogVerdict& v) {
  std::string records = std::to_string(v.chain.head.count);
  return make_error(Errc::LOG_UNSEALED, "chain intact, end not proven: " + printable(path),
                    v.has_seal
                        ? "the signed head covers " + std::to_string(v.seal.count) + " of " + records + " records"
                        : "no signed head for its " + records + " records: one that was cut off would not be missed");
}

Result<std::map<std::string, KnownKey>> accepted_keys(const std::string& state_dir, const std::string& config_dir,
                                                      const std::vector<std::string>& files) {
  std::map<std::string, KnownKey> out;
  HostKey host(state_dir);
  for (const auto& [id, k] : H5I_TRY(host.retired())) out[id] = {k, "this host, retired"};
  for (const auto& [id, k] : H5I_TRY(TrustStore(config_dir).all())) out[id] = {k, "trusted"};
  if (auto own = H5I_TRY(host.public_key())) out[own->id()] = {*own, "this host"};
  for (const std::string& file : files) {
    auto text = read_small_file(file, 4096);
    if (!text) return std::move(text).error();
    auto k = PublicKey::from_pem(*text);
    if (!k) return make_error(Errc::INVALID, printable(file) + " is not a public key", k.error().evidence);
    out.try_emplace(k->id(), KnownKey{*k, file});
  }
  return out;
}

}  // namespace h5i::evidence
