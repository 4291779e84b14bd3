#include "core/plugin/pins.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/json.hpp"
#include "core/plugin/manifest.hpp"

namespace h5i::plugin {
namespace {

constexpr size_t kMaxLockBytes = 256u << 10;  // about a thousand plugins

std::pair<std::string, std::string> parent_and_name(const std::string& path) {
  size_t slash = path.rfind('/');
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Result<void> write_all(const UniqueFd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Result<Pins> load_pins(const std::string& path, Believed believed) {
  if (path.empty()) return Pins{};
  auto [parent, name] = parent_and_name(path);
  auto directory = open_trusted_directory(parent, believed);
  if (!directory && directory.error().code == Errc::NOT_FOUND) return Pins{};
  UniqueFd dir = H5I_TRY(std::move(directory));
  auto file = open_trusted_file(dir, name, path, believed);
  if (!file && file.error().code == Errc::NOT_FOUND) return Pins{};
  UniqueFd fd = H5I_TRY(std::move(file));
  std::string bytes = H5I_TRY(read_all(fd, kMaxLockBytes, path));
  auto bad = [&](const std::string& why) {
    return make_error(Errc::PLUGIN_MANIFEST, path + " is not a valid lock file", why,
                      "remove it and run h5i plugin trust again");
  };
  auto parsed = parse_json(bytes, path, kMaxLockBytes);
  if (!parsed) return bad(parsed.error().evidence);
  const Json& doc = *parsed;
  if (doc["schema"].string() != "h5i.plugin-lock/1" || !doc["pins"].is_object())
    return bad("schema or pins is missing");
  Pins pins;
  for (const auto& [id, pin] : doc["pins"].object()) {
    const std::string& digest = pin["sha256"].string();
    if (!valid_plugin_id(id) || digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != digest.npos)
      return bad("pin " + id);
    pins[id] = {PluginDigest(digest), pin["version"].string(), pin["trusted"].string()};
  }
  return pins;
}

Result<void> save_pins(const std::string& path, const Pins& pins) {
  json::Object entries;
  for (const auto& [id, pin] : pins)
    entries[id] = json::Object{{"sha256", pin.digest.value}, {"trusted", pin.trusted}, {"version", pin.version}};
  Json doc = json::Object{{"pins", std::move(entries)}, {"schema", "h5i.plugin-lock/1"}};
  auto [parent, name] = parent_and_name(path);
  UniqueFd dir(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return sys_error("open " + parent);
  return replace_file(dir, name, json::canonical(doc) + "\n", 0600);
}

Result<UniqueFd> make_private_directory(const std::string& path, Believed believed) {
  for (size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at + 1);
    std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return sys_error("make directory " + part);
  }
  return open_trusted_directory(path, believed);
}

Result<std::string> stage_file(const UniqueFd& directory, const std::string& name, std::string_view bytes, unsigned mode) {
  SessionId unique = H5I_TRY(new_session_id());
  std::string temporary = "." + name + "." + unique.value;
  auto write_it = [&]() -> Result<void> {
    UniqueFd fd(openat(directory.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) return sys_error("create " + temporary);
    H5I_TRY(write_all(fd, bytes));
    if (fchmod(fd.get(), mode) != 0) return sys_error("fchmod " + temporary);
    if (fsync(fd.get()) != 0) return sys_error("fsync " + temporary);
    return {};
  };
  auto done = write_it();
  if (done) return temporary;
  unlinkat(directory.get(), temporary.c_str(), 0);
  return std::move(done).error();
}

Result<void> place_file(const UniqueFd& directory, const std::string& staged, const std::string& name) {
  if (renameat(directory.get(), staged.c_str(), directory.get(), name.c_str()) != 0) {
    auto failed = sys_error("rename " + name);
    unlinkat(directory.get(), staged.c_str(), 0);
    return failed;
  }
  if (fsync(directory.get()) != 0) return sys_error("fsync the directory of " + name);
  return {};
}

Result<void> replace_file(const UniqueFd& directory, const std::string& name, std::string_view bytes, unsigned mode) {
  return place_file(directory, H5I_TRY(stage_file(directory, name, bytes, mode)), name);
}

}  // namespace h5i::plugin
