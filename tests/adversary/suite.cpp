#include "tests/adversary/suite.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/adversary/world.hpp"
#include "tests/cli/program.hpp"

namespace h5i::adversary {
namespace {

constexpr int kTriesSeconds = 300;  // of all tries of one run
constexpr const char* kNothingConfined = "nothing was confined";
constexpr const char* kWhere[] = {"", " in bare namespaces", " as root"};  // by Ground

bool among(const Answers& list, const std::string& word) { return std::find(list.begin(), list.end(), word) != list.end(); }

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : between) + w;
  return out;
}

std::map<std::string, int64_t> counts(const Json& receipt) {
  std::map<std::string, int64_t> out;
  for (const Json& d : receipt["denials"].array()) out[d["syscall"].string()] += d["count"].integer();
  return out;
}

class Driver {
 public:
  explicit Driver(const Target& t) : target_(t), world_(t) {}

  void run(const std::vector<const Case*>& cases) {
    if (target_.tier == "supervised") return together(cases);
    for (const Case* c : cases) {
      confined({c});
      granted({c});
      control(*c);
    }
  }
  // What a tier that confines nothing owes for each case: to say so.
  void unconfined(const Case& c) {
    case_ = &c;
    place_ = "declared";
    if (plain_.is_null()) plain_ = world_.box("plain").tries({{"sleep", "0"}}).receipt;
    bool said = false;
    for (const Json& n : plain_["not_enforced"].array())
      said |= (c.claim.empty() || n["field"].string() == c.claim) && n["detail"].string().find(kNothingConfined) != std::string::npos;
    found(c.claim.empty() ? "not_enforced" : c.claim, said, said ? "said" : "the receipt does not say that nothing was confined");
  }

  Report take() { return std::move(report_); }

 private:
  void found(const std::string& act, bool ok, std::string words) {
    if (show_) {
      printf("  %.1f %s %s: %s: %s\n", test::now() - begun_, case_->id.c_str(), place_.c_str(), act.c_str(), words.c_str());
      fflush(stdout);
    }
    report_.findings.push_back({case_->id, place_, act, ok, std::move(words)});
  }

  // One run for all tries of words; a scene makes its own.
  std::vector<std::pair<const Try*, std::string>> perform(const Place& place, const std::vector<const Try*>& list, Ran* ran) {
    std::vector<std::vector<std::string>> words;
    for (const Try* t : list)
      if (!t->scene) words.push_back(!place.inside() && t->bare.empty() && !t->outside.empty() ? t->outside : t->words);
    if (!words.empty()) *ran = place.tries(words, kTriesSeconds);
    std::vector<std::pair<const Try*, std::string>> out;
    size_t at = 0;
    for (const Try* t : list) {
      std::string answer = t->scene ? t->scene(place) : ran->answers[at++];
      out.emplace_back(t, answer.empty() ? "no answer" : answer);
    }
    return out;
  }

  // A tier that does not hold files refuses what a profile names of them, so it has profiles of its own.
  std::string profile(const Case& c) const {
    if (target_.tier == "workspace") return c.profile == "short" ? "plain-short" : "plain";
    bool holds_files = target_.tier == "process" || target_.tier == "supervised" || among(target_.claims, "fs.read");
    return holds_files ? c.profile : "bare";
  }

  static std::vector<const Try*> all(const Case& c) {
    std::vector<const Try*> out;
    for (const Try& t : c.tries) out.push_back(&t);
    return out;
  }

