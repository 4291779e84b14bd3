#include "core/policy/explain.hpp"

#include "core/policy/model.hpp"

namespace h5i::policy {
namespace {

const Json& value_of(const Json& document, std::string_view field) {
  if (field == "audit.capture") return document["audit"]["capture"];
  const Json* at = &document["profile"];
  size_t dot = field.find('.');
  if (dot != std::string_view::npos) {
    at = &(*at)[field.substr(0, dot)];
    field = field.substr(dot + 1);
  }
  return (*at)[field];
}

std::string shown(std::string_view field, const Json& v) {
  if (field.substr(0, 10) == "resources.") return resource_text(field.substr(10), v);
  if (v.is_string()) return v.string();
  if (v.is_array()) {
    std::string out;
    for (const Json& item : v.array())
      out += (out.empty() ? "" : " ") + (item.is_string() ? item.string() : item.object().contains("to") ? item["to"].string() : json::canonical(item));
    return out.empty() ? "(empty list)" : out;
  }
  if (v.is_object()) {
    std::string out;
    for (const auto& [name, item] : v.object()) out += (out.empty() ? "" : " ") + name + "=" + (item.is_string() ? item.string() : json::canonical(item));
    return out.empty() ? "(empty map)" : out;
  }
  return json::canonical(v);
}

// The core itself checks or does these, whatever the tier.
bool held_by_core(std::string_view field) {
  return field == "isolation" || field == "tools" || field == "env.pass" || field == "env.set" || field == "env.dangerous" ||
         field == "audit.capture" || field == "command_extractors";
}

}  // namespace

std::vector<FieldLine> explain_fields(const Resolved& r, const std::set<std::string>& unheld,
                                      const std::set<std::string>& gaps) {
  std::vector<FieldLine> out;
  for (std::string_view name : kFields) {
    std::string field(name);
    const Json& v = value_of(r.document, name);
    if (v.is_null()) continue;
    FieldLine line{field, shown(name, v), "", "enforced"};
    for (const auto& [f, where] : r.origins)
      if (f == field) line.origin = where;
    if (line.origin.empty()) line.origin = r.profile_from == "file" ? r.defined_at : "default";
    bool grants = field == "secrets" || field == "auth";
    if (grants) line.state = v.object().empty() && v.array().empty() ? "enforced" : "refused";
    else if (held_by_core(name)) line.state = "core";
    else if (unheld.count(field)) line.state = "not enforced";
    else if (gaps.count(field)) line.state = "in part";
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace h5i::policy
