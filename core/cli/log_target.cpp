#include "core/cli/log_target.hpp"

#include <unistd.h>

#include <climits>

#include "core/base/text.hpp"
#include "core/evidence/lines.hpp"

namespace h5i::cli {
namespace {

bool looks_like_path(const std::string& t) {
  constexpr std::string_view kEnd = ".jsonl";
  return t.rfind('/', 0) == 0 || t.rfind("./", 0) == 0 || t.rfind("../", 0) == 0 ||
         (t.size() > kEnd.size() && t.compare(t.size() - kEnd.size(), kEnd.size(), kEnd) == 0);
}

bool looks_like_session(const std::string& t) {
  return t.size() == 26 && t.find_first_not_of("0123456789abcdefghjkmnpqrstvwxyz") == std::string::npos;
}

// Also a log that cannot be verified can be searched.
bool mentions_session(const std::string& path, const std::string& id) {
  auto lines = evidence::LineReader::open(path);
  if (!lines) return false;
  std::string member = "\"session\":\"" + id + "\"";
  evidence::Line line;
  for (auto more = lines->next(&line); more && *more; more = lines->next(&line))
    if (line.text.find(member) != std::string_view::npos) return true;
  return false;
}

struct Place {
  std::string cwd;
  session::UserDirs dirs;
};

Result<Place> here() {
  char buffer[PATH_MAX];
  if (!::getcwd(buffer, sizeof buffer)) return sys_error("the current directory cannot be named");
  return Place{buffer, H5I_TRY(session::UserDirs::from_environment())};
}

Result<LogTarget> of_session(const std::string& id) {
  Place place = H5I_TRY(here());
  for (session::BoxEntry& b : H5I_TRY(session::list_boxes(place.cwd, place.dirs)))
    if (mentions_session(b.paths.log(), id)) return LogTarget{b.paths.log(), b, id};
  return make_error(Errc::NOT_FOUND, "no box ran a session " + id,
                    "the logs of the boxes that are visible from here were searched");
}

}  // namespace

Result<LogTarget> box_log_target(const std::string& text) {
  if (looks_like_session(text)) return of_session(text);
  Place place = H5I_TRY(here());
  session::BoxEntry box = H5I_TRY(session::find_box(text, place.cwd, place.dirs));
  return LogTarget{box.paths.log(), box, {}};
}

Result<LogTarget> log_target(const std::string& text) {
  if (looks_like_path(text)) return LogTarget{text, {}, {}};
  return box_log_target(text);
}

}  // namespace h5i::cli
