#include "core/session/verify_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/unique_fd.hpp"
#include "core/os/owned_file.hpp"

namespace h5i::session {
namespace {

constexpr off_t kLimit = 1 << 20;

bool make_directories(const std::string& dir) {
  for (size_t at = 1; at != std::string::npos;) {
    at = dir.find('/', at + 1);
    if (mkdir(dir.substr(0, at).c_str(), 0700) < 0 && errno != EEXIST) return false;
  }
  return true;
}

// A directory or file that somebody else could have filled proves nothing.
bool only_ours(const struct stat& st) { return st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)); }

}  // namespace

Json VerifyKey::to_json() const {
  return json::Object{{"effective_digest", effective_digest}, {"plugin_digest", plugin_digest}, {"boot_id", boot_id},
                      {"probe_digest", probe_digest},         {"uid", uid}};
}
Json ProbeKey::to_json() const {
  return json::Object{{"plugin_digest", plugin_digest}, {"boot_id", boot_id}, {"uid", uid}};
}

std::string ResultCache::path(const char* kind, const Json& key) const {
  return dir_ + "/" + kind + "-" + canonical_digest(key) + ".json";
}

std::optional<Json> ResultCache::get(const char* kind, const Json& key) const {
  if (dir_.empty()) return std::nullopt;
  struct stat st {};
  if (lstat(dir_.c_str(), &st) < 0 || !S_ISDIR(st.st_mode) || !only_ours(st)) return std::nullopt;
  if (!os::check_owned_directory(dir_, geteuid(), Errc::DENIED)) return std::nullopt;  // nor could be put in another's place
  UniqueFd fd(open(path(kind, key).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd || fstat(fd.get(), &st) < 0 || !S_ISREG(st.st_mode) || !only_ours(st) || st.st_size > kLimit) return std::nullopt;
  std::string text(static_cast<size_t>(st.st_size), '\0');
  if (read(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return std::nullopt;
  auto v = json::parse(text);
  if (!v || !((*v)["key"] == key)) return std::nullopt;
  return (*v)["document"];
}

void ResultCache::put(const char* kind, const Json& key, const Json& document) const {
  if (dir_.empty() || !make_directories(dir_)) return;
  std::string text = json::canonical(json::Object{{"key", key}, {"document", document}}), name = path(kind, key);
  // Under its own name from the start, so that a death in between leaves no other. Half a document is none for get().
  unlink(name.c_str());
  UniqueFd fd(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd && write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) unlink(name.c_str());
}

}  // namespace h5i::session
