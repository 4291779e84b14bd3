// Which boxes there are, and which one a person means.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"
#include "core/session/box.hpp"

namespace h5i::session {
namespace {

// Folders that are not a box (a half-made one, a stray file) are passed over: one stale folder hides no other.
void collect(const std::string& boxes, std::vector<BoxEntry>& out) {
  auto top = os::open_directory(boxes);
  if (!top) return;
  auto agents = os::list_directory(*top);
  if (!agents) return;
  for (const auto& agent : *agents) {
    if (!valid_slug(agent.name, true)) continue;
    auto folder = os::open_directory_beneath(*top, agent.name);
    if (!folder) continue;
    auto slugs = os::list_directory(*folder);
    if (!slugs) continue;
    for (const auto& slug : *slugs) {
      if (!valid_slug(slug.name, false)) continue;
      auto box = os::open_directory_beneath(*folder, slug.name);
      if (!box || ::faccessat(box->get(), "manifest.json", F_OK, AT_SYMLINK_NOFOLLOW) != 0) continue;
      out.push_back({{agent.name, slug.name}, {boxes + "/" + agent.name + "/" + slug.name}});
    }
  }
}

}  // namespace

Result<std::vector<BoxEntry>> list_boxes(const std::string& cwd, const UserDirs& dirs) {
  std::vector<BoxEntry> out;
  auto repository = find_repository(cwd);
  if (repository) collect(repository->common_dir + "/h5i/boxes", out);
  // The repository's own box wins over a detached one of the same name.
  std::vector<BoxEntry> detached;
  collect(dirs.state + "/boxes", detached);
  for (BoxEntry& d : detached)
    if (std::none_of(out.begin(), out.end(), [&](const BoxEntry& b) { return b.name == d.name; })) out.push_back(std::move(d));
  std::sort(out.begin(), out.end(), [](const BoxEntry& a, const BoxEntry& b) { return a.name < b.name; });
  return out;
}

Result<BoxEntry> find_box(std::string_view text, const std::string& cwd, const UserDirs& dirs) {
  bool whole = text.find('/') != std::string_view::npos;
  BoxName wanted = H5I_TRY(BoxName::parse(text, "human"));
  std::vector<BoxEntry> matches;
  for (BoxEntry& b : H5I_TRY(list_boxes(cwd, dirs)))
    if (b.name.slug == wanted.slug && (!whole || b.name.agent == wanted.agent)) matches.push_back(std::move(b));
  if (matches.size() == 1) return std::move(matches[0]);
  if (matches.empty()) {
    auto repository = find_repository(cwd);
    return make_error(Errc::BOX_NOT_FOUND, "there is no box " + printable(text),
                      repository ? "looked in " + printable(repository->common_dir) + "/h5i/boxes and " + printable(dirs.state) + "/boxes"
                                 : "no repository around " + printable(cwd) + "; looked in " + printable(dirs.state) + "/boxes");
  }
  std::string candidates;
  for (const BoxEntry& b : matches) candidates += (candidates.empty() ? "" : ", ") + b.name.str();
  return make_error(Errc::BOX_AMBIGUOUS, "more than one box is called " + printable(text), candidates,
                    "h5i box ... " + matches[0].name.str());
}

}  // namespace h5i::session
