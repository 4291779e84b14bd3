// What of a run can be seen from outside: by somebody who knows only the folder that it worked in and that all of it
// descends from this process.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace h5i::test {

struct Seen {
  pid_t pid = 0;
  char state = '?';
  std::string words;  // command line, or the kernel's name of it in brackets
};

// From now on what loses its parent below this process comes to this process, so descendants() is everything.
void adopt_orphans();
// Living processes below this one. Orphans that ended are reaped on the way, `not_mine` (a child that somebody waits
// for) excepted; a zombie whose parent is somebody else is listed with state Z.
std::vector<Seen> descendants(pid_t not_mine = 0);
// Processes anywhere whose command line or environment names `folder`.
std::vector<Seen> marked(const std::string& folder);
std::vector<pid_t> children_of(pid_t pid);
std::string text_of(const std::vector<Seen>& list);

// Mounts, in every mount namespace that /proc shows, sockets with a name, flock holders: each a line that says `folder`.
std::vector<std::string> holds_on(const std::string& folder);
// Every path below `folder` with type and mode, sorted.
std::vector<std::string> listing(const std::string& folder);
// Lines of `now` that are not in `before`, with "+ ", and the other way round with "- ".
std::vector<std::string> difference(const std::vector<std::string>& before, const std::vector<std::string>& now);
std::string joined(const std::vector<std::string>& lines);

// Control groups of the machine that are named h5i-*.
std::vector<std::string> groups_of_ours();

// Different namespaces, of all kinds, among these processes and this one.
size_t namespaces_of(const std::vector<Seen>& processes);
size_t descriptors_of(pid_t pid);
long resident_kib(pid_t pid);

}  // namespace h5i::test
