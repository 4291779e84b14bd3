// Rulesets to and from netlink messages, by libnftnl. Pure: nothing is sent here.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/nft/ruleset.hpp"

namespace h5i::nft {

// CREATE fails when the table exists; REPLACE fails when it does not. Either happens whole or not at all.
enum class Change { CREATE, REPLACE };

struct Batch {
  std::string bytes;          // begin, messages, end: one datagram
  uint32_t last_sequence = 0; // of the message whose acknowledgement is asked for
};
// TOO_LARGE when the messages do not fit into one datagram of the kernel's ordinary size.
Result<Batch> to_batch(const Ruleset& ruleset, Change change, uint32_t sequence);

// The inventory of a network namespace, a line for each thing: what a table, chain, rule, set, element, object or flow table
// is to the kernel, without handles and counts. Of two namespaces that hold the same it is the same text.
std::string inventory(const Ruleset& ruleset);

struct Count {
  std::string rule;  // its name
  uint64_t packets = 0, bytes = 0;
};

// Collects what dumps of the kernel say, in any order of kinds.
class Inventory {
 public:
  // One message of a dump; CORRUPT when it is none that the library can read.
  Result<void> add(const void* message);
  // The sets that were met: their elements come by dumps of their own.
  struct SetName {
    uint32_t family;
    std::string table, name;
  };
  const std::vector<SetName>& sets() const { return sets_; }
  const std::vector<Count>& counts() const { return counts_; }  // of rules with a name and a counter, in the order of their chain
  std::string text() const;

 private:
  std::vector<std::string> lines_;
  std::vector<SetName> sets_;
  std::vector<Count> counts_;
  std::map<std::string, size_t> rules_in_;  // of each chain, so far
};

// Line by line: "unexpected: ..." and "missing: ...", in turn. Empty: they hold the same.
std::vector<std::string> difference(std::string_view meant, std::string_view found);

}  // namespace h5i::nft
