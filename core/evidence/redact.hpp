// Redaction of captured output: exact values first (also in base64, percent and JSON escapes, across chunk edges), then
// patterns of common credentials. Always runs; linear time; names rules and counts, never values.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace h5i::evidence {

class Redactor {
 public:
  // `values`: exact secrets to scrub. Each value of 4 bytes or more; shorter ones are ignored and counted as "too-short".
  explicit Redactor(std::vector<std::string> values = {});
  ~Redactor();
  Redactor(Redactor&&) noexcept;
  // Feed in order; what is returned is final. Holds back at most kHold bytes that may begin a secret.
  std::string feed(std::string_view chunk);
  std::string finish();
  const std::map<std::string, uint64_t>& counts() const;  // rule id -> replacements
  static constexpr size_t kHold = 16384;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
std::string redact(std::string_view text, std::map<std::string, uint64_t>* counts = nullptr);

// Where a file that is about to leave a box holds what looks like a credential. Example values of documentation are left
// out of this report (never of redaction). At most kMostSecrets, in order.
struct SecretFound {
  std::string rule;
  size_t line = 0;  // from 1
};
inline constexpr size_t kMostSecrets = 1000;
std::vector<SecretFound> secrets_in(std::string_view text);

}  // namespace h5i::evidence
