// The matrix: every verb of the command table in every condition. A new verb is a row of verbs.cpp, a new condition a row of
// conditions.cpp; what a cell must give is the condition's `expect`, else what the verb gives when nothing is wrong.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/bad_input/world.hpp"

namespace h5i::test {

struct Verb {
  std::string noun, verb;
  // Words after the verb. {box} {other} {fresh} {profile} {tier} {plugin} {mine} {rule} {key} are ids; {file} {pub} {out} paths.
  std::vector<std::string> words;
  // What its JSON must say, besides its schema.
  std::function<bool(const Json&, const World&)> right;
  std::string plain;  // the outcome when nothing is wrong: "ok", or the id of a refusal
  std::string name() const { return verb.empty() ? noun : noun + " " + verb; }
};
const std::vector<Verb>& verbs();

// How many of the three standard streams a person or program sees.
enum class Sees { BOTH, NO_OUTPUT, NO_ERRORS, NOTHING };

struct Expect {
  std::string verbs;    // names, ", " between; "*" for all; "box *" for a noun
  std::string outcome;  // "ok", or ids of refusals: "a|b"
};

struct Condition {
  std::string name;
  std::string from = "boxes";                              // "boxes": a repository with two boxes; "repository": without
  std::function<void(World&)> make = {};                   // once
  std::function<void(World&)> each = {};                   // after each time that the world was put back
  std::function<void(const World&, Program&)> start = {};  // how the program is started
  std::vector<Expect> expect = {};
  bool ids = false;                                        // every id and path among the words is `id`
  std::string id = {};
  bool large = false;                                      // costs enough that the last of people() alone tries it
  bool mounts = false;                                     // needs a mount namespace of the test's own
  Sees sees = Sees::BOTH;
  std::function<void(const World&)> after = {};            // once a verb that did its work has ended
};
constexpr const char* kReaderGone = "the reader of standard output is gone";
std::vector<Condition> conditions();

}  // namespace h5i::test
