#include "plugins/websec-http/scope/dial.hpp"

#include <algorithm>

namespace h5i::websec {
namespace {

Host host_of(const Address& a) {
  Host host;
  host.kind = a.v6 ? Host::Kind::IPV6 : Host::Kind::IPV4;
  host.address = a.bytes;
  host.text = a.v6 ? "[" + a.text() + "]" : a.text();
  return host;
}

// The deny that names this address, whatever name led to it.
const Rule* deny_of(const Scope& scope, const Url& url, const PathReadings& readings, const Host& at) {
  for (const Rule& rule : scope.rules())
    if (!rule.allow && rule.host.is_address() && rule.matches_origin(url, at) == Rule::Match::YES && rule.matches_path(readings)) return &rule;
  return nullptr;
}

}  // namespace

Dial choose_address(const Scope& scope, const Decision& decision, const Url& url, const std::vector<Address>& resolved) {
  Dial dial;
  if (!decision.allowed || decision.by.empty() || !url.host()) {
    dial.refusal = "the scope does not allow the URL";
    return dial;
  }
  if (resolved.empty() || resolved.size() > kMaxAddresses) {
    dial.refusal = url.hostname() + (resolved.empty() ? " has no address" : " has more than " + std::to_string(kMaxAddresses) + " addresses");
    return dial;
  }
  std::vector<Place> places;
  bool exact = !scope.rules()[decision.by.front()].wildcard;
  for (size_t i : decision.by) {
    const Rule& rule = scope.rules()[i];
    if (exact && rule.wildcard) continue;
    for (const Place& place : rule.places)
      if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
  std::string granted;
  for (const Place& place : places) granted += (granted.empty() ? "" : ", ") + place.text();

  PathReadings readings(url.path());
  auto literal = address_of(*url.host());
  for (const Address& address : resolved) {
    AddressVerdict v;
    v.address = address;
    v.kind = classify(address);
    const Rule* deny = deny_of(scope, url, readings, host_of(address));
    v.why = v.kind.name;
    if (deny) {
      v.why += ", and \"" + deny->text() + "\" forbids it";
    } else if (v.kind.name == "unspecified") {
      v.why += ", which the kernel takes for this machine: 127.0.0.1 or [::1] is its name";
    } else if (literal) {
      v.admitted = address == *literal;
      if (!v.admitted) v.why += ", and the URL names " + literal->text();
    } else {
      v.admitted = std::any_of(places.begin(), places.end(), [&](const Place& place) { return place.admits(address, v.kind); });
      if (!v.admitted) v.why += ", and the rule grants " + granted;
    }
    if (!v.admitted && dial.refusal.empty()) dial.refusal = url.hostname() + " leads to " + address.text() + ": " + v.why;
    dial.verdicts.push_back(std::move(v));
  }
  if (dial.refusal.empty()) dial.pinned = resolved.front();
  return dial;
}

}  // namespace h5i::websec
