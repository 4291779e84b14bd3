#include "core/cli/log_target.hpp"

#include <unistd.h>

#include <cstdlib>

#include "core/base/text.hpp"
#include "core/cli/caller.hpp"
#include "core/evidence/lines.hpp"
#include "core/evidence/log.hpp"
#include "core/os/beneath.hpp"

namespace h5i::cli {
namespace {

bool is_path(const std::string& t) { return t.rfind('/', 0) == 0 || t.rfind("./", 0) == 0 || t.rfind("../", 0) == 0; }
// A box can be called that, too.
bool names_a_file(const std::string& t) { return t.size() > 6 && t.compare(t.size() - 6, 6, ".jsonl") == 0; }

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
  auto here = H5I_TRY(current_directory());
  session::UserDirs dirs = H5I_TRY(session::UserDirs::from_environment());
  return Place{std::move(here), std::move(dirs)};
}

// The name in record 0, "agent/slug"; empty when there is none.
std::string created_as(const session::BoxPaths& paths) {
  std::string out;
  (void)evidence::read_log(paths.log(), [&](uint64_t, const Json& r) {
    if (r["kind"].string() == "created") out = r["body"]["box"].string();
    return false;
  });
  return out;
}

// The number at the end of `folder` behind `mark`; 0 when there is none.
long number_behind(const std::string& folder, char mark) {
  size_t at = folder.rfind(mark);
  if (at == std::string::npos || folder.size() - at < 2 || folder.size() - at > 7) return 0;
  if (folder.find_first_not_of("0123456789", at + 1) != std::string::npos) return 0;
  return strtol(folder.c_str() + at + 1, nullptr, 10);
}

struct Kept {
  session::BoxEntry box;
  std::pair<int, long> age;  // the highest is the newest of its name
};

// What `box rm` kept: <...>/h5i/evidence/<agent>/<slug>, and <slug>~2 and so on when a box of that name was removed
// before. <slug>.2, as it once was, may be a box's own name: there the log's first record says which.
Kept kept_box(const std::string& agent, const std::string& folder, const std::string& dir) {
  Kept out{{{agent, folder}, {dir}}, {0, 1}};
  if (long n = number_behind(folder, '~'); n > 0) {
    out.box.name.slug = folder.substr(0, folder.rfind('~'));
    out.age = {2, n};
  } else if (long old = number_behind(folder, '.'); old > 0) {
    std::string stem = folder.substr(0, folder.rfind('.'));
    if (created_as(out.box.paths) == agent + "/" + stem) {
      out.box.name.slug = stem;
      out.age = {1, old};
    }
  }
  return out;
}

void collect_kept(const std::string& top, std::vector<Kept>& out) {
  auto folder = os::open_directory(top);
  auto agents = folder ? os::list_directory(*folder) : Result<std::vector<os::DirectoryEntry>>(folder.error());
  if (!agents) return;
  for (const auto& agent : *agents) {
    auto inner = os::open_directory_beneath(*folder, agent.name);
    auto slugs = inner ? os::list_directory(*inner) : Result<std::vector<os::DirectoryEntry>>(inner.error());
    if (!slugs) continue;
    for (const auto& slug : *slugs) out.push_back(kept_box(agent.name, slug.name, top + "/" + agent.name + "/" + slug.name));
  }
}

std::vector<Kept> removed_boxes(const Place& place) {
  std::vector<Kept> out;
  if (auto repository = session::find_repository(place.cwd))
    collect_kept(repository->common_dir + "/h5i/evidence", out);
  collect_kept(place.dirs.state + "/evidence", out);
  return out;
}

std::optional<LogTarget> of_removed_box(const std::string& text, const Place& place) {
  auto wanted = BoxName::parse(text, "human");
  if (!wanted) return {};
  bool whole = text.find('/') != std::string::npos;
  std::optional<Kept> best;
  for (Kept& k : removed_boxes(place)) {
    if (k.box.name.slug != wanted->slug || (whole && k.box.name.agent != wanted->agent)) continue;
    if (!best || k.age > best->age) best = std::move(k);
  }
  if (!best) return {};
  return LogTarget{best->box.paths.log(), best->box, {}};
}

Result<LogTarget> of_session(const std::string& id, bool also_removed) {
  Place place = H5I_TRY(here());
  std::vector<session::BoxEntry> boxes = H5I_TRY(session::list_boxes(place.cwd, place.dirs));
  if (also_removed)
    for (Kept& k : removed_boxes(place)) boxes.push_back(std::move(k.box));
  for (session::BoxEntry& b : boxes)
    if (mentions_session(b.paths.log(), id)) return LogTarget{b.paths.log(), b, id};
  return make_error(Errc::NOT_FOUND, "no box ran a session " + id,
                    "the logs of the boxes that are visible from here were searched");
}

}  // namespace

Result<LogTarget> box_log_target(const std::string& text) {
  Place place = H5I_TRY(here());
  auto box = session::find_box(text, place.cwd, place.dirs);
  if (box) return LogTarget{box->paths.log(), *box, {}};
  if (looks_like_session(text) && box.error().code == Errc::BOX_NOT_FOUND) return of_session(text, false);
  return std::move(box).error();
}

Result<LogTarget> log_target(const std::string& text) {
  if (is_path(text)) return LogTarget{text, {}, {}};
  Place place = H5I_TRY(here());
  auto box = session::find_box(text, place.cwd, place.dirs);
  if (box) return LogTarget{box->paths.log(), *box, {}};
  if (box.error().code == Errc::BOX_AMBIGUOUS) return std::move(box).error();
  if (names_a_file(text) && access(text.c_str(), F_OK) == 0) return LogTarget{text, {}, {}};
  auto session = looks_like_session(text) ? of_session(text, true) : Result<LogTarget>(box.error());
  if (session) return session;
  if (auto removed = of_removed_box(text, place)) return std::move(*removed);
  if (names_a_file(text)) return LogTarget{text, {}, {}};  // says that there is no such file
  return session;
}

}  // namespace h5i::cli
