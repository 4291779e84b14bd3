// The receipt of a run and the one exit status that follows from it. Exit status, JSON and receipt come from the same
// Outcome by the same function, so that they cannot disagree (invariant I10).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/json.hpp"

namespace h5i::session {

struct Outcome {
  enum class Status { EXITED, SIGNALED, TIMEOUT, VIOLATION, SETUP_FAILED, CANCELLED, HOST_LOST };
  Status status = Status::SETUP_FAILED;
  int code = 0;               // exit status, or signal
  Errc reason = Errc::OK;     // why, for everything but EXITED and SIGNALED; also an exec that failed
  std::string detail;         // the evidence in words
};
std::string_view status_name(Outcome::Status s);  // "exited" ...

// cli.md: the command's own status; 124 deadline; 125 h5i refused or failed; 126 not executable; 127 not found; 128+n.
int exit_status_of(const Outcome& o);
// The same for a refusal before anything ran.
int exit_status_of(const Error& e);

struct Usage {
  uint64_t wall_us = 0, user_us = 0, system_us = 0, max_rss_kib = 0;
  std::string source;  // "cgroup", "wait4"
};

struct StreamReceipt {
  uint64_t bytes = 0, captured = 0;
  std::string sha256;  // of what was captured
  bool blob = false;   // it lies among the box's blobs
  bool truncated = false;
};

struct ReceiptInput {
  SessionId session;
  std::string box, tier;
  std::vector<std::string> command;  // redacted
  std::string cwd;
  bool shell = false;
  PolicyDigest policy_digest;
  EffectiveDigest effective_digest;
  Json not_enforced = json::Array{};
  std::string plugin_id, plugin_version;
  PluginDigest plugin_digest;
  Json network;  // null, or what went where
  Json attested = json::Object{}, self_reported = json::Object{};
  Outcome outcome;
  Usage usage;
  Json limits_reached = json::Array{};  // {field, count}, as far as a cgroup counted them
  Json denials = json::Array{}, unobserved = json::Array{}, survivors = json::Array{};
  StreamReceipt out, err;
  std::map<std::string, uint64_t> redactions;
  std::vector<std::string> env_not_passed;
  int64_t started_ns = 0, ended_ns = 0;
};
Json receipt_json(const ReceiptInput& in);

// {release, arch, boot_id, landlock_abi} of this machine.
Json kernel_facts();

}  // namespace h5i::session
