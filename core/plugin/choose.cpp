#include "core/plugin/choose.hpp"

#include <algorithm>

namespace h5i::plugin {
namespace {

constexpr std::string_view kUnconfined = "workspace";

// Tiers that need an image or a root directory to run anything.
bool needs_image(std::string_view tier) { return tier == "container" || tier == "microvm"; }

struct Passed {
  PluginInfo plugin;
  Json probe;
};

Result<void> check_available(const PluginInfo& plugin, const Json& probe) {
  if (probe["available"].boolean()) return {};
  std::string missing, why;
  for (const Json& m : probe["missing"].array()) missing += (missing.empty() ? "" : ", ") + m.string();
  for (const Json& c : probe["components"].array())
    if (!c["ok"].boolean() && why.empty()) why = c["evidence"].string();
  return make_error(
      Errc::TIER_PROBE_MISSING, "tier " + plugin.id + " is impossible here",
      "missing " + (missing.empty() ? "(the tier does not say what)" : missing) + (why.empty() ? "" : ": " + why));
}

Result<Passed> try_tier(std::string_view id, const ChooseCalls& calls) {
  Passed p;
  p.plugin = H5I_TRY(calls.find(id));
  p.probe = H5I_TRY(calls.probe(p.plugin));
  H5I_TRY(check_available(p.plugin, p.probe));
  H5I_TRY(calls.suits(p.plugin, p.probe));
  H5I_TRY(calls.verify(p.plugin));
  return p;
}

std::vector<std::string> order_of(const ChooseInput& input) {
  std::vector<std::string> order = input.order.empty() ? built_in_order() : input.order;
  bool listed = std::find(order.begin(), order.end(), kUnconfined) != order.end();
  if (input.allow_unconfined && !listed) order.emplace_back(kUnconfined);
  return order;
}

// Worth a line only when a person could have had more: an image tier is installed and lost for want of an image.
std::string tip_for(const TierChoice& choice, const ChooseCalls& calls) {
  std::string could;
  for (const Skipped& s : choice.skipped)
    if (needs_image(s.tier) && s.why.code == Errc::TIER_PROBE_MISSING && calls.find(s.tier))
      could += (could.empty() ? "" : " and ") + s.tier;
  return could.empty() || needs_image(choice.plugin.id) ? "" : "tip: with --image, auto would also try " + could;
}

}  // namespace

const std::vector<std::string>& built_in_order() {
  static const std::vector<std::string> kOrder = {"microvm", "supervised", "container", "process"};
  return kOrder;
}

std::string skip_line(const Skipped& s) {
  return "skipped " + s.tier + ": " + std::string(s.why.id()) + ", " + s.why.what +
         (s.why.evidence.empty() ? "" : " (" + s.why.evidence + ")");
}

std::vector<std::string> TierChoice::lines() const {
  std::vector<std::string> out = {"tier " + plugin.id + " (from " + from + ")"};
  for (const Skipped& s : skipped) out.push_back(skip_line(s));
  if (!tip.empty()) out.push_back(tip);
  return out;
}

Result<TierChoice> choose_tier(const ChooseInput& input, const ChooseCalls& calls) {
  std::string named, from;
  if (!input.flag.empty() && input.flag != "auto")
    named = input.flag, from = "flag";
  else if (!input.profile.empty())
    named = input.profile, from = "profile";
  else if (input.flag.empty() && !input.environment.empty() && input.environment != "auto")
    named = input.environment, from = "environment";
  if (!named.empty()) {
    Passed p = H5I_TRY(try_tier(named, calls));
    return TierChoice{std::move(p.plugin), std::move(p.probe), from, {}, {}};
  }

  TierChoice choice;
  choice.from = "auto";
  for (const std::string& id : order_of(input)) {
    if (needs_image(id) && !input.image) {
      choice.skipped.push_back({id, make_error(Errc::TIER_PROBE_MISSING, "tier " + id + " needs an image",
                                               "none is set", "--image NAME, or container.image in the profile")});
      continue;
    }
    auto tried = try_tier(id, calls);
    if (!tried) {
      choice.skipped.push_back({id, tried.error()});
      continue;
    }
    choice.plugin = std::move(tried->plugin);
    choice.probe = std::move(tried->probe);
    choice.tip = tip_for(choice, calls);
    return choice;
  }
  std::string reasons;
  for (const Skipped& s : choice.skipped) reasons += (reasons.empty() ? "" : "; ") + skip_line(s);
  return make_error(Errc::TIER_NONE, "no tier that confines can hold this profile here", reasons);
}

}  // namespace h5i::plugin
