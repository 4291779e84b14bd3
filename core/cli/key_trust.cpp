#include "core/base/text.hpp"
#include "core/cli/evidence_verbs.hpp"
#include "core/evidence/files.hpp"
#include "core/evidence/keys.hpp"
#include "core/session/box.hpp"

namespace h5i::cli {
namespace {

constexpr size_t kMaxKeyFile = 4096;

struct Trusted {
  std::string id;
  bool added;
};

Result<Trusted> trust(const std::string& file) {
  session::UserDirs dirs = H5I_TRY(session::UserDirs::from_environment());
  std::string text = H5I_TRY(evidence::read_small_file(file, kMaxKeyFile));
  auto key = evidence::PublicKey::from_pem(text);
  if (!key)
    return make_error(Errc::INVALID, printable(file) + " is not a public key", key.error().evidence,
                      "h5i key show prints one");
  auto added = H5I_TRY(evidence::TrustStore(dirs.config).add(*key));
  return Trusted{key->id(), std::move(added)};
}

}  // namespace

int key_trust(Context& ctx, const Parsed& words) {
  auto t = trust(words.arguments[0]);
  if (!t) return ctx.refuse(t.error());
  if (ctx.json)
    ctx.result(json::Object{{"schema", "h5i.key-trust/1"}, {"key", t->id}, {"added", t->added}});
  else
    ctx.line((t->added ? "trusted " : "trusted already: ") + t->id);
  return 0;
}

}  // namespace h5i::cli
