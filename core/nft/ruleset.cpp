#include "core/nft/ruleset.hpp"

#include <netinet/icmp6.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace h5i::nft {
namespace {

constexpr uint32_t kSnap = 128;  // both headers with their options, for the destination

const struct { uint8_t type; const char* name; } kNeighbour[] = {
    {ND_ROUTER_SOLICIT, "nd-router-solicit"}, {ND_ROUTER_ADVERT, "nd-router-advert"}, {ND_NEIGHBOR_SOLICIT, "nd-neighbor-solicit"}, {ND_NEIGHBOR_ADVERT, "nd-neighbor-advert"}};

std::string set_name(const Allow& a, bool v6) { return "to-" + a.id + (v6 ? "-v6" : "-v4"); }

Rule interface_rule(Match::Kind kind) { return {"loopback", {{kind, "lo"}}, {}, Verdict::ACCEPT}; }

void add_neighbours(Chain& c, std::initializer_list<uint8_t> types) {
  for (uint8_t type : types) c.rules.push_back({"neighbours", {{Match::Kind::NEIGHBOUR, "", type}}, {}, Verdict::ACCEPT});
}

std::string text_of(const Match& m, const std::vector<Set>& sets) {
  switch (m.kind) {
    case Match::Kind::IN_INTERFACE: return "iifname \"" + m.name + "\" ";
    case Match::Kind::OUT_INTERFACE: return "oifname \"" + m.name + "\" ";
    case Match::Kind::REPLY: return "ct state established,related ";
    case Match::Kind::PROTOCOL: return m.number == IPPROTO_TCP ? "meta l4proto tcp " : "meta l4proto " + std::to_string(m.number) + " ";
    case Match::Kind::NEIGHBOUR:
      for (const auto& n : kNeighbour)
        if (n.type == m.number) return std::string("icmpv6 type ") + n.name + " ";
      return "icmpv6 type " + std::to_string(m.number) + " ";
    case Match::Kind::DESTINATION: break;
  }
  auto set = std::find_if(sets.begin(), sets.end(), [&](const Set& s) { return s.name == m.name; });
  bool v6 = set != sets.end() && set->v6;
  return std::string(v6 ? "ip6" : "ip") + " daddr . " + std::string(protocol_name(m.protocol)) + " dport @" + m.name + " ";
}

std::string text_of(const Rule& r, const std::vector<Set>& sets) {
  std::string out;
  for (const Match& m : r.matches) out += text_of(m, sets);
  out += "counter";
  if (r.log) out += " log prefix \"" + r.log->prefix + "\" group " + std::to_string(r.log->group) + " snaplen " + std::to_string(r.log->snap);
  switch (r.verdict) {
    case Verdict::NONE: break;
    case Verdict::ACCEPT: out += " accept"; break;
    case Verdict::RESET: out += " reject with tcp reset"; break;
    case Verdict::PROHIBITED: out += " reject with icmpx admin-prohibited"; break;
  }
  return out + " comment \"" + r.name + "\"";
}

}  // namespace

std::string_view hook_name(Hook h) { return h == Hook::INPUT ? "input" : h == Hook::FORWARD ? "forward" : "output"; }

std::string allow_rule_name(const Allow& a, bool v6) { return "allow " + a.id + (v6 ? " v6" : " v4"); }

std::string Ruleset::to_text() const {
  std::string out = "table inet " + table + " {\n";
  for (const Set& s : sets) {
    out += "\tset " + s.name + " {\n\t\ttype " + (s.v6 ? "ipv6_addr" : "ipv4_addr") + " . inet_service\n\t\tflags interval\n";
    const char* before = "\t\telements = { ";
    for (const Element& e : s.elements) {
      out += before + nft::to_text(e.address) + " . " + nft::to_text(e.ports);
      before = ",\n\t\t\t     ";
    }
    out += " }\n\t}\n\n";
  }
  for (const Chain& c : chains) {
    out += "\tchain " + std::string(hook_name(c.hook)) + " {\n\t\ttype filter hook " + std::string(hook_name(c.hook)) + " priority filter; policy drop;\n";
    for (const Rule& r : c.rules) out += "\t\t" + text_of(r, sets) + "\n";
    out += &c == &chains.back() ? "\t}\n" : "\t}\n\n";
  }
  return out + "}\n";
}

Ruleset ruleset_of(const Egress& egress) {
  Ruleset r;
  r.table = kTable;
  Chain in{Hook::INPUT, {}}, forward{Hook::FORWARD, {}}, out{Hook::OUTPUT, {}};
  in.rules.push_back(interface_rule(Match::Kind::IN_INTERFACE));
  in.rules.push_back({"replies", {{Match::Kind::REPLY, ""}}, {}, Verdict::ACCEPT});
  add_neighbours(in, {ND_ROUTER_ADVERT, ND_NEIGHBOR_SOLICIT, ND_NEIGHBOR_ADVERT});
  out.rules.push_back(interface_rule(Match::Kind::OUT_INTERFACE));
  add_neighbours(out, {ND_ROUTER_SOLICIT, ND_NEIGHBOR_SOLICIT, ND_NEIGHBOR_ADVERT});
  for (const Allow& a : egress.allow)
    for (bool v6 : {false, true}) {
      Set s{set_name(a, v6), v6, {}};
      for (const AddressRange& address : a.addresses)
        if (address.from.v6 == v6)
          for (const PortRange& ports : a.ports) s.elements.push_back({address, ports});
      if (s.elements.empty()) continue;
      out.rules.push_back({allow_rule_name(a, v6), {{Match::Kind::DESTINATION, s.name, 0, a.protocol}}, {}, Verdict::ACCEPT});
      r.sets.push_back(std::move(s));
    }
  out.rules.push_back({kRefusedRule, {}, Log{egress.log_group, kRefusedPrefix, kSnap}, Verdict::NONE});
  out.rules.push_back({"reset", {{Match::Kind::PROTOCOL, "", IPPROTO_TCP}}, {}, Verdict::RESET});
  out.rules.push_back({"prohibited", {}, {}, Verdict::PROHIBITED});
  r.chains = {std::move(in), std::move(forward), std::move(out)};
  return r;
}

}  // namespace h5i::nft
