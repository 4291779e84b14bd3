// What configuration says, field by field, each with the place that says it. A field that a file leaves out is not here;
// an empty list is here and empty. Values are canonical already: paths expanded, rules parsed, lists sorted.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/result.hpp"
#include "core/policy/node.hpp"
#include "core/policy/paths.hpp"

namespace h5i::policy {

struct Setting {
  Json value;
  std::string profile;  // which profile sets it
  std::string file;     // empty: built-in
  Mark at;
  std::vector<std::pair<std::string, Mark>> items;  // where each member of a list or map stands

  bool builtin() const { return file.empty(); }
  std::string where() const;                               // "review (.h5i/env.yaml:9:22)", "default (built-in)"
  std::string where_item(const std::string& item) const;   // the item's own place when it is known
};

// Names as in the document: "fs.read", "net.mode", "resources.mem", "env.set", "secrets", "container.image", ...
using Settings = std::map<std::string, Setting>;

struct Profile {
  std::string name;
  std::string file;  // empty: built-in
  Mark at;
  std::optional<std::string> extends;
  Mark extends_at;
  std::string summary;  // built-ins: what it is for
  Settings settings;
};

struct FileModel {
  std::string file;
  std::map<std::string, Profile> profiles;
  std::optional<Setting> image;  // the repository's default image
  std::vector<std::string> notes;
};

// Turns a file's tree into the model; every fault is appended to `errors`, not only the first. `toml` admits spellings
// that only the predecessor's TOML files had.
FileModel read_model(const Node& root, const std::string& file, bool toml, const PathRoots& roots, std::vector<Error>& errors);

// Reads the bytes by the adapter of their format, then the model.
FileModel read_config(std::string_view bytes, const std::string& file, bool toml, const PathRoots& roots,
                      std::vector<Error>& errors);

// The built-in profiles. Paths of an unset root are left out. `agent` and `browser` stand on agent-claude or agent-codex,
// whichever `runtime` names ("claude", "codex"); they are absent when it is empty.
std::map<std::string, Profile> builtin_profiles(const PathRoots& roots, const std::string& runtime);

// A registry path with an optional :TAG or @sha256:DIGEST, or an absolute path.
bool valid_image_name(std::string_view text);
inline constexpr const char* kImageForm = "a registry path with an optional :TAG or @sha256:DIGEST, or an absolute path; at most 512 bytes";

// The names of every field, in the order of docs/policy.md.
extern const std::vector<std::string_view> kFields;
// Names under `resources`, in order.
extern const std::vector<std::string_view> kResources;
// "8G", "30m", "500k": a resource value as a person writes it.
std::string resource_text(std::string_view name, const Json& value);

}  // namespace h5i::policy
