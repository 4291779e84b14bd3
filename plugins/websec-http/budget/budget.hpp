// What a session may use up, all its acts together.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "h5i/plugin.hpp"

namespace h5i::websec {

struct Amounts {
  uint64_t sends = 0;
  uint64_t wire = 0;     // bytes of HTTP in both directions, as they were on the wire; TLS's own are not counted
  uint64_t decoded = 0;  // bytes of bodies, out of their codings
  uint64_t time_us = 0;  // of each send, added up

  bool operator==(const Amounts&) const = default;
};

// Of one send, by the body of its line "outcome"; null: nothing but the send itself. Numbers that no send can have count as the most that one can.
Amounts amounts_of(const json::Value& outcome);

// Not for several threads at once: the recorder asks it under its lock.
class Budget {
 public:
  // `limits`: {"sends": N, "wire_bytes": N, "decoded_bytes": N, "time_s": N}, each where there is one. `spent`: what the log says so far.
  Budget(const json::Value& limits, Amounts spent);
  // Counts one send that is to be made. Or says why it may not be made, and counts nothing.
  std::optional<std::string> take();
  // What a send that take() counted used up. It may go beyond a limit, and then nothing more is sent.
  void add(const json::Value& outcome);
  // Bytes that one more answer may have.
  uint64_t left_wire() const { return left(spent_.wire, wire_); }
  uint64_t left_decoded() const { return left(spent_.decoded, decoded_); }
  // "12 of 100 sends, 5120 of 1048576 bytes on the wire".
  std::string text() const;
  json::Value value() const;  // {"sends": {"spent": 12, "of": 100}, ...}

 private:
  static uint64_t left(uint64_t spent, const std::optional<uint64_t>& of) { return !of ? UINT64_MAX : *of > spent ? *of - spent : 0; }
  Amounts spent_;
  std::optional<uint64_t> sends_, wire_, decoded_, time_us_;
};

}  // namespace h5i::websec
