#include "plugins/websec-http/acts/acts.hpp"

#include "plugins/websec-http/acts/list.hpp"

namespace h5i::websec {
namespace {

struct Named {
  std::string_view name;
  Act act;
};
constexpr Named kActs[] = {
    {"candidates", candidates_act},
    {"diff", diff_act},
    {"experiment", experiment_act},
    {"export", export_act},
    {"export-note", export_note},
    {"finding-add", finding_add},
    {"finding-list", finding_list},
    {"finding-report", finding_report},
    {"finding-withdraw", finding_withdraw},
    {"hist", hist},
    {"ident", ident_act},
    {"import", import_act},
    {"jar", jar_act},
    {"match", match_act},
    {"read-scope", read_scope},
    {"replay", replay_act},
    {"scope", scope_act},
    {"send", send_act},
    {"sequence", sequence_act},
    {"show", show_act},
};

}  // namespace

Act act_named(std::string_view name) {
  for (const Named& n : kActs)
    if (n.name == name) return n.act;
  return nullptr;
}

}  // namespace h5i::websec
