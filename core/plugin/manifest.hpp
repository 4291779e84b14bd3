// The manifest of a plugin, schema h5i.plugin/1: read before any of its code, strictly and with limits.
//
// An installed manifest is YAML in its JSON subset: one canonical JSON document (RFC 8785) and at most one newline, so
// that the run path needs no YAML parser (docs/adr/0010). `h5i plugin install` turns any strict YAML into that form.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"

namespace h5i::plugin {

inline constexpr size_t kMaxManifestBytes = 64u << 10;
inline constexpr size_t kMaxManifestItems = 64;          // of each list
inline constexpr size_t kMaxManifestText = 500;          // bytes of each text
// Read whole before it is mapped. What a sanitizer adds to a library can be many times its size.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr uint64_t kMaxLibraryBytes = 512u << 20;
#else
inline constexpr uint64_t kMaxLibraryBytes = 64u << 20;
#endif
inline constexpr std::string_view kManifestSuffix = ".plugin.yaml";

// Every field present and of its form, no unknown one. `what` names the document in errors: PLUGIN_MANIFEST,
// PLUGIN_ABI_MAJOR (another major, or a draft), TIER_PLATFORM (built for another platform).
Result<void> check_manifest(const Json& manifest, std::string_view what);

// Bytes of an installed manifest: canonical form, then check_manifest.
Result<Json> parse_manifest(std::string_view bytes, std::string_view what);

// The form in which a manifest is installed.
std::string manifest_bytes(const Json& manifest);

// "linux-x86_64": what a plugin must be built for to run here.
std::string_view this_platform();

// A list of texts of a checked manifest.
std::vector<std::string> manifest_list(const Json& manifest, std::string_view key);

bool valid_plugin_id(std::string_view id);

}  // namespace h5i::plugin
