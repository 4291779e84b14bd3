#include "core/evidence/figures.hpp"

#include <algorithm>
#include <cstdio>

namespace h5i::evidence {
namespace {

// A label's value comes out of a file: a word of a few letters, or "other". So there are never many of them, and none needs an escape.
std::string word(const std::string& text) {
  constexpr size_t kLongest = 40;
  const bool plain = !text.empty() && text.size() <= kLongest && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == std::string::npos;
  return plain ? text : "other";
}

constexpr size_t kMostWords = 200;
template <class Map>
typename Map::mapped_type& at(Map& map, const std::string& key) {
  return map.size() >= kMostWords && !map.contains(key) ? map["other"] : map[key];
}

uint64_t amount(const Json& v) { return static_cast<uint64_t>(std::clamp<int64_t>(v.integer(), 0, int64_t{1} << 50)); }

std::string number(double d) {
  char out[40];
  snprintf(out, sizeof out, "%.10g", d);
  return out;
}

void head(std::string& out, const char* name, const char* type, const char* help) { out += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n"; }

void line(std::string& out, const std::string& name, const std::string& labels, const std::string& value) { out += name + (labels.empty() ? "" : "{" + labels + "}") + " " + value + "\n"; }
std::string label(const char* name, const std::string& value) { return std::string(name) + "=\"" + value + "\""; }

}  // namespace

void Figures::box(const std::string& state) { at(boxes_, word(state))++; }

void Figures::record(const Json& r) {
  if (r["observer"].string() != "core" || r["lane"].string() != "host-observed") return;
  const std::string& kind = r["kind"].string();
  const Json& body = r["body"];
  if (kind == "run-refused") at(refusals_, word(body["id"].string()))++;
  if (kind != "receipt") return;
  const std::string tier = word(body["tier"].string());
  const std::pair<std::string, std::string> key{tier, word(body["outcome"]["status"].string())};
  if (runs_.size() < kMostWords || runs_.contains(key)) runs_[key]++;
  else runs_[{"other", "other"}]++;
  Duration& d = at(seconds_, tier);
  const uint64_t us = amount(body["usage"]["wall_us"]);
  size_t i = 0;
  while (i < kSeconds.size() && static_cast<double>(us) > kSeconds[i] * 1e6) i++;
  d.classes[i]++;
  d.us += us;
  d.count++;
  for (const Json& x : body["denials"].array()) at(denials_, tier) += amount(x["count"]);
  if (body["network"].is_object()) at(packets_, tier) += amount(body["network"]["refused_packets"]);
}

std::string Figures::text(const std::string& version) const {
  std::string out;
  head(out, "h5i_build_info", "gauge", "The h5i that wrote this.");
  line(out, "h5i_build_info", label("version", version), "1");
  head(out, "h5i_boxes", "gauge", "Boxes of this user, by state.");
  for (const auto& [state, n] : boxes_) line(out, "h5i_boxes", label("state", state), std::to_string(n));
  head(out, "h5i_runs_total", "counter", "Runs with a receipt, by tier and how they ended.");
  for (const auto& [key, n] : runs_) line(out, "h5i_runs_total", label("tier", key.first) + "," + label("outcome", key.second), std::to_string(n));
  head(out, "h5i_run_duration_seconds", "histogram", "How long runs took, by tier.");
  for (const auto& [tier, d] : seconds_) {
    uint64_t sum = 0;
    for (size_t i = 0; i < d.classes.size(); i++) {
      sum += d.classes[i];
      line(out, "h5i_run_duration_seconds_bucket", label("tier", tier) + "," + label("le", i < kSeconds.size() ? number(kSeconds[i]) : "+Inf"), std::to_string(sum));
    }
    line(out, "h5i_run_duration_seconds_sum", label("tier", tier), number(static_cast<double>(d.us) / 1e6));
    line(out, "h5i_run_duration_seconds_count", label("tier", tier), std::to_string(d.count));
  }
  head(out, "h5i_run_refusals_total", "counter", "Runs that were refused before anything ran, by the refusal's id.");
  for (const auto& [id, n] : refusals_) line(out, "h5i_run_refusals_total", label("id", id), std::to_string(n));
  head(out, "h5i_denied_calls_total", "counter", "System calls of boxes that were refused and counted, by tier.");
  for (const auto& [tier, n] : denials_) line(out, "h5i_denied_calls_total", label("tier", tier), std::to_string(n));
  head(out, "h5i_egress_refused_packets_total", "counter", "Packets of boxes that their rules refused, by tier.");
  for (const auto& [tier, n] : packets_) line(out, "h5i_egress_refused_packets_total", label("tier", tier), std::to_string(n));
  head(out, "h5i_unreadable_logs", "gauge", "Logs that could not be read to their end.");
  line(out, "h5i_unreadable_logs", "", std::to_string(unreadable_));
  return out;
}

Json Figures::value() const {
  auto list = [](const std::map<std::string, uint64_t>& from, const char* name) {
    Json out = json::Array{};
    for (const auto& [key, n] : from) out.push(json::Object{{name, key}, {"count", n}});
    return out;
  };
  Json runs = json::Array{}, durations = json::Array{};
  for (const auto& [key, n] : runs_) runs.push(json::Object{{"tier", key.first}, {"outcome", key.second}, {"count", n}});
  for (const auto& [tier, d] : seconds_) {
    Json classes = json::Array{};
    for (size_t i = 0; i < d.classes.size(); i++) classes.push(json::Object{{"le", i < kSeconds.size() ? Json(kSeconds[i]) : Json()}, {"count", d.classes[i]}});
    durations.push(json::Object{{"tier", tier}, {"count", d.count}, {"us", d.us}, {"classes", std::move(classes)}});
  }
  return json::Object{{"boxes", list(boxes_, "state")}, {"runs", std::move(runs)}, {"durations", std::move(durations)}, {"refusals", list(refusals_, "id")}, {"denied_calls", list(denials_, "tier")},
                      {"egress_refused_packets", list(packets_, "tier")}, {"unreadable_logs", unreadable_}};
}

}  // namespace h5i::evidence
