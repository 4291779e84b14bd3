// The log and the payloads of a websec session, as the one process that serves the session writes them. The folder comes by descriptor from
// the core; lane and observer are fixed here, so that nothing that a plugin says chooses them.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/evidence/log.hpp"

namespace h5i::host {

constexpr size_t kMaxSessionBody = 256u << 10;
constexpr size_t kMaxPayload = 64u << 20;

constexpr const char* kLogName = "log.jsonl";
constexpr const char* kPayloadsName = "blobs";  // a folder; the core makes it
constexpr const char* kStateName = "state";     // a folder too: what the engine keeps for itself from one act to the next, no evidence
constexpr const char* kCacheName = "index";     // in that one, what can be had from the log at any time: an engine that only looks writes here too

class SessionStore {
 public:
  // Makes the session's folder this process's working directory: names are relative to it from here on. The log is opened for writing by the
  // first append(), so that what only looks needs no right to write.
  static Result<SessionStore> open(const UniqueFd& folder, evidence::Observer observer);
  // The record's number. Several threads may be here, and beside one that flushes.
  Result<uint64_t> append(std::string kind, Json body);
  // What append() had returned for before is on the disk.
  Result<void> flush();
  Result<void> read(uint64_t from, const std::function<bool(const Json& record)>& each) const;
  // The log's whole lines from byte `offset` on, as they stand in it.
  Result<void> lines(uint64_t offset, const std::function<bool(std::string_view line)>& each) const;
  Result<std::string> put(std::string_view payload) const;  // its SHA-256
  Result<std::string> get(const std::string& sha256, uint64_t limit) const;

 private:
  explicit SessionStore(evidence::Observer observer) : observer_(std::move(observer)) {}
  std::unique_ptr<std::mutex> writing_ = std::make_unique<std::mutex>();
  std::optional<evidence::Log> log_;
  evidence::Observer observer_;
};

}  // namespace h5i::host
