#include "core/cli/evidence_verbs.hpp"
#include "core/cli/log_target.hpp"
#include "core/evidence/sealing.hpp"

namespace h5i::cli {
namespace {

struct Outcome {
  LogTarget target;
  evidence::Sealed sealed;
};

Result<Outcome> seal(const std::string& name) {
  LogTarget target = H5I_TRY(box_log_target(name));
  session::UserDirs dirs = H5I_TRY(session::UserDirs::from_environment());
  evidence::Sealed sealed = H5I_TRY(evidence::seal_log(target.path, dirs.state));
  return Outcome{std::move(target), std::move(sealed)};
}

}  // namespace

int log_seal(Context& ctx, const Parsed& words) {
  auto done = seal(words.arguments[0]);
  if (!done) return ctx.refuse(done.error());
  const evidence::Seal& s = done->sealed.seal;
  if (ctx.json) {
    ctx.result(json::Object{{"schema", "h5i.log-seal/1"},
                            {"box", done->target.box->name.str()},
                            {"log", s.log_id},
                            {"path", done->target.path},
                            {"seal_path", evidence::seal_path(done->target.path)},
                            {"records", s.count},
                            {"head", s.head},
                            {"key", s.key_id},
                            {"time", s.time},
                            {"made", done->sealed.made}});
    return 0;
  }
  ctx.line((done->sealed.made ? "sealed " : "already sealed: ") + done->target.box->name.str() + ", " +
           std::to_string(s.count) + " records");
  ctx.line("  head  " + s.head);
  ctx.line("  key   " + s.key_id);
  ctx.line("  seal  " + evidence::seal_path(done->target.path));
  return 0;
}

}  // namespace h5i::cli
