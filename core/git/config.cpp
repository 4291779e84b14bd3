#include "core/git/config.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "core/base/text.hpp"
#include "core/git/config_file.hpp"
#include "core/git/handles.hpp"
#include "core/git/library.hpp"
#include "core/os/beneath.hpp"

namespace h5i::git {
namespace {

Result<ConfigHandle> open_config(const std::vector<std::string>& files) {
  H5I_TRY(ready());
  git_config* raw = nullptr;
  if (git_config_new(&raw) < 0) return library_error(Errc::GIT_FAILED, "configuration");
  ConfigHandle config(raw);
  // One level a file, ascending: later files win.
  int level = GIT_CONFIG_LEVEL_PROGRAMDATA;
  for (const std::string& file : files) {
    struct stat st{};
    if (stat(file.c_str(), &st) != 0) continue;
    // A fifo or device here would hold the reader for ever.
    if (!S_ISREG(st.st_mode)) return make_error(Errc::GIT_UNSUPPORTED, "the configuration is not a regular file", printable(file));
    if (git_config_add_file_ondisk(config.get(), file.c_str(), static_cast<git_config_level_t>(level++), nullptr, 0) < 0)
      return library_error(Errc::GIT_FAILED, "the configuration cannot be read: " + printable(file));
  }
  return config;
}

bool ends_with(std::string_view s, std::string_view end) { return s.size() >= end.size() && s.substr(s.size() - end.size()) == end; }

std::string lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return s;
}

bool is_true(std::string_view v) {
  int out = 0;
  return git_config_parse_bool(&out, std::string(v).c_str()) == 0 && out;
}

Error unsupported(const std::string& key, const std::string& value) {
  return make_error(Errc::GIT_UNSUPPORTED, "the repository's format is not supported", printable(key + " = " + value));
}

Error partial(const std::string& evidence) {
  return make_error(Errc::GIT_PARTIAL, "the repository is a partial clone: objects are fetched when they are wanted, and a box cannot fetch", printable(evidence));
}

Result<void> check_entry(const std::string& name, const std::string& value, bool v1) {
  if (name == "core.repositoryformatversion" && value != "0" && value != "1") return unsupported(name, value);
  if (name.rfind("remote.", 0) == 0 && ends_with(name, ".promisor") && is_true(value)) return partial(name + " = " + value);
  if (name.rfind("remote.", 0) == 0 && ends_with(name, ".partialclonefilter")) return partial(name + " = " + value);
  if (name.rfind("extensions.", 0) != 0) return {};
  std::string extension = name.substr(11);
  if (extension == "partialclone") return partial(name + " = " + value);
  if (extension == "objectformat") return lower(value) == "sha1" ? Result<void>{} : unsupported(name, value);
  if (extension == "refstorage") return lower(value) == "files" ? Result<void>{} : unsupported(name, value);
  if (extension == "compatobjectformat") return unsupported(name, value);
  static const char* kFine[] = {"noop", "noop-v1", "worktreeconfig", "relativeworktrees", "preciousobjects"};
  for (const char* fine : kFine)
    if (extension == fine) return {};
  return v1 ? Result<void>(unsupported(name, value)) : Result<void>{};
}

}  // namespace

UserConfig UserConfig::of(const std::string& home, const std::string& xdg) {
  UserConfig out;
  out.files.push_back("/etc/gitconfig");
  if (!xdg.empty()) out.files.push_back(xdg + "/git/config");
  else if (!home.empty()) out.files.push_back(home + "/.config/git/config");
  if (!home.empty()) out.files.push_back(home + "/.gitconfig");
  return out;
}

Result<void> check_format(const std::string& common_dir) {
  std::vector<Setting> settings = H5I_TRY(read_config(common_dir));
  const std::string* version = last_value(settings, "core.repositoryformatversion");
  for (const Setting& s : settings) H5I_TRY(check_entry(lower(s.name), s.value, version && *version != "0"));
  // A clone whose configuration was edited still has promisor packs.
  auto packs = os::open_directory(common_dir + "/objects/pack");
  if (packs)
    for (const os::DirectoryEntry& e : H5I_TRY(os::list_directory(*packs)))
      if (ends_with(e.name, ".promisor")) return partial("objects/pack/" + e.name);
  return {};
}

Result<void> check_owner(const std::string& common_dir, const std::string& work_dir, unsigned euid, long sudo_uid, const UserConfig& user) {
  auto ours = [&](const std::string& path) {
    struct stat st{};
    return stat(path.c_str(), &st) == 0 && (st.st_uid == euid || (euid == 0 && sudo_uid >= 0 && st.st_uid == static_cast<unsigned long>(sudo_uid)));
  };
  if (ours(common_dir) && (work_dir.empty() || ours(work_dir))) return {};
  ConfigHandle config = H5I_TRY(open_config(user.files));
  git_config_iterator* raw = nullptr;
  if (git_config_multivar_iterator_new(&raw, config.get(), "safe.directory", nullptr) == 0) {
    ConfigIteratorHandle it(raw);
    git_config_entry* entry = nullptr;
    bool safe = false;
    while (git_config_next(&entry, it.get()) == 0) {
      std::string value = entry->value ? entry->value : "";
      if (value.empty()) safe = false;  // git: an empty value forgets the earlier ones
      else if (value == "*" || value == work_dir || value == common_dir) safe = true;
      else if (ends_with(value, "/*") && (work_dir.empty() ? common_dir : work_dir).rfind(value.substr(0, value.size() - 1), 0) == 0) safe = true;
    }
    if (safe) return {};
  }
  return make_error(Errc::GIT_OWNER, "the repository belongs to another user", printable(common_dir),
                    "git config --global --add safe.directory " + printable(work_dir.empty() ? common_dir : work_dir));
}

Result<Identity> commit_identity(const std::string& common_dir, const UserConfig& user) {
  ConfigHandle config = H5I_TRY(open_config(user.files));
  Identity out;
  // libgit2 refuses angle brackets in a signature; git strips them.
  auto take = [](std::string text, std::string& value) {
    text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == '<' || c == '>' || c == '\n' || c == '\r' || c == '\0'; }), text.end());
    if (!text.empty()) value = text;
  };
  auto read = [&](const char* key, std::string& value) {
    git_buf buf = GIT_BUF_INIT;
    if (git_config_get_string_buf(&buf, config.get(), key) == 0 && buf.size > 0) {
      std::string text(buf.ptr, buf.size);
      take(text, value);
    }
    git_buf_dispose(&buf);
  };
  std::vector<Setting> own;
  if (!common_dir.empty()) own = H5I_TRY(read_config(common_dir));
  for (auto [key, value] : {std::pair{"user.name", &out.name}, std::pair{"user.email", &out.email}}) {
    read(key, *value);
    if (const std::string* v = last_value(own, key)) take(*v, *value);
  }
  return out;
}

Result<std::string> remote_url(const std::string& common_dir, const std::string& remote) {
  std::vector<Setting> settings = H5I_TRY(read_config(common_dir));
  const std::string* found = last_value(settings, "remote." + remote + ".url");
  std::string url = found ? *found : "";
  if (url.empty()) return make_error(Errc::GIT_SOURCE, "the repository has no remote " + printable(remote), "remote." + printable(remote) + ".url is not set");
  return url;
}

}  // namespace h5i::git
