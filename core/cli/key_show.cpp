#include "core/cli/evidence_verbs.hpp"
#include "core/evidence/keys.hpp"
#include "core/session/box.hpp"

namespace h5i::cli {
namespace {

struct Keys {
  std::string path;
  evidence::PublicKey host;
  std::map<std::string, evidence::PublicKey> retired, trusted;
};

Result<Keys> load() {
  session::UserDirs dirs = H5I_TRY(session::UserDirs::from_environment());
  evidence::HostKey host(dirs.state);
  Keys k;
  k.path = host.public_path();
  k.host = H5I_TRY(host.load_or_create()).public_key();
  k.retired = H5I_TRY(host.retired());
  k.trusted = H5I_TRY(evidence::TrustStore(dirs.config).all());
  return k;
}

Json ids(const std::map<std::string, evidence::PublicKey>& keys) {
  Json out = json::Array{};
  for (const auto& [id, key] : keys) out.push(json::Object{{"key", id}, {"public_key", key.pem()}});
  return out;
}

}  // namespace

int key_show(Context& ctx, const Parsed&) {
  auto k = load();
  if (!k) return ctx.refuse(k.error());
  if (ctx.json) {
    ctx.result(json::Object{{"schema", "h5i.key-show/1"},
                            {"key", k->host.id()},
                            {"public_key", k->host.pem()},
                            {"path", k->path},
                            {"retired", ids(k->retired)},
                            {"trusted", ids(k->trusted)}});
    return 0;
  }
  ctx.line("host key " + k->host.id());
  ctx.line("  file " + k->path);
  ctx.block(k->host.pem());
  for (const auto& [id, key] : k->retired) ctx.line("retired  " + id);
  for (const auto& [id, key] : k->trusted) ctx.line("trusted  " + id);
  return 0;
}

}  // namespace h5i::cli
