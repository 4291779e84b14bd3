#include "tests/adversary/suite.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "tests/adversary/world.hpp"

namespace h5i::adversary {
namespace {

constexpr const char* kNothingConfined = "nothing was confined";

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

  void run(const Case& c) {
    case_ = &c;
    confined();
    granted();
    control();
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
    report_.findings.push_back({case_->id, place_, act, ok, std::move(words)});
  }

  // One run for all tries of words; a scene makes its own.
  std::vector<std::pair<const Try*, std::string>> perform(const Place& place, const std::vector<const Try*>& list, Ran* ran) {
    std::vector<std::vector<std::string>> words;
    for (const Try* t : list)
      if (!t->scene) words.push_back(!place.inside() && !t->outside.empty() ? t->outside : t->words);
    if (!words.empty()) *ran = place.tries(words);
    std::vector<std::pair<const Try*, std::string>> out;
    size_t at = 0;
    for (const Try* t : list) {
      std::string answer = t->scene ? t->scene(place) : ran->answers[at++];
      out.emplace_back(t, answer.empty() ? "no answer" : answer);
    }
    return out;
  }

  // A tier that does not hold files refuses what a profile names of them, so it has profiles of its own.
  std::string profile() const {
    if (target_.tier == "workspace") return case_->profile == "short" ? "plain-short" : "plain";
    return target_.tier == "process" || among(target_.claims, "fs.read") ? case_->profile : "bare";
  }

  std::vector<const Try*> all() const {
    std::vector<const Try*> out;
    for (const Try& t : case_->tries) out.push_back(&t);
    return out;
  }

  void confined() {
    if (case_->tries.empty()) return;
    place_ = "confined";
    world_.reset();
    std::string why;
    Place box = world_.box(profile(), &why);
    if (!box.inside()) return found(profile(), false, "no box: " + why);
    Ran ran;
    std::map<std::string, int64_t> owed;
    bool off = case_->written_off && case_->written_off->missing.proved(world_), went_through = false;
    for (const auto& [t, answer] : perform(box, all(), &ran)) {
      bool held = among(t->right, answer) || (off && among(t->control, answer));
      went_through |= !among(t->right, answer);
      found(joined(t->words), held, held ? answer : "gives " + answer + ", and should give " + joined(t->right, " or ") + ran.err);
      if (!t->counted.empty()) owed[t->counted]++;
    }
    auto counted = counts(ran.receipt);
    for (const auto& [name, n] : owed)
      if (counted[name] < n)
        found("denials of " + name, false, "the receipt counts " + std::to_string(counted[name]) + ", " + std::to_string(n) + " were refused");
    bool words_ran = std::any_of(case_->tries.begin(), case_->tries.end(), [](const Try& t) { return !t.scene; });
    if (words_ran && ran.receipt.is_null()) found("receipt", false, "there is none: " + ran.err);
    if (!case_->declared.empty()) declared(ran, box, case_->declared);
    if (off && went_through) declared(ran, box, case_->written_off->field);
    if (std::string changed = world_.changed(); !changed.empty()) found("host", false, changed);
  }

  void declared(const Ran& ran, const Place& box, const std::string& field) {
    Json receipt = ran.receipt.is_null() ? box.tries({{"sleep", "0"}}).receipt : ran.receipt;
    for (const Json& n : receipt["not_enforced"].array())
      if (n["field"].string() == field) return found(field, true, "declared as not enforced");
    found(field, false, "the receipt does not declare it as not enforced");
  }

  void granted() {
    std::map<std::string, std::vector<const Try*>> by_profile;
    for (const Try& t : case_->tries)
      if (!t.grant.empty()) by_profile[t.grant].push_back(&t);
    for (const auto& [profile, list] : by_profile) {
      place_ = "granted by " + profile;
      world_.reset();
      std::string why;
      Place box = world_.box(profile, &why);
      if (!box.inside()) {
        found(profile, false, "no box: " + why);
        continue;
      }
      Ran ran;
      for (const auto& [t, answer] : perform(box, list, &ran)) {
        bool works = among(t->control, answer);
        found(joined(t->words), works, works ? answer : "gives " + answer + " although it is granted; " + ran.err);
      }
    }
  }

  void control() {
    if (case_->tries.empty()) return;
    place_ = "unconfined";
    world_.reset();
    Ran ran;
    for (const auto& [t, answer] : perform(world_.outside(), all(), &ran)) {
      bool root = target_.uid == 0 && is_root_;
      const std::string& excuse = root ? t->no_control_root : t->no_control_user;
      if (among(t->control, answer)) {
        report_.controls++;
        found(joined(t->words), true, answer);
      } else if (!excuse.empty()) {
        report_.without_control++;
        found(joined(t->words), true, "not applicable here: " + excuse);
      } else {
        found(joined(t->words), false, "the control gives " + answer + ", so that a refusal would prove nothing; " + ran.err);
      }
    }
    world_.reset();
  }

  const Target& target_;
  World world_;
  bool is_root_ = geteuid() == 0;
  const Case* case_ = nullptr;
  std::string place_;
  Json plain_;
  Report report_;
};

}  // namespace

std::vector<std::string> Report::failures() const {
  std::vector<std::string> out;
  for (const Finding& f : findings)
    if (!f.ok) out.push_back(f.id + " " + f.place + ": " + f.act + ": " + f.words);
  return out;
}

bool concerns(const Case& c, const Target& t) {
  if (t.tier == "process") return c.must.find_first_of("PK") != std::string::npos;
  // What the core alone holds, it holds at every tier.
  if (t.tier == "workspace") return c.must.find('W') != std::string::npos || c.must == "K";
  return among(t.claims, c.claim);
}

Report run(const Target& t, const std::vector<std::string>& only) {
  Driver driver(t);
  for (const Case& c : table()) {
    if (!only.empty() && !among(only, c.id)) continue;
    if (concerns(c, t))
      driver.run(c);
    else if (t.tier == "workspace" && !c.tries.empty())
      driver.unconfined(c);
  }
  return driver.take();
}

}  // namespace h5i::adversary
