// h5i plugin inspect ID|FILE: manifest, digest, trust, and what the library's file says. Reads; maps and believes
// nothing.
#include <fcntl.h>

#include "core/cli/plugin_verbs.hpp"
#include "core/plugin/elf_lint.hpp"
#include "core/plugin/manifest.hpp"
#include "core/plugin/trusted_path.hpp"

namespace h5i::cli {
namespace {

Json list_json(const std::vector<std::string>& words) {
  Json out = json::Array{};
  for (const std::string& w : words) out.push(w);
  return out;
}

// A manifest by path, for its author: not judged by where it lies.
Result<plugin::PluginInfo> from_file(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return sys_error("open " + path);
  std::string bytes = H5I_TRY(plugin::read_all(fd, plugin::kMaxManifestBytes, path));
  plugin::PluginInfo p;
  p.manifest_path = path;
  p.manifest = H5I_TRY(plugin::parse_manifest(bytes, path));
  p.id = p.manifest["id"].string();
  p.kind = p.manifest["kind"].string();
  p.version = p.manifest["version"].string();
  p.digest = PluginDigest(p.manifest["sha256"].string());
  p.package = p.manifest["package"].string();
  size_t slash = path.rfind('/');
  p.library = path.substr(0, slash + 1) + p.manifest["library"].string();
  p.refused = make_error(Errc::PLUGIN_UNTRUSTED, path + " is a file, not an installed plugin", "",
                         "h5i plugin install " + path);
  return p;
}

// What the file of the library says about itself, or null when there is none that can be read.
Json library_json(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd) return nullptr;
  auto bytes = plugin::read_all(fd, plugin::kMaxLibraryBytes, path);
  if (!bytes) return nullptr;
  Json out = json::Object{{"sha256", sha256_hex(*bytes)},
                          {"size", bytes->size()},
                          {"exports", json::Array{}},
                          {"needs", json::Array{}},
                          {"relro", false},
                          {"bind_now", false},
                          {"executable_stack", true},
                          {"forbidden", json::Array{}}};
  auto facts = plugin::read_elf(*bytes);
  if (!facts) return out;
  for (const plugin::ElfSymbol& s : facts->exported) out["exports"].push(s.name);
  out["needs"] = list_json(facts->needed);
  out["relro"] = facts->relro;
  out["bind_now"] = facts->bind_now;
  out["executable_stack"] = facts->executable_stack;
  out["forbidden"] = list_json(facts->forbidden);
  return out;
}

std::string words(const Json& list) {
  std::string out;
  for (const Json& v : list.array()) out += (out.empty() ? "" : " ") + v.string();
  return out.empty() ? "none" : out;
}

Result<plugin::PluginInfo> wanted(const std::string& name) {
  if (name.find('/') != std::string::npos) return from_file(name);
  plugin::Registry registry = H5I_TRY(installed_plugins());
  registry.verify_bytes();
  return registry.find(name);
}

}  // namespace

int plugin_inspect(Context& ctx, const Parsed& parsed) {
  auto found = wanted(parsed.arguments[0]);
  if (!found) return ctx.refuse(found.error());
  const plugin::PluginInfo& p = *found;
  Json library = p.library.empty() ? Json(nullptr) : library_json(p.library);
  ctx.result(json::Object{
      {"schema", "h5i.plugin-inspect/1"}, {"plugin", plugin_json(p)}, {"manifest", p.manifest}, {"library", library}});
  if (ctx.json) return 0;
  ctx.line("plugin    " + p.name() + " " + p.version + " (" + (p.kind.empty() ? "unknown kind" : p.kind) + ")");
  ctx.line("state     " + std::string(plugin_state(p)) + ", trust " + std::string(plugin::trust_name(p.trust)));
  if (p.refused) {
    ctx.line("reason    " + reason_line(*p.refused));
    ctx.line("see       " + p.refused->remedy());
  }
  ctx.line("manifest  " + p.manifest_path);
  if (!p.manifest.is_object()) return 0;
  ctx.line("library   " + p.library);
  ctx.line("sha256    " + p.digest.value + " (manifest)");
  if (library.is_object() && library["sha256"].string() != p.digest.value)
    ctx.line("          " + library["sha256"].string() + " (file)");
  ctx.line("package   " + p.package);
  ctx.line("posture   " + p.manifest["posture"].string());
  ctx.line("claims    " + words(p.manifest["claims"]));
  ctx.line("asks for  " + words(p.manifest["host_services"]));
  ctx.line("needs     " + words(p.manifest["needs"]));
  if (library.is_object()) ctx.line("exports   " + words(library["exports"]));
  return 0;
}

}  // namespace h5i::cli
