#include "core/cli/open_box.hpp"
#include "core/cli/run_summary.hpp"
#include "core/cli/verbs.hpp"
#include "core/evidence/render.hpp"
#include "core/evidence/render.hpp"
#include "core/session/last_run.hpp"

namespace h5i::cli {
namespace {

struct Inspected {
  session::Manifest manifest;
  Json policy;
  std::optional<session::LastRun> run;
};

Result<Inspected> inspect(Context& ctx, const std::string& name) {
  session::BoxEntry box = H5I_TRY(open_box(ctx, name));
  session::Manifest m = H5I_TRY(session::load_manifest(box.paths));
  Json policy = H5I_TRY(session::load_policy(box.paths, m));
  auto run = H5I_TRY(session::last_run(box.paths));
  return Inspected{std::move(m), std::move(policy), std::move(run)};
}

}  // namespace

int box_inspect(Context& ctx, const Parsed& words) {
  auto found = inspect(ctx, words.arguments[0]);
  if (!found) return ctx.refuse(found.error());
  Json run;
  if (found->run) run = json::Object{{"kind", found->run->kind}, {"record", found->run->index}, {"time", found->run->time}, {"body", found->run->body}};
  if (ctx.json) {
    ctx.result(json::Object{{"schema", "h5i.box-inspect/1"}, {"manifest", found->manifest.to_json()}, {"policy", found->policy}, {"last_run", run}});
    return 0;
  }
  ctx.line("manifest of " + found->manifest.name.str());
  ctx.block(json::pretty(found->manifest.to_json()));
  ctx.line("");
  ctx.line("policy, digest " + found->manifest.policy_digest.value);
  ctx.block(json::pretty(found->policy));
  ctx.line("");
  if (!found->run) {
    ctx.line("nothing ran in it yet");
    return 0;
  }
  ctx.line("last run: record " + std::to_string(found->run->index) + ", " + found->run->kind + ", " + found->run->time);
  ctx.block(found->run->kind == "receipt" ? evidence::receipt_text(found->run->body) : json::pretty(found->run->body));
  return 0;
}

}  // namespace h5i::cli