  // A start at this tier is dear, in a guest above all: the tries of all cases that have a profile in common are made in one run of a box.
  void together(const std::vector<const Case*>& cases) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<const Case*>> by_profile;
    for (const Case* c : cases) {
      if (c->tries.empty()) continue;
      auto& list = by_profile[c->profile];
      if (list.empty()) order.push_back(c->profile);
      list.push_back(c);
    }
    for (const std::string& p : order) confined(by_profile[p]);
    granted(cases);
    for (const Case* c : cases) control(*c);
  }

  // The tries of words of all of them in one run; then the scenes of each, which make their own.
  void confined(const std::vector<const Case*>& cases) {
    std::vector<std::pair<const Case*, const Try*>> list;
    std::vector<const Try*> words;
    for (const Case* c : cases)
      for (const Try& t : c->tries)
        if (!t.scene) list.emplace_back(c, &t), words.push_back(&t);
    if (cases.empty() || cases[0]->tries.empty()) return;
    place_ = "confined";
    case_ = cases[0];
    world_.reset();
    std::string why;
    Place box = world_.box(profile(*cases[0]), &why);
    if (!box.inside()) return found(profile(*cases[0]), false, "no box: " + why);
    Ran ran;
    std::map<std::string, std::pair<const Case*, int64_t>> owed;
    std::map<const Case*, bool> went_through;
    auto judge = [&](const Case& c, const Try& t, const std::string& answer) {
      case_ = &c;
      bool held = among(t.right, answer) || (off(c) && among(t.control, answer));
      went_through[&c] |= !among(t.right, answer);
      found(joined(t.words), held, held ? answer : "gives " + answer + ", and should give " + joined(t.right, " or ") + ran.err);
      if (!t.counted.empty()) owed[t.counted].first = &c, owed[t.counted].second++;
    };
    std::vector<std::pair<const Try*, std::string>> answers = perform(box, words, &ran);
    for (size_t i = 0; i < list.size(); i++) judge(*list[i].first, *list[i].second, answers[i].second);
    std::string changed = words.empty() || cases.size() == 1 ? "" : world_.changed();
    for (const Case* c : cases) {
      if (cases.size() > 1 && std::any_of(c->tries.begin(), c->tries.end(), [](const Try& t) { return t.scene != nullptr; })) world_.reset();
      for (const Try& t : c->tries)
        if (t.scene) {
          Ran own;
          for (const auto& [scene, answer] : perform(box, {&t}, &own)) judge(*c, *scene, answer);
        }
    }
    auto counted = counts(ran.receipt);
    for (const auto& [name, o] : owed) {
      case_ = o.first;
      if (counted[name] < o.second)
        found("denials of " + name, false, "the receipt counts " + std::to_string(counted[name]) + ", " + std::to_string(o.second) + " were refused");
    }
    for (const auto& [c, t] : list) {
      case_ = c;
      if (!t->told.empty()) found(t->told, told(ran.receipt, world_.fill(t->told, box)), "refused packets to it in the receipt: " + json::canonical(ran.receipt["network"]["refused"]));
    }
    case_ = cases[0];
    if (!words.empty() && ran.receipt.is_null()) found("receipt", false, "there is none: " + ran.err);
    for (const Case* c : cases) {
      case_ = c;
      if (!c->declared.empty()) declared(ran, box, c->declared);
      if (went_through[c] && off(*c)) declared(ran, box, c->written_off->field);
    }
    case_ = cases[0];
    if (changed.empty()) changed = world_.changed();
    if (!changed.empty()) found("host", false, changed);
  }

  bool off(const Case& c) const { return c.written_off && c.written_off->missing.proved(world_); }

  static bool told(const Json& receipt, const std::string& to) {
    for (const Json& r : receipt["network"]["refused"].array())
      if (r["to"].string() == to && r["packets"].integer() > 0) return true;
    return false;
  }

  void declared(const Ran& ran, const Place& box, const std::string& field) {
    Json receipt = ran.receipt.is_null() ? box.tries({{"sleep", "0"}}).receipt : ran.receipt;
    for (const Json& n : receipt["not_enforced"].array())
      if (n["field"].string() == field) return found(field, true, "declared as not enforced");
    found(field, false, "the receipt does not declare it as not enforced");
  }

  // What one profile grants in one run, as above.
  void granted(const std::vector<const Case*>& cases) {
    std::map<std::string, std::vector<const Try*>> by_profile;
    std::map<const Try*, const Case*> of;
    for (const Case* c : cases)
      for (const Try& t : c->tries)
        if (!t.grant.empty()) by_profile[t.grant].push_back(&t), of[&t] = c;
    for (const auto& [profile, list] : by_profile) {
      // At supervised the host's network cannot be granted; that it is refused, and what a rule grants there, are cases of group D.
      if (target_.tier == "supervised" && profile == "host") continue;
      place_ = "granted by " + profile;
      case_ = of[list[0]];
      world_.reset();
      std::string why;
      Place box = world_.box(profile, &why);
      if (!box.inside()) {
        found(profile, false, "no box: " + why);
        continue;
      }
      Ran ran;
      for (const auto& [t, answer] : perform(box, list, &ran)) {
        case_ = of[t];
        bool works = among(t->control, answer);
        found(joined(t->words), works, works ? answer : "gives " + answer + " although it is granted; " + ran.err);
      }
    }
  }

  // Where the user may not do it, in bare namespaces; where that is not enough, by root. What nobody can do here needs a proof of what is missing.
  void control(const Case& c) {
    case_ = &c;
    if (c.tries.empty()) return;
    place_ = "unconfined";
    std::vector<const Try*> left = all(c);
    std::map<const Try*, std::string> said;
    std::string err;
    for (Ground g : kGrounds) {
      std::vector<const Try*> list, rest;
      for (const Try* t : left) {
        bool here = t->scene ? g == Ground::host : t->bare.empty() || g == Ground::bare;
        (here ? list : rest).push_back(t);
      }
      if (list.empty() || !world_.has(g)) continue;
      world_.reset();
      Ran ran;
      for (const auto& [t, answer] : perform(world_.outside(g), list, &ran)) {
        said[t] += (said[t].empty() ? "" : ", ") + answer + kWhere[static_cast<size_t>(g)];
        if (!among(g == Ground::bare && !t->bare.empty() ? t->bare : t->control, answer)) {
          rest.push_back(t);
          continue;
        }
        report_.controls[static_cast<size_t>(g)]++;
        report_.by_another += t->bare.empty() && !t->outside.empty() && t->outside != t->words;
        found(joined(t->words), true, answer + kWhere[static_cast<size_t>(g)]);
      }
      err += ran.err;
      left = rest;
    }
    for (const Try* t : left) without(*t, said[t], err);
    world_.reset();
  }

  void without(const Try& t, const std::string& said, const std::string& err) {
    std::string why;
    if (t.needs && t.needs->proved(world_)) why = "this kernel lacks " + t.needs->interface;
    // The same row must have its control where root runs the suite.
    else if (!world_.has(Ground::root) && (said.ends_with("EPERM" + std::string(kWhere[1])) || said.ends_with("EACCES" + std::string(kWhere[1]))))
      why = "only the machine's root may, who does not run this";
    if (why.empty()) return found(joined(t.words), false, "the control gives " + said + ", so that a refusal would prove nothing; " + err);
    report_.without[why].push_back(joined(t.words));
    found(joined(t.words), true, "no control here: " + why + "; " + said);
  }

  const Target& target_;
  World world_;
  const Case* case_ = nullptr;
  std::string place_;
  Json plain_;
  const bool show_ = getenv("H5I_ADVERSARY_SHOW") != nullptr;
  const double begun_ = test::now();
  Report report_;
};

}  // namespace

