#include "core/cli/evidence_verbs.hpp"
#include "core/evidence/keys.hpp"
#include "core/session/box.hpp"

namespace h5i::cli {
namespace {

Result<std::string> untrust(const std::string& id) {
  session::UserDirs dirs = H5I_TRY(session::UserDirs::from_environment());
  return evidence::TrustStore(dirs.config).remove(id);
}

}  // namespace

int key_untrust(Context& ctx, const Parsed& words) {
  auto id = untrust(words.arguments[0]);
  if (!id) return ctx.refuse(id.error());
  if (ctx.json)
    ctx.result(json::Object{{"schema", "h5i.key-untrust/1"}, {"key", *id}});
  else
    ctx.line("no longer trusted: " + *id);
  return 0;
}

}  // namespace h5i::cli
