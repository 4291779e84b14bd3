// h5i plugin verify [ID]: owners, modes, manifests, digests and the rules for libraries. Exit 1 when one is not in
// order.
#include "core/cli/plugin_verbs.hpp"

namespace h5i::cli {

int plugin_verify(Context& ctx, const Parsed& parsed) {
  auto registry = installed_plugins();
  if (!registry) return ctx.refuse(registry.error());
  registry->verify_bytes();
  std::vector<plugin::PluginInfo> wanted;
  if (parsed.arguments.empty()) {
    wanted = registry->plugins();
  } else {
    auto one = registry->find(parsed.arguments[0]);
    if (!one) return ctx.refuse(one.error());
    wanted.push_back(std::move(*one));
  }
  bool ok = true;
  Json list = json::Array{};
  for (const plugin::PluginInfo& p : wanted) {
    ok = ok && !p.refused;
    list.push(plugin_json(p));
  }
  ctx.result(json::Object{{"schema", "h5i.plugin-verify/1"}, {"ok", ok}, {"plugins", list}});
  if (ctx.json) return ok ? 0 : 1;
  if (wanted.empty()) ctx.line("no plugin is installed");
  for (const plugin::PluginInfo& p : wanted)
    ctx.line(p.refused ? p.name() + ": refused, " + reason_line(*p.refused)
                       : p.name() + ": in order, sha256 " + p.digest.value);
  return ok ? 0 : 1;
}

}  // namespace h5i::cli
