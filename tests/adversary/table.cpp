#include <algorithm>
#include <sstream>

#include "core/os/syscall_name.hpp"
#include "tests/adversary/cases.hpp"

namespace h5i::adversary {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string w; in >> w;) out.push_back(w);
  return out;
}

Try refused(const std::string& words, const std::string& answer, const std::string& counted) {
  Try t;
  t.words = words_of(words);
  t.right = {answer};
  t.counted = counted;
  if (counted.empty() && t.words[0] == "sys") {
    bool numbered = isdigit(static_cast<unsigned char>(t.words[1][0]));
    t.counted = numbered ? os::syscall_name(static_cast<uint32_t>(std::stoul(t.words[1], nullptr, 0))) : t.words[1];
  }
  return t;
}
Try held(const std::string& words, Answers right, const std::string& grant) {
  Try t;
  t.words = words_of(words);
  t.right = std::move(right);
  t.grant = grant;
  return t;
}
Try may(const std::string& words) {
  Try t;
  t.words = words_of(words);
  t.right = {"did"};
  return t;
}
Try watched(const std::string& name, Answers right, Scene scene, Answers control) {
  Try t;
  t.words = {name};
  t.right = std::move(right);
  t.control = std::move(control);
  t.scene = std::move(scene);
  return t;
}
Try granted_by(Try t, const std::string& profile) {
  t.grant = profile;
  return t;
}
Try answers_outside(Try t, Answers control) {
  t.control = std::move(control);
  return t;
}
Try outside_by(Try t, const std::string& words) {
  t.outside = words_of(words);
  return t;
}
Try by_itself_in_bare(Try t, Answers control) {
  t.bare = std::move(control);
  return t;
}
Try needs(Try t, Missing what) {
  t.needs = std::move(what);
  return t;
}

const std::vector<Case>& table() {
  static const std::vector<Case> all = [] {
    std::vector<Case> out;
    for (auto part : {cases_of_calls, cases_of_views, cases_of_work, cases_of_limits, cases_of_evidence, cases_of_network})
      for (Case& c : part()) out.push_back(std::move(c));
    std::stable_sort(out.begin(), out.end(), [](const Case& a, const Case& b) { return a.id < b.id; });
    return out;
  }();
  return all;
}

}  // namespace h5i::adversary
