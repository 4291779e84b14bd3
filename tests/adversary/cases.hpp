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
Try by_itself_in_bare(Try t, Answers control = {"did"});  // the control is the act itself, in bare namespaces
Try needs(Try t, Missing what);

// What a kernel may lack. Each is proved by asking it.
Missing address_family(int family);
Missing socket_kind(int family, int type, int protocol);
Missing file_of_kernel(const std::string& path);
Missing system_call(const std::string& name);  // or its number
Missing loadable_modules();
Missing attributes_of_users();  // on the file system of the world

std::vector<Case> cases_of_calls();
std::vector<Case> cases_of_views();
std::vector<Case> cases_of_work();
std::vector<Case> cases_of_limits();
std::vector<Case> cases_of_evidence();
std::vector<Case> cases_of_network();

}  // namespace h5i::adversary
