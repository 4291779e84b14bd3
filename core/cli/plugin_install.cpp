// h5i plugin install FILE: checks a plugin and copies it into the user's directory, its manifest in the form in which
// it is believed later. Trust is another step. FILE is the library with its manifest beside it, or the manifest.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cli/plugin_verbs.hpp"
#include "core/os/fs.hpp"
#include "core/plugin/elf_lint.hpp"
#include "core/plugin/manifest.hpp"
#include "core/plugin/pins.hpp"
#include "core/policy/adapters.hpp"

namespace h5i::cli {
namespace {

using policy::Node;

// A manifest has no dates, no fractions and no nulls.
Result<Json> json_of(const Node& n, const std::string& name) {
  switch (n.kind) {
    case Node::Kind::BOOL:
      return Json(n.boolean);
    case Node::Kind::INTEGER:
      return Json(static_cast<long long>(n.integer));
    case Node::Kind::TEXT:
      return Json(n.text);
    case Node::Kind::LIST: {
      Json out = json::Array{};
      for (const Node& item : n.items) out.push(H5I_TRY(json_of(item, name)));
      return out;
    }
    case Node::Kind::MAP: {
      Json out = json::Object{};
      for (const policy::Entry& e : n.entries) out[e.key] = H5I_TRY(json_of(e.value, name));
      return out;
    }
    default:
      return make_error(
          Errc::PLUGIN_MANIFEST, name + " is not a valid manifest",
          policy::place(name, n.at) + ": " + std::string(policy::kind_name(n.kind)) + " is not for a manifest");
  }
}

// A version such as 1.0 is a number to YAML and a text to us.
void as_text(Node& root, std::string_view key) {
  for (policy::Entry& e : root.entries)
    if (e.key == key && (e.value.kind == Node::Kind::REAL || e.value.kind == Node::Kind::INTEGER))
      e.value.kind = Node::Kind::TEXT;
}

struct Source {
  std::string manifest_path, library_path;
  Json manifest;
  std::string library;  // bytes
};

Result<std::string> read_plain(const std::string& path, size_t limit) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return sys_error("open " + path);
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return sys_error("fstat " + path);
  if (!S_ISREG(st.st_mode))
    return make_error(Errc::INVALID, path + " is not a regular file", "its mode says otherwise");
  return os::read_fd(fd.get(), limit, path);
}

// Everything that the loader will ask later is asked now, so that a bad plugin is refused before it is copied.
Result<Source> read_source(const std::string& file) {
  Source s;
  if (file.ends_with(".so"))
    s.manifest_path = file.substr(0, file.size() - 3) + std::string(plugin::kManifestSuffix);
  else
    s.manifest_path = file;
  std::string text = H5I_TRY(read_plain(s.manifest_path, plugin::kMaxManifestBytes));
  Node root = H5I_TRY(policy::read_yaml(text, s.manifest_path));
  as_text(root, "version");
  s.manifest = H5I_TRY(json_of(root, s.manifest_path));
  H5I_TRY(plugin::check_manifest(s.manifest, s.manifest_path));
  size_t slash = s.manifest_path.rfind('/');
  s.library_path =
      (slash == std::string::npos ? "" : s.manifest_path.substr(0, slash + 1)) + s.manifest["library"].string();
  s.library = H5I_TRY(read_plain(s.library_path, plugin::kMaxLibraryBytes));
  std::string found = sha256_hex(s.library);
  if (found != s.manifest["sha256"].string() || static_cast<int64_t>(s.library.size()) != s.manifest["size"].integer())
    return make_error(Errc::PLUGIN_DIGEST, s.library_path + " is not what its manifest describes",
                      "manifest " + s.manifest["sha256"].string() + ", file " + found);
  plugin::ElfFacts facts = H5I_TRY(plugin::read_elf(s.library));
  H5I_TRY(plugin::lint_plugin(facts, plugin::manifest_list(s.manifest, "needs"), s.library_path));
  return s;
}

// Under names that follow from the id, so that a second install of the same plugin replaces the first.
Result<std::string> copy_in(Source& s) {
  plugin::Settings settings = H5I_TRY(plugin::Settings::of_this_process());
  StateDirectory dir = H5I_TRY(StateDirectory::open(settings));
  std::string stem = s.manifest["id"].string();
  s.manifest["library"] = stem + ".so";
  std::string manifest_name = stem + std::string(plugin::kManifestSuffix);
  // Both are whole on the disk before anything of the old plugin goes.
  std::string library = H5I_TRY(plugin::stage_file(dir.fd(), stem + ".so", s.library, 0644));
  auto manifest = plugin::stage_file(dir.fd(), manifest_name, plugin::manifest_bytes(s.manifest), 0644);
  auto drop = [&] {
    unlinkat(dir.fd().get(), library.c_str(), 0);
    if (manifest) unlinkat(dir.fd().get(), manifest->c_str(), 0);
  };
  if (!manifest) {
    drop();
    return std::move(manifest).error();
  }
  // No moment at which a manifest describes another library than the one beside it.
  if (unlinkat(dir.fd().get(), manifest_name.c_str(), 0) != 0 && errno != ENOENT) {
    auto failed = sys_error("remove the old manifest");
    drop();
    return failed;
  }
  H5I_TRY(plugin::place_file(dir.fd(), library, stem + ".so"));
  H5I_TRY(plugin::place_file(dir.fd(), *manifest, manifest_name));
  return settings.state_directory + "/" + manifest_name;
}

}  // namespace

int plugin_install(Context& ctx, const Parsed& parsed) {
  auto source = read_source(parsed.arguments[0]);
  if (!source) return ctx.refuse(source.error());
  auto path = copy_in(*source);
  if (!path) return ctx.refuse(path.error());
  const Json& m = source->manifest;
  auto registry = installed_plugins();
  bool trusted = false;
  if (registry)
    for (const plugin::PluginInfo& p : registry->plugins())
      trusted = trusted || (p.manifest_path == *path && !p.refused);
  ctx.result(json::Object{{"schema", "h5i.plugin-install/1"},
                          {"id", m["id"]},
                          {"version", m["version"]},
                          {"digest", m["sha256"]},
                          {"manifest", *path},
                          {"trust", trusted ? "pinned" : "none"}});
  if (ctx.json) return 0;
  ctx.line("installed " + m["id"].string() + " " + m["version"].string() + ", sha256 " + m["sha256"].string());
  ctx.line("  " + *path);
  if (!trusted) ctx.line("it is not trusted yet and is never mapped before that: h5i plugin trust " + m["id"].string());
  return 0;
}

}  // namespace h5i::cli
