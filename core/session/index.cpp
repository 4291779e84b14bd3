#include "core/session/index.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"

namespace h5i::session {
namespace {

constexpr const char* kFile = "repositories.json";
constexpr std::string_view kSchema = "h5i.repositories/1";
constexpr uint64_t kLimit = 4u << 20;

Result<std::vector<std::string>> read_index(const UniqueFd& state) {
  std::vector<std::string> out;
  auto text = os::read_file_beneath(state, kFile, kLimit);
  if (!text) {
    if (text.error().code == Errc::NOT_FOUND) return out;
    return std::move(text).error();
  }
  Json v = H5I_TRY(parse_json(*text, kFile, kLimit));
  if (v["schema"].string() != kSchema) return make_error(Errc::CORRUPT, "the list of repositories cannot be read", kFile);
  for (const Json& path : v["repositories"].array())
    if (!path.string().empty() && path.string()[0] == '/') out.push_back(path.string());
  return out;
}

}  // namespace

Result<void> remember_repository(const UserDirs& dirs, const std::string& common_dir) {
  UniqueFd state = H5I_TRY(make_private_directory(dirs.state));
  UniqueFd lock = H5I_TRY(os::open_beneath(state, "repositories.lock", O_RDWR | O_CREAT, 0600));
  while (::flock(lock.get(), LOCK_EX) != 0)
    if (errno != EINTR) return sys_error("lock the list of repositories");
  auto known = H5I_TRY(read_index(state));
  if (std::find(known.begin(), known.end(), common_dir) != known.end()) return {};
  known.push_back(common_dir);
  std::sort(known.begin(), known.end());
  Json list = json::Array{};
  for (const std::string& path : known) list.push(path);
  return os::replace_file(state, kFile, json::pretty(json::Object{{"schema", kSchema}, {"repositories", list}}) + "\n", 0600);
}

Result<std::vector<std::string>> known_repositories(const UserDirs& dirs) {
  auto state = os::open_directory(dirs.state);
  std::vector<std::string> out;
  if (!state) {
    if (state.error().code == Errc::NOT_FOUND) return out;
    return std::move(state).error();
  }
  for (std::string& path : H5I_TRY(read_index(*state))) {
    struct stat st{};
    if (::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) out.push_back(std::move(path));
  }
  return out;
}

}  // namespace h5i::session