std::vector<std::string> Report::failures() const {
  std::vector<std::string> out;
  for (const Finding& f : findings)
    if (!f.ok) out.push_back(f.id + " " + f.place + ": " + f.act + ": " + f.words);
  return out;
}

std::string Report::counts() const {
  size_t none = 0;
  for (const auto& [why, acts] : without) none += acts.size();
  std::string out = std::to_string(findings.size()) + " findings; acts with a control: " + std::to_string(controls[0]) + " as the user, " +
                    std::to_string(controls[1]) + " in bare namespaces, " + std::to_string(controls[2]) + " as root (" + std::to_string(by_another) + " by another act); without: " +
                    std::to_string(none) + "\n";
  for (const auto& [why, acts] : without) out += "  " + std::to_string(acts.size()) + ": " + why + ": " + joined(acts, ", ") + "\n";
  return out;
}

bool concerns(const Case& c, const Target& t) {
  if (t.tier == "process") return c.must.find_first_of("PK") != std::string::npos;
  // What is the core's alone is tried at the tiers that every machine has.
  if (t.tier == "supervised") return c.must.find('S') != std::string::npos;
  // What the core alone holds, it holds at every tier.
  if (t.tier == "workspace") return c.must.find('W') != std::string::npos || c.must == "K";
  // What only a tier with packet rules and a cgroup must hold, others may claim in part.
  return among(t.claims, c.claim) && (c.must != "S" || among(t.claims, "net.egress"));
}

Report run(const Target& t, const std::vector<std::string>& only) {
  Driver driver(t);
  std::vector<const Case*> cases;
  // The cases of `supervised` alone have profiles that a tier without packet rules refuses.
  for (const Case& c : table()) {
    if (!only.empty() && !among(only, c.id)) continue;
    if (concerns(c, t)) cases.push_back(&c);
    else if (t.tier == "workspace" && !c.tries.empty() && c.must != "S") driver.unconfined(c);
  }
  driver.run(cases);
  return driver.take();
}

}  // namespace h5i::adversary
