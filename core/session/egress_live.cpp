#include "core/session/egress_live.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/ids.hpp"
#include "core/base/text.hpp"

namespace h5i::session {
namespace {

using policy::EgressRule;

constexpr uint64_t kMostChanges = 64;  // each that names something leaves a mount in the box
constexpr size_t kMostRules = 256;

// The plan's file that tells a box the pinned names, when the tier made one of them.
Json* hosts_file(Json& plan, const std::string& pinned) {
  if (!plan["mounts"].is_array()) return nullptr;
  for (Json& m : plan["mounts"].make_array())
    if (m["kind"].string() == "file" && m["target"].string() == "/etc/hosts" && m["content"].string().ends_with(pinned)) return &m;
  return nullptr;
}

Json rule_texts(const Json& rules) {
  Json out = json::Array{};
  for (const Json& r : rules.array()) out.push(r["to"]);
  return out;
}

}  // namespace

Json egress_rules(const EgressHeld& held) {
  Json out = json::Array{};
  for (const Json& a : held.plan["network"]["egress"]["allow"].array())
    out.push(json::Object{{"rule", a["about"]}, {"addresses", a["addresses"]}, {"ports", a["ports"]}});
  return out;
}

Result<EgressChanged> change_egress(const EgressHeld& held, const Json& request) {
  if (request["schema"].string() != "h5i.egress-change/1" || request["rules"].array().empty() || request["rules"].array().size() > kMostRules)
    return make_error(Errc::INVALID, "not a change of egress rules", "schema, or the number of rules");
  if (held.plan["network"]["uplink"].string() == "none")
    return make_error(Errc::BOX_NO_EGRESS, "the box has no way out that rules could open", "it was started under a policy that denies all");
  EgressChanged out{held, Json(json::Array{}), Json(json::Array{})};
  json::Array& allow = out.held.plan["network"]["egress"]["allow"].make_array();
  const bool ipv6 = std::any_of(allow.begin(), allow.end(), [](const Json& a) {
    return std::any_of(a["addresses"].array().begin(), a["addresses"].array().end(), [](const Json& t) { return t.string().find(':') != std::string::npos; });
  });
  Addresses found;
  for (const auto& [name, list] : request["addresses"].object())
    for (const Json& text : list.array()) {
      auto a = text.string().find(':') == std::string::npos ? parse_ipv4(text.string()) : parse_ipv6(text.string());
      if (!a) return make_error(Errc::INVALID, "not an address", printable(text.string()));
      if (!a->v6 || ipv6) found[name].push_back(*a);
      else out.left_out.push(json::Object{{"rule", name}, {"address", text}});
    }
  const bool add = request["do"].string() == "add";
  if (!add && request["do"].string() != "remove") return make_error(Errc::INVALID, "neither add nor remove", printable(request["do"].string()));
  for (const Json& asked : request["rules"].array()) {
    EgressRule rule = H5I_TRY(policy::egress_from_json(asked));
    // What a profile opens of the host's loopback is no rule of this kind, and has an id that no rule has.
    auto at = std::find_if(allow.begin(), allow.end(), [&](const Json& a) { return a["about"].string() == rule.text(); });
    if (!add) {
      if (at == allow.end()) return make_error(Errc::NOT_FOUND, "the box holds no egress rule " + rule.text(), "h5i box egress list shows what it holds", "h5i box egress list BOX");
      allow.erase(at);
      out.done.push(rule.text());
      continue;
    }
    if (at != allow.end()) continue;
    Json one = H5I_TRY(destination(rule, found, "x" + std::to_string(++out.held.numbers), out.left_out));
    if (!ipv6 && rule.kind == EgressRule::Kind::NETWORK && rule.network.base.v6)
      return make_error(Errc::EGRESS_RESOLVE, "egress rule " + rule.text() + " leads nowhere", "the box was started without IPv6, because no rule named such an address");
    allow.push_back(std::move(one));
    out.done.push(rule.text());
  }
  out.held.hosts = hosts_lines(out.held.plan["network"]["egress"]["allow"]);
  if (Json* file = hosts_file(out.held.plan, held.hosts)) {
    const std::string& old = (*file)["content"].string();
    (*file)["content"] = old.substr(0, old.size() - held.hosts.size()) + out.held.hosts;
  }
  return out;
}

Result<EgressLive> EgressLive::open(const BoxPaths& paths, EgressHeld held, spawn::SpawnWatch* watch, Owner owner) {
  return EgressLive(H5I_TRY(ControlSocket::listen(paths)), std::move(held), watch, std::move(owner));
}

void EgressLive::started(pid_t workload) {
  std::string ns = "/proc/" + std::to_string(workload) + "/ns/";
  user_.reset(::open((ns + "user").c_str(), O_RDONLY | O_CLOEXEC));
  mnt_.reset(::open((ns + "mnt").c_str(), O_RDONLY | O_CLOEXEC));
}

void EgressLive::refuse(const UniqueFd& connection, const Error& e) {
  answer(connection, json::Object{{"error", e.id()}, {"what", e.what}, {"evidence", e.evidence}});
}

void EgressLive::on_request() {
  auto asked = control_.next();
  if (!asked) return;
  if (asked->request["do"].string() == "list")
    return answer(asked->connection, json::Object{{"rules", egress_rules(held_)}, {"effective_digest", owner_.effective_digest(held_)}});
  if (auto begun = begin(*asked); !begun) refuse(asked->connection, begun.error());
}

Result<void> EgressLive::begin(ControlSocket::Asked& asked) {
  if (pending_) return make_error(Errc::BUSY, "another change of this box's rules is being made", "one at a time");
  if (changes_.array().size() >= kMostChanges) return make_error(Errc::TOO_LARGE, "the rules of this run were changed too often", std::to_string(kMostChanges) + " times");
  EgressChanged next = H5I_TRY(change_egress(held_, asked.request));
  if (next.done.array().empty()) {
    answer(asked.connection, json::Object{{"changed", next.done}, {"not_pinned", next.left_out}, {"rules", egress_rules(held_)}, {"effective_digest", owner_.effective_digest(held_)}});
    return {};
  }
  Json request = json::Object{{"egress", next.held.plan["network"]["egress"]}};
  Json* file = hosts_file(next.held.plan, next.held.hosts);
  bool names = file && next.held.hosts != held_.hosts;
  if (names && (!user_ || !mnt_)) return make_error(Errc::TIER_SETUP, "the box cannot be told the names", "its mounts could not be opened when it started");
  if (names) request["hosts"] = (*file)["content"];
  Json body = json::Object{{"do", asked.request["do"]},
                           {"rules", next.done},
                           {"asked", rule_texts(asked.request["rules"])},
                           {"not_pinned", next.left_out},
                           {"by", json::Object{{"uid", asked.by.uid}, {"pid", asked.by.pid}}},
                           {"policy_digest", owner_.policy_digest},
                           {"effective_digest_before", owner_.effective_digest(held_)},
                           {"effective_digest", owner_.effective_digest(next.held)}};
  H5I_TRY(owner_.record("egress-asked", body));  // a change that nobody could tell of later is not made
  H5I_TRY(watch_->change_network(request, names ? user_.get() : -1, names ? mnt_.get() : -1));
  pending_ = Pending{std::move(asked.connection), std::move(next), std::move(body)};
  return {};
}

Result<void> EgressLive::on_said(const Json& said, bool certain) {
  if (!pending_) return make_error(Errc::PLUGIN_PROTOCOL, "the spawner answers what nobody asked");
  Pending p = std::move(*pending_);
  pending_.reset();
  if (said["error"].is_string()) {
    Error e = make_error(errc_from_id(said["error"].string()), printable(said["what"].string()), printable(said["evidence"].string()));
    p.body["error"] = json::Object{{"id", e.id()}, {"what", e.what}, {"evidence", e.evidence}};
    auto written = owner_.record(certain ? "egress-refused" : "egress-unknown", std::move(p.body));
    if (!certain) e = make_error(Errc::RUN_VIOLATION, "which rules hold the box's network is not known; the box is ended", e.what + ": " + e.evidence);
    refuse(p.connection, e);
    H5I_TRY(std::move(written));
    if (!certain) return e;
    return {};
  }
  p.body["rules_before"] = said["before"];
  p.body["rules_digest"] = said["rules"];
  held_ = std::move(p.next.held);
  H5I_TRY(owner_.record("egress-changed", p.body));
  Json told = p.body;
  told["at"] = rfc3339(realtime_ns());
  changes_.push(std::move(told));
  answer(p.connection, json::Object{{"changed", p.next.done}, {"not_pinned", p.next.left_out}, {"rules", egress_rules(held_)},
                                    {"effective_digest_before", p.body["effective_digest_before"]}, {"effective_digest", p.body["effective_digest"]}});
  return {};
}

}  // namespace h5i::session
