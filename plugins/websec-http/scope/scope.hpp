// The scope of a session: what may be asked of whom. A value; the session's header holds its text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/scope/rule.hpp"

namespace h5i::websec {

constexpr size_t kMaxRules = 1000;

// Why a decision is what it is; `name()` is the word in the log.
enum class Reason {
  ALLOWED,
  SCHEME,       // neither http, https, ws nor wss
  DENY_RULE,    // a deny without a path
  NO_ALLOW,     // no allow has this scheme, host and port
  DENY_PATH,    // a deny with a path
  OTHER_PATH,   // allowed hosts, and none of their paths
};
std::string_view name(Reason reason);

struct Decision {
  enum class Verdict : uint8_t { NOT_LOOKED_AT, OTHER_HOST, OTHER_SCHEME, OTHER_PORT, OTHER_PATH, MATCHES };

  bool allowed = false;
  Reason reason = Reason::NO_ALLOW;
  std::vector<size_t> by;         // the rules that decided: one deny, or each allow that grants it, exact hosts before wildcards
  std::vector<Verdict> verdicts;  // one a rule
};

// What people are shown: a line, and what it rests on.
struct Explanation {
  std::string line;
  std::vector<Explanation> below;
  std::string text() const;  // a line each, two spaces deeper for each level
};

class Scope {
 public:
  // One rule a line; empty lines and lines that begin with # are skipped. H5I_E_INVALID names the line. A scope without an
  // allow is refused: its denies could only forbid what nothing permits.
  static sdk::Result<Scope> parse(std::string_view text);

  const std::vector<Rule>& rules() const { return rules_; }
  // Canonical: allows, then denies, each sorted, none twice. Reads back as the same scope.
  std::string text() const;

  Decision decide(const Url& url) const;
  // Names scheme, host, port and path of the URL: no credentials, no query.
  Explanation explain(const Url& url, const Decision& decision) const;
  // The first rule that decided, canonical; "" when none did.
  std::string rule_text(const Decision& decision) const { return decision.by.empty() ? "" : rules_[decision.by.front()].text(); }

  bool operator==(const Scope&) const = default;

 private:
  std::vector<Rule> rules_;  // in the order of text()
};

}  // namespace h5i::websec
