// What a chosen tier must hold of a policy, and the refusals when it does not.
#include "core/policy/ceiling.hpp"
#include "core/policy/model.hpp"
#include "core/policy/resolve.hpp"

namespace h5i::policy {
namespace {

// At a confining tier these may be declared as not held; every other field is a refusal.
bool may_be_declared(std::string_view field) {
  return field == "resources.disk" || field == "resources.inodes" || field == "resources.cpus" || field == "net.loopback" ||
         field == "env.pass" || field == "env.set" || field == "container.image" || field == "browser.deny";
}

// Does the document say anything in this field that somebody has to hold?
bool asks(const Json& profile, std::string_view field) {
  const Json &fs = profile["fs"], &net = profile["net"], &env = profile["env"];
  if (field == "fs.read" || field == "fs.write") return true;  // what is not granted is not there
  if (field == "fs.deny") return !fs["deny"].array().empty();
  if (field == "fs.private") return !fs["private"].object().empty();
  if (field == "net.mode") return net["mode"].string() != "host";
  if (field == "net.egress") return !net["egress"].array().empty();
  if (field == "net.unix") return !net["unix"].boolean();
  if (field == "net.loopback") return !net["loopback"].array().empty();
  if (field == "env.pass") return true;
  if (field == "env.set") return !env["set"].object().empty();
  if (field == "container.image") return profile.object().contains("container");
  if (field == "browser.deny") return !profile["browser"]["deny"].array().empty();
  if (field.substr(0, 10) == "resources.") return profile["resources"].object().contains(field.substr(10));
  return false;
}

bool named_by_profile(const Json& profile, std::string_view field) {
  for (const Json& n : profile["resources"]["explicit"].array())
    if (field == "resources." + n.string()) return true;
  return false;
}

std::string origin(const Resolved& r, std::string_view field) {
  for (const auto& [name, where] : r.origins)
    if (name == field) return where;
  return r.defined_at;
}

}  // namespace

TierFacts facts_of(const TierId& tier, const std::set<std::string>& claims) {
  TierFacts f{tier, claims, false, false};
  for (const std::string& c : claims) f.confines = f.confines || c.substr(0, 3) == "fs." || c.substr(0, 4) == "net.";
  f.host_network = !claims.count("net.egress");
  return f;
}

TierFacts facts_from_probe(const Json& probe) {
  std::set<std::string> claims;
  for (const Json& c : probe["claims"].array()) claims.insert(c.string());
  return facts_of(TierId(probe["tier"].string()), claims);
}

std::vector<Unheld> unheld_fields(const Json& document, const TierFacts& facts) {
  const Json& profile = document["profile"];
  std::vector<Unheld> out;
  if (profile.object().contains("tools"))
    out.push_back({"proc.tools", "first-program-only", "the list is checked for the command that h5i starts; a shell can start anything"});
  for (std::string_view field : kFields) {
    if (!asks(profile, field) || facts.claims.count(std::string(field))) continue;
    out.push_back({std::string(field), facts.confines ? "no-claim" : "unconfined",
                   facts.confines ? "tier " + facts.tier.str() + " does not claim it on this host"
                                  : "tier " + facts.tier.str() + " confines nothing"});
  }
  return out;
}

Result<Resolved> with_tier(Resolved r, const TierFacts& facts) {
  const std::string& tier = facts.tier.str();
  if (!r.isolation.empty() && r.isolation != tier)
    return make_error(Errc::POLICY_ISOLATION, "the profile `" + r.profile + "` is for another tier",
                      r.isolation_at + " says " + r.isolation + "; chosen: " + tier);
  H5I_TRY(check_tier_allowed(r.host, tier, r.isolation_at));

  const Json& profile = r.document["profile"];
  if (profile["net"]["mode"].string() == "host" && facts.confines && !facts.host_network)
    return make_error(Errc::POLICY_FIELD_TIER, "net.mode: host cannot be given at tier " + tier, origin(r, "net.mode"));
  std::string defaults;
  for (const Unheld& u : unheld_fields(r.document, facts)) {
    if (u.field == "net.egress")
      return make_error(Errc::POLICY_EGRESS_TIER, "tier " + tier + " does not enforce egress rules",
                        origin(r, "net.egress") + " has " + std::to_string(profile["net"]["egress"].array().size()) + " of them");
    if (u.field == "container.image" && r.image_from == "flag")
      return make_error(Errc::POLICY_FIELD_TIER, "tier " + tier + " takes no image", "--image " + r.image);
    // Named by a file, a denial is a request of its own; a tier without a view has nothing to take the path out of.
    if (!facts.confines && u.field == "fs.deny" && !origin(r, u.field).ends_with("(built-in)"))
      return make_error(Errc::POLICY_FIELD_TIER, "tier " + tier + " cannot hide what fs.deny names: it confines nothing",
                        origin(r, u.field) + " names " + std::to_string(profile["fs"]["deny"].array().size()) + " of them");
    if (!facts.confines || u.field == "proc.tools" || may_be_declared(u.field)) continue;
    if (u.field.substr(0, 10) != "resources.")
      return make_error(Errc::POLICY_FIELD_TIER, "tier " + tier + " does not enforce " + u.field + " on this host", origin(r, u.field));
    if (named_by_profile(profile, u.field))
      return make_error(Errc::POLICY_LIMIT_TIER, "tier " + tier + " cannot hold " + u.field + " on this host",
                        origin(r, u.field) + " asks " + resource_text(u.field.substr(10), profile["resources"][u.field.substr(10)]));
    defaults += (defaults.empty() ? "" : ", ") + u.field;
  }
  if (!defaults.empty()) r.notes.push_back("not held at tier " + tier + ", built-in defaults only: " + defaults);

  if (!facts.confines) r.notes.push_back("tier " + tier + " confines nothing" + (r.isolation.empty() ? "" : "; named by " + r.isolation_at));
  r.document["tier"] = tier;
  r.digest = PolicyDigest(canonical_digest(r.document));
  return r;
}

}  // namespace h5i::policy
