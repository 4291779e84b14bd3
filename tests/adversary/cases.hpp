// How rows of the table are written.
#pragma once
#include "tests/adversary/suite.hpp"

namespace h5i::adversary {

std::vector<std::string> words_of(const std::string& text);

// A system call that the filter refuses; the receipt counts it under its name, which is the second word of a `sys` try.
Try refused(const std::string& words, const std::string& answer, const std::string& counted = "");
// An act that something else than the filter holds: mounts, Landlock, namespaces, limits.
Try held(const std::string& words, Answers right, const std::string& grant = "");
// What a box may do; the row is a control of the others.
Try may(const std::string& words);
Try watched(const std::string& name, Answers right, Scene scene, Answers control = {"did"});

// Refinements, each returns the changed row.
Try granted_by(Try t, const std::string& profile);
Try answers_outside(Try t, Answers control);
Try outside_by(Try t, const std::string& words);
Try no_control(Try t, const std::string& root, const std::string& user);  // empty: there is one

std::vector<Case> cases_of_calls();
std::vector<Case> cases_of_views();
std::vector<Case> cases_of_work();
std::vector<Case> cases_of_limits();
std::vector<Case> cases_of_evidence();
std::vector<Case> cases_of_network();

}  // namespace h5i::adversary
