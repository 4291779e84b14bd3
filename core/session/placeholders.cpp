#include "core/session/placeholders.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/os/beneath.hpp"

namespace h5i::session {

std::vector<std::string> names_to_be_made(const Json& plan, const std::string& work) {
  std::vector<std::string> out;
  for (const Json& mount : plan["mounts"].array()) {
    const std::string& target = mount["target"].string();
    if (mount["kind"].string() != "mask" || !target.starts_with(work + "/")) continue;
    for (size_t at = work.size() + 1; at != std::string::npos;) {
      at = target.find('/', at);
      std::string name = target.substr(0, at);
      struct stat st {};
      if (::lstat(name.c_str(), &st) != 0 && errno == ENOENT) out.push_back(name.substr(work.size() + 1));
      if (at != std::string::npos) at++;
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<std::string> names_to_be_made_outside(const Json& plan, const std::string& work) {
  std::vector<std::string> out;
  for (const Json& mount : plan["mounts"].array()) {
    const std::string& folder = mount["source"].string();
    const auto& flags = mount["flags"].array();
    bool written = std::none_of(flags.begin(), flags.end(), [](const Json& f) { return f.string() == "ro"; });
    if (mount["kind"].string() != "bind" || mount["target"].string() != folder || !written || (folder + "/").starts_with(work + "/")) continue;
    for (const std::string& name : names_to_be_made(plan, folder)) out.push_back(folder + "/" + name);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<std::string> remove_placeholders_outside(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  auto root = os::open_directory("/");
  if (!root) return {};
  std::vector<std::string> below, removed;
  for (const std::string& name : names) below.push_back(name.substr(1));
  for (const std::string& name : remove_placeholders(*root, below)) removed.push_back("/" + name);
  return removed;
}

std::vector<std::string> remove_placeholders(const UniqueFd& work, const std::vector<std::string>& names) {
  std::vector<std::string> deepest_first = names, removed;
  std::sort(deepest_first.begin(), deepest_first.end(),
            [](auto& a, auto& b) { return a.size() != b.size() ? a.size() > b.size() : a < b; });
  for (const std::string& name : deepest_first) {
    size_t slash = name.rfind('/');
    auto parent = os::open_directory_beneath(work, slash == std::string::npos ? "." : name.substr(0, slash));
    if (!parent) continue;
    std::string last = slash == std::string::npos ? name : name.substr(slash + 1);
    struct stat st {};
    if (::fstatat(parent->get(), last.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    bool gone = false;
    if (S_ISDIR(st.st_mode))
      gone = ::unlinkat(parent->get(), last.c_str(), AT_REMOVEDIR) == 0;  // fails unless it is empty
    if (S_ISREG(st.st_mode) && st.st_size == 0 && st.st_nlink == 1)
      gone = ::unlinkat(parent->get(), last.c_str(), 0) == 0;
    if (gone) removed.push_back(name);
  }
  return removed;
}

}  // namespace h5i::session
