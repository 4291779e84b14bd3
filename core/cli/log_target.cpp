#include "core/cli/log_target.hpp"

#include <unistd.h>

#include "core/base/text.hpp"
#include "core/cli/caller.hpp"
#include "core/evidence/lines.hpp"
#include "core/os/beneath.hpp"

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
  return Place{H5I_TRY(current_directory()), H5I_TRY(session::UserDirs::from_environment())};
}

// What `box rm` kept: <...>/h5i/evidence/<agent>/<slug>, or <slug>.2 and so on when a box of that name was removed
// before.
void collect_kept(const std::string& top, std::vector<session::BoxEntry>& out) {
  auto folder = os::open_directory(top);
  auto agents = folder ? os::list_directory(*folder) : Result<std::vector<os::DirectoryEntry>>(folder.error());
  if (!agents) return;
  for (const auto& agent : *agents) {
    auto inner = os::open_directory_beneath(*folder, agent.name);
    auto slugs = inner ? os::list_directory(*inner) : Result<std::vector<os::DirectoryEntry>>(inner.error());
    if (!slugs) continue;
    for (const auto& slug : *slugs)
      out.push_back({{agent.name, slug.name}, {top + "/" + agent.name + "/" + slug.name}});
  }
}

std::vector<session::BoxEntry> removed_boxes(const Place& place) {
  std::vector<session::BoxEntry> out;
  if (auto repository = session::find_repository(place.cwd))
    collect_kept(repository->common_dir + "/h5i/evidence", out);
  collect_kept(place.dirs.state + "/evidence", out);
  return out;
}

// The newest evidence of a removed box of that name: the highest number wins.
std::optional<LogTarget> of_removed_box(const std::string& text, const Place& place) {
  auto wanted = BoxName::parse(text, "human");
  if (!wanted) return {};
  bool whole = text.find('/') != std::string::npos;
  std::optional<LogTarget> best;
  long best_number = 0;
  for (const session::BoxEntry& b : removed_boxes(place)) {
    if (whole && b.name.agent != wanted->agent) continue;
    std::string rest = b.name.slug.rfind(wanted->slug, 0) == 0 ? b.name.slug.substr(wanted->slug.size()) : "?";
    bool numbered = rest.size() > 1 && rest.size() < 8 && rest[0] == '.' &&
                    rest.find_first_not_of("0123456789", 1) == std::string::npos;
    long number = rest.empty() ? 1 : numbered ? strtol(rest.c_str() + 1, nullptr, 10) : 0;
    if (number <= best_number) continue;
    best_number = number;
    best = LogTarget{b.paths.log(), session::BoxEntry{{b.name.agent, wanted->slug}, b.paths}, {}};
  }
  return best;
}

Result<LogTarget> of_session(const std::string& id, bool also_removed) {
  Place place = H5I_TRY(here());
  std::vector<session::BoxEntry> boxes = H5I_TRY(session::list_boxes(place.cwd, place.dirs));
  if (also_removed)
    for (session::BoxEntry& b : removed_boxes(place)) boxes.push_back(std::move(b));
  for (session::BoxEntry& b : boxes)
    if (mentions_session(b.paths.log(), id)) return LogTarget{b.paths.log(), b, id};
  return make_error(Errc::NOT_FOUND, "no box ran a session " + id,
                    "the logs of the boxes that are visible from here were searched");
}

}  // namespace

Result<LogTarget> box_log_target(const std::string& text) {
  if (looks_like_session(text)) return of_session(text, false);
  Place place = H5I_TRY(here());
  session::BoxEntry box = H5I_TRY(session::find_box(text, place.cwd, place.dirs));
  return LogTarget{box.paths.log(), box, {}};
}

Result<LogTarget> log_target(const std::string& text) {
  if (looks_like_path(text)) return LogTarget{text, {}, {}};
  if (looks_like_session(text)) return of_session(text, true);
  auto box = box_log_target(text);
  if (box || box.error().code != Errc::BOX_NOT_FOUND) return box;
  Place place = H5I_TRY(here());
  if (auto removed = of_removed_box(text, place)) return std::move(*removed);
  return box;
}

}  // namespace h5i::cli
