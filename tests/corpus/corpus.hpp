// One script, run in a process box and outside it: what came of it must be the same.
#pragma once
#include <cstdio>
#include <vector>

#include "tests/tiers/box.hpp"

namespace h5i::test {

struct Tool {
  const char* id;
  std::vector<const char*> programs;  // what must be installed, in the system's own directories: nothing else is in the box's view
  std::string script;                 // for sh, in an empty directory; its exit status and everything that it prints are compared
  std::function<void(TierBox&)> grant = {};  // what the profile gives beyond the built-in default's
};

inline bool installed(const char* program) {
  for (const char* dir : {"/usr/local/bin/", "/usr/bin/", "/bin/"})
    if (access((std::string(dir) + program).c_str(), X_OK) == 0) return true;
  return false;
}

// The first program that is missing is said as a skip.
inline bool all_installed(const std::vector<const char*>& programs) {
  for (const char* program : programs)
    if (!installed(program)) {
      printf("SKIP: corpus-%s: %s is not installed\n", program, program);
      return false;
    }
  return true;
}

inline Outcome run_outside(Checks& k, const TierBox& box, const std::string& script) {
  std::string dir = k.dir() + "/outside";
  mkdir(dir.c_str(), 0700);
  mkdir((dir + "/work").c_str(), 0700);
  Json plain = plain_plan(k);
  plain["cwd"] = dir + "/work";
  plain["env"] = box.request["env"];
  set_command(plain, {"/bin/sh", "-c", script});
  return run_once(plain);
}

inline std::string denials_of(const Outcome& o) {
  std::string out;
  for (const auto& d : o.result.denials) out += " " + std::to_string(d.syscall) + "x" + std::to_string(d.count);
  return out;
}

// As root and as an ordinary user. A script that fails outside, or says nothing there, compares nothing.
inline void same_result(const Tool& tool) {
  if (!all_installed(tool.programs)) return;
  std::string failures = run_as_each(
      [&](Checks& k) {
        TierBox box(k);
        if (tool.grant) tool.grant(box);
        std::string script = "set -eu\n" + tool.script;
        Outcome outside = run_outside(k, box, script), inside = box.shell(script);
        if (!outside.ok() || outside.output.empty())
          k.say("it does not work outside: " + outside.text());
        else if (!inside.ok() || inside.output != outside.output)
          k.say("outside: " + outside.text() + "\n  in the box: " + inside.text() + "\n  refused calls:" + denials_of(inside));
      },
      180);
  INFO(tool.id << "\n" << failures);
  CHECK(failures.empty());
}

}  // namespace h5i::test
