#include "core/git/library.hpp"

#include <git2.h>

#include "core/base/text.hpp"

namespace h5i::git {
namespace {

// A remote that announces more objects than this is refused while its pack arrives.
constexpr size_t kMaxPackObjects = 20'000'000;
// Extensions that change nothing about objects and refs. What config.cpp does not know is refused before libgit2 sees it.
const char* kHarmless[] = {"worktreeconfig", "relativeworktrees", "preciousobjects", "objectformat"};

int set_up() {
  if (git_libgit2_init() < 0) return -1;
  for (int level : {GIT_CONFIG_LEVEL_PROGRAMDATA, GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_GLOBAL})
    if (git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, "") < 0) return -1;
  if (git_libgit2_opts(GIT_OPT_SET_TEMPLATE_PATH, "") < 0) return -1;
  git_libgit2_opts(GIT_OPT_ENABLE_STRICT_OBJECT_CREATION, 1);
  git_libgit2_opts(GIT_OPT_ENABLE_STRICT_SYMBOLIC_REF_CREATION, 1);
  git_libgit2_opts(GIT_OPT_ENABLE_STRICT_HASH_VERIFICATION, 1);
  git_libgit2_opts(GIT_OPT_ENABLE_UNSAVED_INDEX_SAFETY, 1);
  git_libgit2_opts(GIT_OPT_SET_PACK_MAX_OBJECTS, kMaxPackObjects);
  git_libgit2_opts(GIT_OPT_SET_EXTENSIONS, kHarmless, sizeof kHarmless / sizeof *kHarmless);
  // The owner is judged by config.cpp, which also reads safe.directory: libgit2 looks for it only in the files that the
  // empty search path just took from it.
  git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
  return 0;
}

}  // namespace

Result<void> ready() {
  static const int state = set_up();
  if (state < 0) return library_error(Errc::GIT_FAILED, "the git library did not start");
  return {};
}

Error library_error(Errc code, std::string what) {
  const git_error* e = git_error_last();
  return make_error(code, std::move(what), e && e->message ? printable(e->message) : "");
}

}  // namespace h5i::git
