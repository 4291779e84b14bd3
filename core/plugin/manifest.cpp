#include "core/plugin/manifest.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "h5i/abi.h"

namespace h5i::plugin {
namespace {

bool among(char c, std::string_view extra) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || extra.find(c) != std::string_view::npos;
}
bool all_among(std::string_view s, std::string_view extra) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [&](char c) { return among(c, extra); });
}

bool valid_version(std::string_view s) {
  return !s.empty() && s.size() <= 32 && s[0] >= '0' && s[0] <= '9' && all_among(s, ".+-~ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}
// A plain file name: the loader looks for it in the manifest's own directory only.
bool valid_library(std::string_view s) {
  return s.size() > 3 && s.size() <= 128 && s[0] != '.' && s.ends_with(".so") &&
         all_among(s, "._-+ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}
bool valid_needed(std::string_view s) {
  return s.size() <= 128 && s[0] != '.' && all_among(s, "._-+ABCDEFGHIJKLMNOPQRSTUVWXYZ") &&
         s.find(".so") != std::string_view::npos;
}
bool valid_digest(std::string_view s) {
  return s.size() == 64 &&
         std::all_of(s.begin(), s.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool valid_interface(std::string_view s) {
  size_t slash = s.rfind('/');
  return s.starts_with("h5i.") && slash != std::string_view::npos && slash + 1 < s.size() &&
         all_among(s.substr(0, slash), ".-") && s.substr(slash + 1).find_first_not_of("0123456789") == s.npos;
}
bool valid_claim(std::string_view s) { return s.size() <= 64 && s[0] >= 'a' && s[0] <= 'z' && all_among(s, ".-_"); }
bool valid_lane(std::string_view s) { return s == "host-observed" || s == "engine-claimed" || s == "box-claimed"; }
bool valid_package(std::string_view s) { return s.size() <= 64 && all_among(s, "+.-"); }
bool any_text(std::string_view s) { return printable(s) == s; }

struct Field {
  std::string_view key;
  enum Kind { TEXT, LIST, ABI, SIZE } kind;
  bool (*valid)(std::string_view);
  std::string_view expected;
};
constexpr Field kFields[] = {
    {"schema", Field::TEXT, [](std::string_view s) { return s == "h5i.plugin/1"; }, "h5i.plugin/1"},
    {"id", Field::TEXT, valid_plugin_id, "[a-z0-9][a-z0-9._-]{0,63} without \"..\""},
    {"kind", Field::TEXT, [](std::string_view s) { return s == "tier" || s == "websec"; }, "tier or websec"},
    {"version", Field::TEXT, valid_version, "a version such as 1.0.0"},
    {"library", Field::TEXT, valid_library, "a file name that ends in .so, without a directory"},
    {"sha256", Field::TEXT, valid_digest, "64 lower-case hexadecimal digits"},
    {"size", Field::SIZE, nullptr, "the library's size in bytes, at most 64 MiB"},
    {"platform", Field::TEXT, [](std::string_view s) { return all_among(s, "-_"); }, "linux-x86_64 or linux-aarch64"},
    {"abi", Field::ABI, nullptr, "{kind, major, minor}"},
    {"interfaces", Field::LIST, valid_interface, "names such as h5i.tier/1"},
    {"host_services", Field::LIST, valid_interface, "names such as h5i.host.spawn/1"},
    {"lanes", Field::LIST, valid_lane, "host-observed, engine-claimed or box-claimed"},
    {"needs", Field::LIST, valid_needed, "file names of shared libraries"},
    {"claims", Field::LIST, valid_claim, "policy fields such as fs.read"},
    {"posture", Field::TEXT, any_text, "one line of text"},
    {"maintainers", Field::LIST, any_text, "lines of text"},
    {"package", Field::TEXT, valid_package, "a package name"},
};

Error bad(std::string_view what, std::string_view key, std::string_view expected) {
  return make_error(Errc::PLUGIN_MANIFEST, std::string(what) + " is not a valid manifest",
                    std::string(key) + ": expected " + std::string(expected));
}

Result<void> check_abi(const Json& abi, std::string_view what) {
  const Json &kind = abi["kind"], &major = abi["major"], &minor = abi["minor"];
  if (!abi.is_object() || abi.object().size() != 3 || !kind.is_string() || !major.is_int() || !minor.is_int())
    return bad(what, "abi", "{kind, major, minor}");
  if (major.integer() != H5I_ABI_MAJOR)
    return make_error(
        Errc::PLUGIN_ABI_MAJOR, std::string(what) + " is for another major version of the plugin ABI",
        "the manifest says " + std::to_string(major.integer()) + ", this host has " + std::to_string(H5I_ABI_MAJOR));
  if (kind.string() == "unstable")
    return make_error(Errc::PLUGIN_ABI_MAJOR, std::string(what) + " uses draft interfaces",
                      "abi.kind is unstable, and this host was not built for it",
                      "build the plugin for the stable ABI");
  if (kind.string() != "stable") return bad(what, "abi.kind", "stable or unstable");
  if (minor.integer() < 0 || minor.integer() > 0xffff) return bad(what, "abi.minor", "a small number");
  return {};
}

Result<void> check_field(const Field& field, const Json& value, std::string_view what) {
  auto text_ok = [&](const Json& v) {
    return v.is_string() && v.string().size() <= kMaxManifestText &&
           (v.string().empty() ? field.valid == any_text : field.valid(v.string()));
  };
  switch (field.kind) {
    case Field::TEXT:
      if (!text_ok(value)) return bad(what, field.key, field.expected);
      return {};
    case Field::LIST:
      if (!value.is_array() || value.array().size() > kMaxManifestItems ||
          !std::all_of(value.array().begin(), value.array().end(), text_ok))
        return bad(what, field.key, std::string("a list of ") + std::string(field.expected));
      return {};
    case Field::SIZE:
      if (!value.is_int() || value.integer() <= 0 || static_cast<uint64_t>(value.integer()) > kMaxLibraryBytes)
        return bad(what, field.key, field.expected);
      return {};
    case Field::ABI:
      return check_abi(value, what);
  }
  return {};
}

}  // namespace

bool valid_plugin_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && among(id[0], "") && all_among(id, "._-") &&
         id.find("..") == std::string_view::npos;
}

std::string_view this_platform() {
#if defined(__x86_64__)
  return "linux-x86_64";
#elif defined(__aarch64__)
  return "linux-aarch64";
#else
  return "unsupported";
#endif
}

Result<void> check_manifest(const Json& manifest, std::string_view what) {
  if (!manifest.is_object()) return bad(what, "document", "a map");
  for (const auto& [key, value] : manifest.object())
    if (std::none_of(std::begin(kFields), std::end(kFields), [&name = key](const Field& f) { return f.key == name; }))
      return make_error(Errc::PLUGIN_MANIFEST, std::string(what) + " is not a valid manifest", "unknown key " + key);
  for (const Field& field : kFields) {
    const Json* value = manifest.object().find(field.key);
    if (value == nullptr) return bad(what, field.key, std::string(field.expected) + "; it is missing");
    H5I_TRY(check_field(field, *value, what));
  }
  std::string interface = "h5i." + manifest["kind"].string() + "/1";
  std::vector<std::string> interfaces = manifest_list(manifest, "interfaces");
  if (std::find(interfaces.begin(), interfaces.end(), interface) == interfaces.end())
    return bad(what, "interfaces", interface + " among them, as the kind says");
  if (manifest["platform"].string() != this_platform())
    return make_error(Errc::TIER_PLATFORM, std::string(what) + " is for another platform",
                      "built for " + manifest["platform"].string() + ", this is " + std::string(this_platform()));
  return {};
}

std::string manifest_bytes(const Json& manifest) { return json::canonical(manifest) + "\n"; }

Result<Json> parse_manifest(std::string_view bytes, std::string_view what) {
  if (bytes.size() > kMaxManifestBytes)
    return make_error(Errc::PLUGIN_MANIFEST, std::string(what) + " is too large",
                      "more than " + std::to_string(kMaxManifestBytes) + " bytes");
  auto parsed = parse_json(bytes, what, kMaxManifestBytes);
  std::string_view body = bytes.ends_with('\n') ? bytes.substr(0, bytes.size() - 1) : bytes;
  if (!parsed || json::canonical(*parsed) != body)
    return make_error(Errc::PLUGIN_MANIFEST, std::string(what) + " is not in the form of an installed manifest",
                      parsed ? "it is JSON, but not canonical (sorted keys, no space)" : parsed.error().evidence,
                      "h5i plugin install FILE reads any manifest and writes that form");
  H5I_TRY(check_manifest(*parsed, what));
  return std::move(*parsed);
}

std::vector<std::string> manifest_list(const Json& manifest, std::string_view key) {
  return strings(manifest[key]);
}

}  // namespace h5i::plugin
