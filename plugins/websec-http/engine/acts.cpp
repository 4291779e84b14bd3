#include "plugins/websec-http/engine/acts.hpp"

#include <array>

#include "plugins/websec-http/engine/act_list.hpp"

namespace h5i::websec {
namespace {

struct Named {
  std::string_view name;
  Act act;
};
constexpr std::array<Named, 5> kActs = {{{"read-scope", read_scope}, {"send", send_act}, {"hist", hist}, {"show", show_act}, {"scope", scope_act}}};

}  // namespace

Act act_named(std::string_view name) {
  for (const Named& n : kActs)
    if (n.name == name) return n.act;
  return nullptr;
}

}  // namespace h5i::websec
