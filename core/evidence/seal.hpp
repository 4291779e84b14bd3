// The signed head of a log, as a document. Its signature is made and checked in signing.hpp (needs libcrypto).
#pragma once
#include <optional>
#include <string>

#include "core/base/json.hpp"

namespace h5i::evidence {

// On disk and in the git ref: one line of canonical JSON of schema "h5i.seal/1". The signature is over the canonical
// JSON of the same object without its member "signature".
struct Seal {
  std::string log_id;
  uint64_t count = 0;  // records that it covers
  std::string head;    // SHA-256 of record count-1, hex
  uint64_t bytes = 0;  // of the log up to the end of that record, so that sealing again need not read it all
  std::string time;    // RFC 3339, when it was signed
  std::string key_id;
  std::string signature;  // 64 bytes

  std::string signed_bytes() const;
  // What is stored beside the log, kept by the host and published as a git ref: a line with its newline.
  std::string to_bytes() const;
  // LOG_SEAL when it is not such a document. Says nothing of the signature.
  static Result<Seal> from_bytes(std::string_view bytes);
};

// The seal beside a log: "<log>.seal".
std::string seal_path(const std::string& log_path);
// The newest seal that this host made, by log id, whatever happened to the log's own folder.
std::string kept_seal_path(const std::string& state_dir, const std::string& log_id);

// NOT_FOUND when there is none.
Result<Seal> read_seal(const std::string& path);

// For status lines: how far the seal beside the log covers it, by its own word. Cheap; proves nothing.
struct SealState {
  uint64_t records = 0;
  uint64_t sealed = 0;  // 0: unsealed
  bool whole() const { return records > 0 && sealed == records; }
};
Result<SealState> seal_state(const std::string& log_path);

// Starts `h5i-evidence seal-head LOG` and does not wait for it: own session, no descriptor of ours or of whoever
// started us, of the environment only where the user's directories are. `executable`: absolute, or /proc/self/fd/N of
// the opened file.
Result<void> start_sealing(const std::string& executable, const std::string& log_path);

}  // namespace h5i::evidence
