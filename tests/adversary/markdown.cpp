// docs/adversary.md, from the table.
#include <set>

#include "tests/adversary/suite.hpp"

namespace h5i::adversary {
namespace {

std::string at_process(const Case& c) {
  std::string out = c.must.find_first_of("PK") == std::string::npos ? "not asked" : c.right;
  if (out == "not asked") return out;
  if (c.written_off) out += ". Without " + c.written_off->missing.interface + " it goes through, and `" + c.written_off->field + "` is declared";
  return out;
}

std::string at_supervised(const Case& c) {
  if (c.must.find('S') != std::string::npos) return c.must.find('P') != std::string::npos ? "the same" : c.right;
  return c.must.find('K') != std::string::npos ? "the same: the core's" : "not asked";
}

std::string at_workspace(const Case& c) {
  if (c.must == "S") return "-";
  if (c.must.find('W') != std::string::npos || c.must == "K") return "the same";
  if (c.tries.empty()) return c.must.find('K') != std::string::npos ? "the same: the core's" : "-";
  return c.claim.empty() ? "declared: nothing confined" : "declared: `" + c.claim + "`";
}

std::string tried(const Case& c) {
  std::string out;
  if (!c.tries.empty()) out = std::to_string(c.tries.size()) + (c.tries.size() == 1 ? " try" : " tries");
  std::set<std::string> files;
  for (const Elsewhere& e : c.elsewhere) files.insert(e.file);
  for (const std::string& f : files) out += (out.empty() ? "" : ", ") + ("`" + f + "`");
  return out;
}

}  // namespace

std::string markdown() {
  std::string out =
      "# What is tried against a box\n\n"
      "Written by `tests/adversary` from its table (`H5I_UPDATE_GOLDENS=1 test_adversary \"[table]\"`); do not edit.\n\n"
      "Each case is the *kind* of an escape that was seen somewhere, with its relatives: every call that does the same, every\n"
      "family, every file. It is tried three times, as root and as an ordinary user: **unconfined**, where it must succeed;\n"
      "**confined**, where the right thing must happen, a refusal by the filter must be counted in the receipt, and the host\n"
      "must be unchanged; and **granted**, where a profile can grant it, and it must work again. What the user may not do\n"
      "outside is done there in bare namespaces, which are those of a box with every right in them and nothing of a tier, or\n"
      "else by the machine's root. What nobody can do on a kernel is counted under the interface that it lacks, and the\n"
      "suite has the kernel prove that it does; a run ends with the counts. At `supervised` this is done in a guest that has\n"
      "what the tier needs and stands for the internet (`tests/vm`); cases that the core alone holds are tried at the other\n"
      "tiers. `workspace` confines nothing: there a receipt must say so for the field, and the cases that the core holds at\n"
      "every tier are tried. The last column counts the tries of the suite and names tests of other folders.\n\n"
      "| case | what | at `process` | at `supervised` | at `workspace` | tried by |\n|---|---|---|---|---|---|\n";
  for (const Case& c : table()) out += "| " + c.id + " | " + c.what + " | " + at_process(c) + " | " + at_supervised(c) + " | " + at_workspace(c) + " | " + tried(c) + " |\n";
  out +=
      "\n## Broken copies of the tier\n\n"
      "The suite, the core and the proof are tried as well: copies of the process tier with one protection removed each (no\n"
      "Landlock, no filter, a namespace less, a mask less, capabilities kept, a grant too wide, a descriptor left open, ...)\n"
      "must be refused at `box create` or `box run`, or reported by the name of a case. `tests/adversary/test_mutants.cpp`\n"
      "says for each who catches it, and with which words.\n\n"
      "## Trying it\n\n"
      "`ctest -L adversary`, or `build/dev/tests/adversary/test_adversary` with `H5I_ADVERSARY_SHOW=1` for every answer and\n"
      "`H5I_ADVERSARY_ONLY=A07,B21` for a few cases.\n";
  return out;
}

}  // namespace h5i::adversary
