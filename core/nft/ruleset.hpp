// One table of rules as a value: what a box's network namespace is to hold, and nothing else. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/nft/egress.hpp"

namespace h5i::nft {

// A closed block of (address, port) pairs; of one set all are disjoint and of one family.
struct Element {
  AddressRange address;
  PortRange ports;
};
struct Set {
  std::string name;
  bool v6 = false;
  std::vector<Element> elements;  // sorted
};

struct Match {
  enum class Kind {
    IN_INTERFACE,   // name
    OUT_INTERFACE,  // name
    REPLY,          // of a flow that the box began, or an error about one
    PROTOCOL,       // number: IPPROTO_TCP, ...
    NEIGHBOUR,      // number: a type of ICMPv6
    DESTINATION,    // name: a set; the packet's protocol and family are `protocol` and the set's
  };
  Kind kind;
  std::string name;
  uint8_t number = 0;
  Protocol protocol = Protocol::TCP;
};

struct Log {
  uint16_t group = 0;
  std::string prefix;
  uint32_t snap = 0;  // bytes of each packet that are told
};

enum class Verdict { NONE, ACCEPT, RESET, PROHIBITED };  // the last two refuse and say so to the sender

struct Rule {
  std::string name;  // kept by the kernel as the rule's comment; its counter is found by it
  std::vector<Match> matches;
  std::optional<Log> log;
  Verdict verdict = Verdict::NONE;
};

enum class Hook { INPUT, FORWARD, OUTPUT };
std::string_view hook_name(Hook h);

// What no rule accepts is dropped, in every chain.
struct Chain {
  Hook hook = Hook::INPUT;
  std::vector<Rule> rules;
};

struct Ruleset {
  std::string table;
  std::vector<Set> sets;
  std::vector<Chain> chains;

  // As `nft -s list table inet NAME` writes it: for people, receipts and a digest. Counters are not in it.
  std::string to_text() const;
};

constexpr const char* kTable = "h5i";
constexpr const char* kRefusedPrefix = "h5i-refused";
// The names of the rules whose counters say what was refused: of the last, and what the rest of a chain accepts beside `allow`.
constexpr const char* kRefusedRule = "refused";
std::string allow_rule_name(const Allow& a, bool v6);  // "allow ID v4"

// The rules that mean `egress` (checked): own loopback, replies inwards, neighbour discovery, the destinations; all else is
// counted, logged and refused. Outwards no rule looks at flows: what is taken out of `egress` ends at its next packet.
Ruleset ruleset_of(const Egress& egress);

}  // namespace h5i::nft
