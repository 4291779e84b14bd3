// The invoking user's directories, by the XDG base directory specification 0.8: a relative value is ignored.
#include <climits>
#include <cstdlib>

#include "core/base/text.hpp"
#include "core/session/box.hpp"

namespace h5i::session {
namespace {

std::string absolute_variable(const char* name) {
  const char* value = ::getenv(name);
  if (!value || value[0] != '/') return {};
  std::string text = value;
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

Result<std::string> directory(const char* variable, const std::string& home, const char* below) {
  std::string base = absolute_variable(variable);
  if (base.empty()) {
    if (home.empty())
      return make_error(Errc::NO_HOME, "this user's directories are not known",
                        std::string("neither HOME nor ") + variable + " is an absolute path",
                        std::string("set HOME, or ") + variable);
    base = home + below;
  }
  base += "/h5i";
  if (base.size() >= PATH_MAX / 2)
    return make_error(Errc::TOO_LARGE, std::string("the directory of ") + variable + " is too long",
                      std::to_string(base.size()) + " bytes, at most " + std::to_string(PATH_MAX / 2 - 1));
  return base;
}

}  // namespace

Result<UserDirs> UserDirs::from_environment() {
  UserDirs dirs;
  dirs.home = absolute_variable("HOME");
  dirs.config = H5I_TRY(directory("XDG_CONFIG_HOME", dirs.home, "/.config"));
  dirs.state = H5I_TRY(directory("XDG_STATE_HOME", dirs.home, "/.local/state"));
  dirs.cache = H5I_TRY(directory("XDG_CACHE_HOME", dirs.home, "/.cache"));
  std::string runtime = absolute_variable("XDG_RUNTIME_DIR");
  dirs.runtime = runtime.empty() ? dirs.state + "/run" : runtime + "/h5i";
  return dirs;
}

}  // namespace h5i::session
