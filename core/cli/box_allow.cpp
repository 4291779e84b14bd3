// box allow: the host's own egress list. Never changed from inside a box.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "core/cli/inside_box.hpp"
#include "core/cli/policy_input.hpp"
#include "core/os/beneath.hpp"
#include "core/policy/allow_list.hpp"

namespace h5i::cli {
namespace {

// Two edits at once must not lose one: a lock file beside it is held from reading to renaming.
Result<UniqueFd> lock(const std::string& file) {
  std::string parent = file.substr(0, file.rfind('/'));
  UniqueFd dir = H5I_TRY(os::open_directory(parent));
  struct flock range{};
  range.l_type = F_WRLCK;
  UniqueFd guard(::openat(dir.get(), "egress-allow.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!guard) return sys_error("open " + parent + "/egress-allow.lock");
  while (::fcntl(guard.get(), F_OFD_SETLKW, &range) != 0)
    if (errno != EINTR) return sys_error("lock " + parent + "/egress-allow.lock");
  return guard;
}

int print(Context& ctx, const std::string& file, const std::vector<policy::EgressRule>& rules, const std::vector<std::string>& changed) {
  if (ctx.json) {
    Json list = json::Array(), touched = json::Array();
    for (const auto& r : rules) list.push(r.to_json());
    for (const std::string& c : changed) touched.push(c);
    ctx.result(json::Object{{"schema", "h5i.box-allow/1"}, {"file", file}, {"rules", list}, {"changed", touched}});
    return 0;
  }
  for (const auto& r : rules) ctx.line(policy::allow_entry_text(r));
  if (rules.empty()) ctx.note("the list is empty: " + file);
  return 0;
}

// Adds or takes away; `changed` names what the file did not say before.
Result<std::vector<std::string>> edit(std::vector<policy::EgressRule>& rules, const Parsed& parsed, bool remove, bool private_ok) {
  std::vector<std::string> changed;
  for (size_t i = 1; i < parsed.arguments.size(); i++) {
    policy::EgressRule rule = H5I_TRY(policy::parse_egress(parsed.arguments[i], private_ok));
    auto same = [&](const policy::EgressRule& r) { return r.text() == rule.text(); };
    auto it = std::find_if(rules.begin(), rules.end(), same);
    if (remove && it == rules.end())
      return make_error(Errc::NOT_FOUND, "the list does not hold " + rule.text(), "h5i box allow list shows what it holds", "h5i box allow list");
    if (!remove && it != rules.end() && it->private_ok == rule.private_ok) continue;
    if (it != rules.end()) rules.erase(it);
    if (!remove) rules.push_back(rule);
    changed.push_back(rule.text());
  }
  policy::sort_rules(rules);
  return changed;
}

}  // namespace

int box_allow(Context& ctx, const Parsed& parsed) {
  std::string what = parsed.arguments.empty() ? "list" : parsed.arguments[0];
  bool wrong = (what != "list" && what != "add" && what != "remove") || ((what == "list") != (parsed.arguments.size() < 2));
  if (wrong)
    return ctx.refuse(make_error(Errc::USAGE, "box allow takes list, add RULE... or remove RULE...", "given: " + what, "h5i box allow --help"));
  auto file = config_file("egress-allow");
  if (!file) return ctx.refuse(file.error());
  if (what == "list") {
    auto rules = policy::load_allow_list(*file, ::geteuid());
    return rules ? print(ctx, *file, *rules, {}) : ctx.refuse(rules.error());
  }
  if (inside_box())
    return ctx.refuse(make_error(Errc::POLICY_INSIDE, "the host's allow-list is not changed from inside a box", "this process descends from a box's first process"));
  if (auto ok = policy::make_allow_directory(*file); !ok) return ctx.refuse(ok.error());
  auto guard = lock(*file);
  if (!guard) return ctx.refuse(guard.error());
  auto rules = policy::load_allow_list(*file, ::geteuid());
  if (!rules) return ctx.refuse(rules.error());
  auto changed = edit(*rules, parsed, what == "remove", parsed.has("--private"));
  if (!changed) return ctx.refuse(changed.error());
  if (!changed->empty())
    if (auto ok = policy::save_allow_list(*file, *rules); !ok) return ctx.refuse(ok.error());
  if (changed->empty()) ctx.note("nothing to change");
  return print(ctx, *file, *rules, *changed);
}

}  // namespace h5i::cli
