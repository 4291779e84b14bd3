#include "core/git/private_git.hpp"

#include <fcntl.h>
#include <git2/sys/index.h>
#include <sys/stat.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/git/handles.hpp"
#include "core/git/library.hpp"
#include "core/os/beneath.hpp"

namespace h5i::git {
namespace {

Result<void> new_file(const UniqueFd& dir, const std::string& path, const std::string& bytes) {
  UniqueFd fd = H5I_TRY(os::open_beneath(dir, path, O_WRONLY | O_CREAT | O_EXCL, 0644));
  return os::write_all(fd, bytes);
}

std::string quoted(const std::string& v) {
  std::string out = "\"";
  for (char c : v) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

std::string config_text(const PrivateGit& w) {
  std::string out =
      "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\tautocrlf = false\n";
  // Inside, the files belong to the box's own id; comparing owners would call every file changed.
  if (w.foreign_owner) out += "\tcheckStat = minimal\n";
  out += "[user]\n\tname = " + quoted(w.user_name) + "\n\temail = " + quoted(w.user_email) + "\n";
  // A collection inside the box could not reach the borrowed objects anyway.
  out += "[gc]\n\tauto = 0\n";
  return out;
}

Result<void> write_index(const std::string& path, const Tree& tree, const States& states) {
  H5I_TRY(ready());
  git_index* raw = nullptr;
  if (git_index_open(&raw, path.c_str()) < 0) return library_error(Errc::GIT_FAILED, "the box's index cannot be made");
  IndexHandle index(raw);
  auto state = states.begin();
  for (const Entry& e : tree) {
    git_index_entry entry{};
    entry.path = e.path.c_str();
    entry.mode = plain_mode(e.mode);
    entry.id = to_git(e.oid);
    while (state != states.end() && state->path < e.path) ++state;
    if (state != states.end() && state->path == e.path) {
      entry.mtime = {static_cast<int32_t>(state->mtime_ns / 1000000000), static_cast<uint32_t>(state->mtime_ns % 1000000000)};
      entry.ctime = {static_cast<int32_t>(state->ctime_ns / 1000000000), static_cast<uint32_t>(state->ctime_ns % 1000000000)};
      entry.ino = static_cast<uint32_t>(state->inode);
      entry.dev = static_cast<uint32_t>(state->device);
      entry.uid = geteuid();
      entry.gid = getegid();
      entry.file_size = static_cast<uint32_t>(state->size);
    }
    if (git_index_add(index.get(), &entry) < 0) return library_error(Errc::GIT_FAILED, "the box's index refuses " + printable(e.path));
  }
  if (git_index_write(index.get()) < 0) return library_error(Errc::GIT_FAILED, "the box's index cannot be written");
  if (chmod(path.c_str(), 0644) != 0) return sys_error("set the mode of the box's index");  // whatever the umask is
  return {};
}

// A line of an exclude file that matches this path and no other (gitignore(5): special characters and a space at the end).
std::string literal_pattern(const std::string& path) {
  std::string out;
  for (char c : path) {
    if (c == '*' || c == '?' || c == '[' || c == '\\' || c == ' ') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

Result<void> write_private_git(const UniqueFd& box_dir, const std::string& box_path, const PrivateGit& w, const Tree& tree, const States& states) {
  if (mkdirat(box_dir.get(), "git", 0755) != 0) return sys_error("make the box's git directory");
  UniqueFd git = H5I_TRY(os::open_directory_beneath(box_dir, "git"));
  for (const char* d : {"objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"})
    H5I_TRY(os::make_directories_beneath(git, d, 0755));
  H5I_TRY(new_file(git, "HEAD", "ref: " + w.branch + "\n"));
  H5I_TRY(new_file(git, "config", config_text(w)));
  std::string excluded;
  for (const std::string& path : w.excluded)
    if (path.find('\n') == std::string::npos) excluded += "/" + literal_pattern(path) + "\n";
  H5I_TRY(new_file(git, "info/exclude", excluded));
  if (!w.object_dirs.empty()) {
    std::string lines;
    for (const std::string& d : w.object_dirs) {
      if (d.find('\n') != std::string::npos || d[0] != '/')
        return make_error(Errc::GIT_UNSUPPORTED, "the object directory's path cannot be written to info/alternates", printable(d));
      lines += d + "\n";
    }
    H5I_TRY(new_file(git, "objects/info/alternates", lines));
  } else if (w.copy_from) {
    H5I_TRY(w.copy_from->write_pack(w.head, box_path + "/git/objects/pack"));
    if (w.shallow) H5I_TRY(new_file(git, "shallow", w.head.hex() + "\n"));
  }
  std::vector<RefValue> refs = w.refs;
  refs.push_back({w.branch, w.head});
  std::sort(refs.begin(), refs.end(), [](const RefValue& a, const RefValue& b) { return a.name < b.name; });
  std::string packed = "# pack-refs with: sorted \n";
  for (size_t i = 0; i < refs.size(); i++)
    if (i == 0 || refs[i].name != refs[i - 1].name) packed += refs[i].target.hex() + " " + refs[i].name + "\n";
  H5I_TRY(new_file(git, "packed-refs", packed));
  return write_index(box_path + "/git/index", tree, states);
}

}  // namespace h5i::git
