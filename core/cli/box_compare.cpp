// box compare: how the results of two boxes differ.
#include "core/cli/repo_box.hpp"
#include "core/cli/repo_verbs.hpp"
#include "core/git/patch.hpp"

namespace h5i::cli {
namespace {

Json oid_of(const git::Entry* e) { return e ? Json(e->oid.hex()) : Json(); }

Result<void> compare(Context& ctx, const Parsed& p) {
  IdleBox a = H5I_TRY(open_idle_box(p.arguments[0], "box compare"));
  session::BoxEntry second = H5I_TRY(session::find_box(p.arguments[1], directory_or_root(), a.dirs));
  if (second.paths.dir == a.entry.paths.dir) return make_error(Errc::USAGE, "the two boxes are one", a.name(), "h5i box compare BOX BOX");
  IdleBox b = H5I_TRY(open_idle_box(p.arguments[1], "box compare"));
  Review ra = H5I_TRY(review_box(a, true)), rb = H5I_TRY(review_box(b, true));
  json::Array paths;
  uint64_t same = 0;
  bool stat = p.has("--stat");
  for (const git::Change& c : git::changes_between(ra.scanned.tree, rb.scanned.tree)) {
    if (withheld(ra, c.path) || withheld(rb, c.path)) continue;  // box diff names them
    const git::Entry *ea = git::find_entry(ra.scanned.tree, c.path), *eb = git::find_entry(rb.scanned.tree, c.path);
    const git::Entry *ba = git::find_entry(ra.base, c.path), *bb = git::find_entry(rb.base, c.path);
    auto differs = [](const git::Entry* x, const git::Entry* y) { return (x == nullptr) != (y == nullptr) || (x && y && (x->oid != y->oid || git::plain_mode(x->mode) != git::plain_mode(y->mode))); };
    bool by_a = differs(ea, ba), by_b = differs(eb, bb);
    const char* who = by_a && by_b ? "both" : by_a ? "first" : by_b ? "second" : "base";
    std::string before = H5I_TRY(content_after(a.work, {c.kind, c.path, 0, c.old_mode, {}, c.old_oid}));
    std::string after = H5I_TRY(content_after(b.work, c));
    git::FilePatch patch = H5I_TRY(git::patch_of(c, before, after, false));
    paths.push_back(json::Object{{"path", c.path}, {"kind", git::change_name(c.kind)}, {"changed_by", who}, {"first", oid_of(ea)}, {"second", oid_of(eb)}, {"added", patch.added}, {"removed", patch.removed}, {"binary", patch.binary}});
    if (ctx.json) continue;
    ctx.line("  " + std::string(who) + "  " + (patch.binary ? "binary" : "+" + std::to_string(patch.added) + " -" + std::to_string(patch.removed)) + "  " + c.path);
    if (!stat) ctx.block(patch.text);
  }
  for (const git::Change& c : ra.changes) {
    const git::Entry *ea = git::find_entry(ra.scanned.tree, c.path), *eb = git::find_entry(rb.scanned.tree, c.path), *bb = git::find_entry(rb.base, c.path);
    if ((ea == nullptr) == (eb == nullptr) && (!ea || ea->oid == eb->oid) && (bb == nullptr || eb == nullptr || bb->oid != eb->oid)) same++;
  }
  size_t n = paths.size();
  ctx.result(json::Object{{"schema", "h5i.box-compare/1"}, {"first", a.name()}, {"second", b.name()}, {"same_base", a.manifest.base_tree == b.manifest.base_tree}, {"differ", n}, {"same_change", same}, {"paths", std::move(paths)}});
  if (ctx.json) return {};
  if (a.manifest.base_tree != b.manifest.base_tree) ctx.line("the two boxes began from different trees");
  ctx.line(n == 0 ? "the two boxes hold the same" : std::to_string(n) + " paths differ; " + std::to_string(same) + " were changed alike");
  return {};
}

}  // namespace

int box_compare(Context& ctx, const Parsed& p) {
  auto done = compare(ctx, p);
  return done ? 0 : ctx.refuse(done.error());
}

}  // namespace h5i::cli
