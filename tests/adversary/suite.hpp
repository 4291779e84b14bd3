// The adversary suite: one table of cases, and a driver that tries each of them unconfined, confined by a tier, and with
// the feature granted. It goes through the real command line, so every tier and every plugin can be run through it; it
// knows nothing of any test framework.
#pragma once
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"

namespace h5i::adversary {

using Answers = std::vector<std::string>;

class World;

// What one command came to. `answers` has one entry for each try, in order; "" where the program did not get that far.
struct Ran {
  int status = -1;  // 1000 + N when signal N ended h5i itself
  std::string out, err;
  Answers answers;
  Json receipt;  // null outside
};

// Where a control is made. Nothing of a tier guards any of these, and each allows what the one before it does not.
enum class Ground {
  host,  // as the user
  bare,  // as the user, in namespaces of the kinds that a box has, with every right in them
  root,  // as the machine's root
};
constexpr Ground kGrounds[] = {Ground::host, Ground::bare, Ground::root};

// Where a try is made: on the host, or in a box.
struct Place {
  World* world = nullptr;
  std::string box;   // empty: outside
  std::string work;  // the directory that a try may fill
  Ground ground = Ground::host;

  bool inside() const { return !box.empty(); }
  // Each list of words is one try of h5i-attack, with {names} of the world's objects.
  Ran tries(const std::vector<std::vector<std::string>>& list, int timeout_s = 60) const;
  Ran command(const std::vector<std::string>& argv, int timeout_s = 60) const;
};

// Makes the act and says what came of it in one word; a scene is a try that somebody has to watch from outside.
using Scene = std::function<std::string(const Place&)>;

// The kernel's side of an act or a promise that this machine does not have, and how its absence is proved.
struct Missing {
  std::string interface;
  std::function<bool(const World&)> proved;
};

struct Try {
  std::vector<std::string> words;
  Answers right;               // of a tier that must stop it
  Answers control = {"did"};   // where nothing stops it
  std::string counted;         // the refused system call that the receipt must count
  std::string told;            // the refused destination that the receipt must name, as it writes it: "tcp 203.0.113.12:443"
  std::string grant;           // a profile under which it works again
  std::vector<std::string> outside;  // other words for the control, where the act itself would harm the machine
  Answers bare;                // of the act itself in bare namespaces, where the control is made there and nowhere else
  Scene scene;                 // instead of words; `words[0]` is then its name
  // Without it nobody can make the act. Where every control fails it must be proved missing; a control that fails without that is a failure.
  std::optional<Missing> needs = {};
};

// A test of another folder that holds the case.
struct Elsewhere {
  std::string file, test;
};

// Where the interface is missing the act goes through, and the receipt must declare the field. Where it is there, the case
// must hold like any other.
struct WrittenOff {
  Missing missing;
  std::string field;
};

struct Case {
  std::string id;       // of the catalogue of cases: "A07"
  std::string what;     // the mechanism
  std::string must;     // who must hold it: K core, P process, S supervised, W workspace
  std::string claim;    // the policy field it belongs to; empty: the surface of the kernel
  std::string right;    // the right outcome, for people
  std::string profile = "attack";
  std::vector<Try> tries;
  std::vector<Elsewhere> elsewhere = {};
  std::string declared = {};  // a line of not_enforced that must be in the receipt beside it
  std::optional<WrittenOff> written_off = {};
};

const std::vector<Case>& table();

// One tier, as this program or a user's plugin has it.
struct Target {
  std::string h5i;   // path of the executable
  std::string tier;
  std::string attack;  // path of h5i-attack
  unsigned uid = 0;    // who runs it; 0: as this process
  std::vector<std::string> claims;  // used for tiers that the table has no letter for
};

struct Finding {
  std::string id, place, act;  // "A07", "confined", "sys fsopen s:tmpfs 0"
  bool ok = false;
  std::string words;  // what was wrong, or the answer
};

struct Report {
  std::vector<Finding> findings;
  size_t controls[std::size(kGrounds)] = {};                // acts with a control, by where it was made
  size_t by_another = 0;                                    // of these, by a harmless act in their place
  std::map<std::string, std::vector<std::string>> without;  // acts without one, by the reason that was proved
  std::vector<std::string> failures() const;
  std::string counts() const;  // of the controls, for people
};

// Whether the tier must stop the case.
bool concerns(const Case& c, const Target& t);
// Every case that concerns the tier; `only` restricts to ids.
Report run(const Target& t, const std::vector<std::string>& only = {});
// docs/adversary.md
std::string markdown();

}  // namespace h5i::adversary
