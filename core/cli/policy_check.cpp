// policy check: every error of a configuration, not only the first.
#include <fcntl.h>

#include "core/cli/policy_input.hpp"
#include "core/os/beneath.hpp"
#include "core/policy/node.hpp"

namespace h5i::cli {
namespace {

Result<policy::ConfigBytes> read_named(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) return sys_error("open " + path);
  auto bytes = os::read_all(fd, policy::kMaxConfigBytes);
  if (!bytes && bytes.error().code == Errc::TOO_LARGE)
    return make_error(Errc::POLICY_LIMIT, path + " is too large", "limit " + std::to_string(policy::kMaxConfigBytes) + " bytes");
  if (!bytes) return std::move(bytes).error();
  bool toml = path.size() > 5 && path.substr(path.size() - 5) == ".toml";
  return policy::ConfigBytes{path, std::move(*bytes), toml};
}

}  // namespace

int policy_check(Context& ctx, const Parsed& parsed) {
  auto s = policy_surroundings(parsed);
  if (!s) return ctx.refuse(s.error());
  policy::ResolveInput& in = s->input;
  if (!parsed.arguments.empty()) {
    auto bytes = read_named(parsed.arguments[0]);
    if (!bytes) return ctx.refuse(bytes.error());
    in.config = std::move(*bytes);
  }
  // Each profile by name, so that what only shows after merging, and the host's ceiling, is seen for all of them.
  std::vector<Error> errors;
  Json checked = json::Array();
  auto add = [&](const policy::Problems& p) {
    for (const Error& e : p.errors) {
      bool known = false;
      for (const Error& have : errors) known = known || (have.what == e.what && have.evidence == e.evidence);
      if (!known) errors.push_back(e);
    }
  };
  policy::Problems problems;
  policy::ResolveInput plain = in;
  plain.profile = "default";
  auto first = policy::resolve(plain, &problems);
  add(problems);
  std::vector<std::string> notes = first ? first->notes : std::vector<std::string>();
  if (auto names = policy::list_profiles(in))
    for (const policy::ProfileName& n : *names) {
      if (n.defined_at == "built-in") continue;
      plain.profile = n.name;
      auto r = policy::resolve(plain, &problems);
      add(problems);
      if (r) checked.push(json::Object{{"name", n.name}, {"defined_at", n.defined_at}});
    }
  if (ctx.json) {
    Json list = json::Array();
    for (const Error& e : errors) list.push(error_json(e));
    ctx.result(json::Object{{"schema", "h5i.policy-check/1"}, {"ok", errors.empty()}, {"profiles", checked}, {"errors", list}});
  } else {
    for (const Error& e : errors) (void)ctx.refuse(e);
    for (const std::string& n : notes) ctx.note(n);
    if (errors.empty()) ctx.line(checked.array().empty() ? "ok: no profile of its own; the built-in ones hold" : "ok: " + std::to_string(checked.array().size()) + " profiles");
  }
  return errors.empty() ? 0 : 1;
}

}  // namespace h5i::cli
