#include "core/policy/ceiling.hpp"

#include <algorithm>
#include <optional>

namespace h5i::policy {
namespace {

std::string host_line(const Ceiling& c, const std::string& key) {
  auto it = c.lines.find(key);
  return it == c.lines.end() ? c.file : c.file + ":" + std::to_string(it->second);
}

Error above(const std::string& field, const std::string& asks, const std::string& where, const std::string& allows,
            const std::string& host) {
  return make_error(Errc::POLICY_CEILING, field + " is above the host's ceiling",
                    where + " asks " + asks + "; " + host + " allows " + allows);
}

int audit_rank(const std::string& capture) { return capture == "all" ? 2 : capture == "signal" ? 1 : 0; }

std::string text_of(const Json& list) {
  std::string out;
  for (const Json& v : list.array()) out += (out.empty() ? "" : ", ") + (v.is_object() ? v["to"].string() : v.string());
  return out.empty() ? "none" : out;
}

void check_resources(const Ceiling& c, Settings& settings, std::vector<std::string>& notes, std::vector<Error>& errors) {
  for (const auto& [name, largest] : c.resources) {
    std::string field = "resources." + name, host = host_line(c, field);
    Json limit = name == "cpus" ? Json(static_cast<double>(largest) / 100) : Json(largest);
    if (name == "cpus" && largest % 100 == 0) limit = Json(largest / 100);
    auto it = settings.find(field);
    if (it == settings.end()) {
      settings[field] = Setting{limit, "", c.file, {c.lines.count(field) ? c.lines.at(field) : 0, 1}, {}};
      notes.push_back(field + " is " + resource_text(name, limit) + ": " + host + " sets a ceiling and the profile no limit");
      continue;
    }
    if (it->second.value.number() <= limit.number()) continue;
    if (!it->second.builtin()) {
      errors.push_back(above(field, resource_text(name, it->second.value), it->second.where(), resource_text(name, limit), host));
      continue;
    }
    notes.push_back(field + " is " + resource_text(name, limit) + " instead of the built-in " +
                    resource_text(name, it->second.value) + ": the ceiling of " + host);
    it->second = Setting{limit, "", c.file, {c.lines.count(field) ? c.lines.at(field) : 0, 1}, {}};
  }
}

// Nothing when the ceiling covers the rule, or says nothing of egress.
std::optional<Error> egress_above(const Ceiling& c, const EgressRule& rule, const std::string& where) {
  if (!c.egress) return std::nullopt;
  for (const Json& r : c.egress->array())
    if (auto allowed = egress_from_json(r); allowed && covers(*allowed, rule)) return std::nullopt;
  return above("net.egress", rule.text() + (rule.private_ok ? " (private)" : ""), where, text_of(*c.egress), host_line(c, "net.egress"));
}

void check_egress(const Ceiling& c, const Settings& settings, std::vector<Error>& errors) {
  auto it = settings.find("net.egress");
  if (!c.egress || it == settings.end()) return;
  for (const Json& r : it->second.value.array()) {
    auto rule = egress_from_json(r);
    if (!rule) errors.push_back(rule.error());
    else if (auto error = egress_above(c, *rule, it->second.where_item(r["to"].string()))) errors.push_back(std::move(*error));
  }
}

void check_secrets(const Ceiling& c, const Settings& settings, std::vector<Error>& errors) {
  auto it = settings.find("secrets");
  if (it == settings.end()) return;
  for (const auto& [name, grant] : it->second.value.object()) {
    std::string source = grant["source"].string();
    std::string kind = source.substr(0, source.find(':'));
    if (c.secret_sources && std::find(c.secret_sources->begin(), c.secret_sources->end(), kind) == c.secret_sources->end()) {
      Json list = json::Array();
      for (const std::string& s : *c.secret_sources) list.push(s);
      errors.push_back(above("secrets." + name, "the source " + kind, it->second.where_item(name), text_of(list),
                             host_line(c, "secrets.sources")));
    }
    if (kind == "command" && c.command_extractors == false)
      errors.push_back(above("secrets." + name, "a command: source", it->second.where_item(name), "none",
                             host_line(c, "secrets.command_extractors")));
  }
}

}  // namespace

void apply_ceiling(const Ceiling& c, Settings& settings, std::vector<std::string>& notes, std::vector<Error>& errors) {
  check_resources(c, settings, notes, errors);
  check_egress(c, settings, errors);
  check_secrets(c, settings, errors);
  auto asks = [&](const char* field) {
    auto it = settings.find(field);
    return it == settings.end() ? nullptr : &it->second;
  };
  if (const Setting* s = asks("audit.capture"); s && c.audit && audit_rank(s->value.string()) < audit_rank(*c.audit))
    errors.push_back(above("audit.capture", s->value.string(), s->where(), "no less than " + *c.audit, host_line(c, "audit.capture")));
  if (const Setting* s = asks("net.mode"); s && s->value.string() == "host" && c.host_network == false)
    errors.push_back(above("net.mode", "host", s->where(), "deny", host_line(c, "net.host")));
  if (const Setting* s = asks("env.dangerous"); s && !s->value.array().empty() && c.env_dangerous == false)
    errors.push_back(above("env.dangerous", text_of(s->value), s->where(), "none", host_line(c, "env.dangerous")));
}

Result<void> check_egress_allowed(const HostPolicy& host, const EgressRule& rule, const std::string& asked_by) {
  for (const Ceiling& c : host.ceilings)
    if (auto error = egress_above(c, rule, asked_by)) return std::move(*error);
  return {};
}

Result<void> check_tier_allowed(const HostPolicy& host, const std::string& tier, const std::string& named_at) {
  for (const Ceiling& c : host.ceilings) {
    if (!c.tiers || std::find(c.tiers->begin(), c.tiers->end(), tier) != c.tiers->end()) continue;
    Json list = json::Array();
    for (const std::string& t : *c.tiers) list.push(t);
    return above("the tier", tier, named_at.empty() ? "the choice of tier" : named_at, text_of(list), host_line(c, "tiers.allowed"));
  }
  return {};
}

}  // namespace h5i::policy
