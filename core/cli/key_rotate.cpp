#include "core/cli/evidence_verbs.hpp"
#include "core/evidence/keys.hpp"
#include "core/session/box.hpp"

namespace h5i::cli {
namespace {

struct Rotated {
  std::string old_id, id, path;
};

Result<Rotated> rotate() {
  session::UserDirs dirs = H5I_TRY(session::UserDirs::from_environment());
  evidence::HostKey host(dirs.state);
  Rotated r;
  if (auto old = host.load(); old) r.old_id = old->public_key().id();
  r.id = H5I_TRY(host.rotate()).public_key().id();
  r.path = host.public_path();
  return r;
}

}  // namespace

int key_rotate(Context& ctx, const Parsed&) {
  auto r = rotate();
  if (!r) return ctx.refuse(r.error());
  if (ctx.json) {
    ctx.result(json::Object{{"schema", "h5i.key-rotate/1"},
                            {"key", r->id},
                            {"retired", r->old_id.empty() ? Json() : Json(r->old_id)},
                            {"path", r->path}});
    return 0;
  }
  ctx.line("new host key " + r->id);
  ctx.line("  file " + r->path);
  if (!r->old_id.empty())
    ctx.line("retired " + r->old_id + ": its signatures stay checkable here; others must trust the new key");
  return 0;
}

}  // namespace h5i::cli
