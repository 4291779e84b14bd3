#include "network_proof.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "canary.hpp"

namespace h5i::confined {
namespace {

using json::Object;

using Bytes = std::array<unsigned char, 16>;  // an IPv4 address mapped into IPv6, so that both compare alike

std::optional<Bytes> bytes_of(const std::string& address) {
  Bytes out{};
  if (inet_pton(AF_INET6, address.c_str(), out.data()) == 1) return out;
  out[10] = out[11] = 0xff;
  return inet_pton(AF_INET, address.c_str(), out.data() + 12) == 1 ? std::optional(out) : std::nullopt;
}

struct Range {
  std::string first;  // as text
  Bytes from, to;
};
// "a", "a/length", "a-b", as h5i.egress/1 writes them.
std::optional<Range> range_of(const std::string& text) {
  size_t cut = text.find_first_of("/-");
  std::string first = text.substr(0, cut);
  auto from = bytes_of(first);
  if (!from) return std::nullopt;
  if (cut == std::string::npos) return Range{first, *from, *from};
  if (text[cut] == '-') {
    auto to = bytes_of(text.substr(cut + 1));
    return to ? std::optional(Range{first, *from, *to}) : std::nullopt;
  }
  size_t length = static_cast<size_t>(atoi(text.c_str() + cut + 1)) + (first.find(':') == std::string::npos ? 96 : 0);
  Range r{first, *from, *from};
  for (size_t bit = length; bit < 128; bit++) r.to[bit / 8] = static_cast<unsigned char>(r.to[bit / 8] | 1u << (7 - bit % 8));
  return r;
}

bool within(const std::string& ports, unsigned port) {
  size_t dash = ports.find('-');
  auto from = static_cast<unsigned>(atoi(ports.c_str())), to = dash == std::string::npos ? from : static_cast<unsigned>(atoi(ports.c_str() + dash + 1));
  return from <= port && port <= to;
}

struct Destination {
  std::string protocol, address;
  unsigned port;
  std::string detail;
  Act act() const { return {"connect", protocol, address, std::to_string(port)}; }
  std::string told() const {  // as the report writes it
    return protocol + " " + (address.find(':') == std::string::npos ? address : "[" + address + "]") + ":" + std::to_string(port);
  }
};

bool named(const json::Value& egress, const Destination& d) {
  auto address = bytes_of(d.address);
  for (const json::Value& a : egress["allow"].array()) {
    if (a["protocol"].string() != d.protocol) continue;
    bool port = false, place = false;
    for (const json::Value& p : a["ports"].array()) port = port || within(p.string(), d.port);
    for (const json::Value& r : a["addresses"].array())
      if (auto range = range_of(r.string())) place = place || (range->from <= *address && *address <= range->to);
    if (port && place) return true;
  }
  return false;
}

// The first destination that the rules name, if any.
std::optional<Destination> first_named(const json::Value& egress) {
  for (const json::Value& a : egress["allow"].array())
    if (auto range = range_of(a["addresses"].array().empty() ? "" : a["addresses"].array()[0].string()))
      return Destination{a["protocol"].string(), range->first, static_cast<unsigned>(atoi(a["ports"].array()[0].string().c_str())), "a destination that the policy names"};
  return std::nullopt;
}

std::vector<Destination> forbidden(const json::Value& egress, const std::optional<Destination>& allowed) {
  std::vector<Destination> out = {{"tcp", "198.51.100.77", 443, "a host that the policy does not name"},
                                  {"udp", "198.51.100.77", 443, "the same by QUIC's protocol"},
                                  {"udp", "203.0.113.77", 53, "a name server"},
                                  {"tcp", "169.254.169.254", 80, "the address of cloud metadata"},
                                  {"tcp", "192.0.2.3", 22, "the uplink's own network"},
                                  {"tcp", "2001:db8:77::7", 443, "a host that the policy does not name, by IPv6"}};
  if (allowed)
    for (unsigned port : {9u, 25u, 6667u}) {
      Destination other{"tcp", allowed->address, port, "another port of a host that the policy names"};
      if (named(egress, other)) continue;
      out.push_back(other);
      break;
    }
  std::erase_if(out, [&](const Destination& d) { return named(egress, d); });
  return out;
}

uint64_t packets(const json::Value& list, const Destination& d) {
  for (const json::Value& e : list.array())
    if (e["to"].string() == d.told()) return static_cast<uint64_t>(e["packets"].integer());
  return 0;
}

sdk::Result<json::Value> report(const sdk::Host& host, const json::Value& plan, const std::vector<Destination>& to) {
  std::vector<Act> acts;
  for (const Destination& d : to) acts.push_back(d.act());
  if (acts.empty()) acts.push_back({"ids"});
  std::vector<Line> lines = H5I_SDK_TRY(perform(host, inside(plan, acts), acts.size()));
  json::Value out = lines.back().value;
  if (out["schema"].string() != "h5i.network/1") return sdk::failure(H5I_E_TIER_SETUP, "the network of the test program was not reported on");
  return out;
}

}  // namespace

sdk::Result<std::string> prove_network(const sdk::Host& host, const json::Value& plan, json::Array& rows, json::Array& unproved, bool& all_held) {
  const json::Value& egress = plan["network"]["egress"];
  std::optional<Destination> allowed = first_named(egress);
  std::vector<Destination> refused = forbidden(egress, allowed), all = refused;
  if (allowed) all.push_back(*allowed);
  json::Value exact = H5I_SDK_TRY(report(host, plan, all));

  json::Value open = plan;
  json::Array allow;
  for (size_t i = 0; i < refused.size(); i++)
    allow.push_back(Object{{"id", "control-" + std::to_string(i)}, {"about", "control"}, {"protocol", refused[i].protocol}, {"addresses", json::Array{refused[i].address}},
                           {"ports", json::Array{std::to_string(refused[i].port)}}});
  open["network"]["egress"]["allow"] = std::move(allow);
  open["network"]["host_loopback"] = false;  // nobody but h5i answers here
  json::Value control = H5I_SDK_TRY(report(host, open, refused));

  for (const Destination& d : refused) {
    if (packets(control["arrived"], d) == 0) {
      unproved.push_back("net.egress (" + d.detail + "): with rules that name it, it is not reached either");
      continue;
    }
    bool through = packets(exact["arrived"], d) > 0, counted = packets(exact["refused"], d) > 0;
    all_held = all_held && !through && counted;
    rows.push_back(Object{{"claim", "net.egress"}, {"control", "ok"}, {"negative", through ? "succeeded" : counted ? "refused" : "neither reached nor refused"},
                          {"expected", json::Array{"refused"}}, {"ok", !through && counted}, {"detail", d.detail + " (" + d.told() + ")"}});
  }
  if (exact["changed"].boolean() || control["changed"].boolean()) {
    all_held = false;
    rows.push_back(Object{{"claim", "net.egress"}, {"control", "ok"}, {"negative", "succeeded"}, {"expected", json::Array{"refused"}}, {"ok", false}, {"detail", "the rules were changed from within"}});
  }
  if (allowed && packets(exact["arrived"], *allowed) == 0) return "a destination that the policy names was not reached: " + allowed->told() + "; ";
  return std::string();
}

}  // namespace h5i::confined
