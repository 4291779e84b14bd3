// Whether a log is what the host wrote: its chain, and the signed head that proves its end.
#pragma once
#include <map>
#include <string>

#include "core/evidence/chain.hpp"
#include "core/evidence/keys.hpp"
#include "core/evidence/seal.hpp"

namespace h5i::evidence {

// Who a key is, for the person who reads the result.
struct KnownKey {
  PublicKey key;
  std::string from;  // "this host", "this host, retired", "trusted", or the file that was named
};

struct VerifyInputs {
  std::string log_path;
  std::string seal_path;                 // empty: beside the log
  std::string state_dir;                 // empty: the host's own store is not looked at
  std::map<std::string, KnownKey> keys;  // accepted, by id
};

struct LogVerdict {
  ChainReport chain;
  // Set when the chain is broken or a seal is not valid; then nothing below says "sealed".
  std::optional<Error> error;
  bool has_seal = false;
  Seal seal;
  std::string seal_from;  // "beside the log" or "kept by this host"
  std::string key_from;
  // A signature that is accepted covers the last record.
  bool sealed() const { return !error && has_seal && seal.count == chain.head.count; }
  // How many records follow the signed head (all of them without one).
  uint64_t unproven() const { return chain.head.count - (has_seal ? seal.count : 0); }
};

// An error only when the log cannot be read at all.
Result<LogVerdict> verify_log(const VerifyInputs& in);

// "chain intact, end not proven" as an Error (LOG_UNSEALED).
Error unsealed_error(const std::string& path, const LogVerdict& v);

// The keys that this user accepts: the host's own, its retired ones, the trust store's, and those in `files`.
Result<std::map<std::string, KnownKey>> accepted_keys(const std::string& state_dir, const std::string& config_dir,
                                                      const std::vector<std::string>& files);

}  // namespace h5i::evidence
