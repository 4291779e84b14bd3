// The session log: one JSON object a line, each carrying the SHA-256 of the line before it. Append-only, one per box.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "core/base/ids.hpp"
#include "core/base/json.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::evidence {

// Who observed. Separate types, so that no function takes two lanes and returns a number.
enum class Lane { HOST_OBSERVED, ENGINE_CLAIMED, BOX_CLAIMED };
std::string_view lane_name(Lane l);  // "host-observed" ...

enum class Boundary { NONE, FS, NET, PROC, RESOURCE, PROVENANCE };
std::string_view boundary_name(Boundary b);
Boundary boundary_from(std::string_view name);  // NONE for a name that is none

// The channel that a record came in on decides this; nothing inside a record can.
struct Observer {
  Lane lane = Lane::HOST_OBSERVED;
  std::string who;  // "core", "spawner", "<plugin id>@<digest>", "box"
  static Observer core() { return {Lane::HOST_OBSERVED, "core"}; }
  static Observer spawner() { return {Lane::HOST_OBSERVED, "spawner"}; }
  static Observer plugin(const std::string& id, const PluginDigest& d) {
    return {Lane::HOST_OBSERVED, id + "@" + d.value};
  }
  static Observer box() { return {Lane::BOX_CLAIMED, "box"}; }
};

// On disk: {"v":1,"log":<log id>,"seq":N,"prev":<hex>,"time":RFC3339,"session":id or "","lane":..,"observer":..,
//           "boundary":.. (absent for NONE),"kind":..,"body":{...}}. `prev` of the first record is SHA-256 of the log
//           id's text.
struct Record {
  Observer observer = Observer::core();
  Boundary boundary = Boundary::NONE;
  std::string kind;   // "created", "run-requested", "run-refused", "plugin", "denial", "receipt", "violation", ...
  SessionId session;  // empty outside a run
  Json body = json::Object{};
};

struct Head {
  std::string log_id;
  uint64_t count = 0;  // records
  std::string digest;  // SHA-256 of the last line (without its newline), hex
};

class Log {
 public:
  // Opens for appending (creates with mode 0600 and a random log id when missing). A torn last line (crash while
  // writing) is cut off and recorded as a "torn" record with its bytes' digest.
  static Result<Log> open(const std::string& path);

  // Appends under flock(2), so that several processes may write one log. LOG_WRITE names the reason when it cannot.
  Result<Head> append(const Record& r);
  // Sets room on the disk aside for `bytes` more, which others cannot take: LOG_WRITE when there is none. Where the file
  // system cannot do that it is no failure.
  Result<void> reserve(uint64_t bytes);
  // fdatasync.
  Result<void> flush();
  const Head& head() const { return head_; }

 private:
  Result<void> refresh();
  Result<void> write_record(const Record& r);

  UniqueFd fd_;
  std::string path_;
  Head head_;
  uint64_t end_ = 0;                  // file size after our last look
  uint64_t reserved_ = 0;             // the disk holds room up to this offset
  uint64_t size_limit_ = UINT64_MAX;  // RLIMIT_FSIZE when the log was opened
};

// The head of a log from its last whole line, without opening it for writing and without checking the chain. Count 0
// when it holds no record.
Result<Head> read_head(const std::string& path);

// Calls `each` for every record in order until it returns false. Checks nothing of the chain; CORRUPT on a bad line.
Result<void> read_log(const std::string& path, const std::function<bool(uint64_t index, const Json& record)>& each);

struct Verified {
  uint64_t records = 0;
  bool sealed = false;        // a seal covers the last record or the one before the seal
  uint64_t sealed_count = 0;  // records that the newest seal covers
  std::string key_id;
  std::string log_id;
};
// Recomputes the chain alone: `sealed` stays false. On failure the error names the first bad record's index (from 0) in
// `evidence` as "record N: why". `expected_log_id`: refuse records of another log (LOG_FOREIGN). Signature checks are
// in verify.hpp (needs libcrypto).
Result<Verified> verify_chain(const std::string& path, const std::optional<std::string>& expected_log_id = {});

// Blobs: payloads addressed by SHA-256 in <box>/blobs/<first two>/<rest>, written once, 0600.
struct BlobRef {
  std::string sha256;
  uint64_t size = 0;
};
Result<BlobRef> put_blob(const std::string& blobs_dir, std::string_view bytes);
Result<std::string> get_blob(const std::string& blobs_dir, const std::string& sha256, uint64_t limit);

}  // namespace h5i::evidence
