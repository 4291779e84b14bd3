// A user's home and a repository with boxes in it, that can be put back as they were, and a listing of all of it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "tests/cli/program.hpp"

namespace h5i::test {

constexpr uid_t kOrdinary = 65533;  // a user without an account
// The users that this test can be: itself, and when it is root an ordinary one.
std::vector<uid_t> people();
// Mounts of the test's own: root makes itself a mount namespace once. False: it cannot.
bool may_mount();

// Path -> kind, mode, owner, and the digest of the content or target. No times, no inodes.
using Listing = std::map<std::string, std::string>;
Listing list_tree(const std::string& top);
// Lines "+path", "-path", "~path" of what differs, at most 20.
std::vector<std::string> differences(const Listing& before, const Listing& after);

class World {
 public:
  // An empty home and a repository with one commit: a.txt, run.sh, link -> a.txt, dir/b.txt.
  explicit World(uid_t uid);
  ~World();
  World(const World&) = delete;

  uid_t uid() const { return uid_; }
  std::string operator/(const std::string& below) const { return live_ + "/" + below; }
  std::string home() const { return live_ + "/home"; }
  std::string repo = "r";  // below the world; the directory that h5i and git are started in
  std::string tier;        // of the boxes that make_boxes() makes
  std::string where() const { return live_ + "/" + repo; }
  std::string outside(const std::string& below) const { return root_ + "/" + below; }  // not put back, not listed

  Program h5i(std::vector<std::string> words) const;
  // Exit status 0 or the test ends.
  Json made(std::vector<std::string> words) const;
  // The git program as this user, from `where()`; `must`: its failure ends the test.
  Ended git(std::vector<std::string> words, bool must = true) const;
  Ended sh(const std::string& script, bool must = true) const;
  // Files of this user.
  void write(const std::string& path, const std::string& bytes, unsigned mode = 0644) const;
  std::string box(const std::string& slug) const;  // its folder
  // fix, with a.txt changed and new.txt made, and other, unchanged; both from `where()`.
  void make_boxes() const;

  // The present state is what restore() brings back.
  void keep(const std::string& name);
  void restore(const std::string& name);
  // Waits for what was left working in the background.
  void settle() const;
  Listing listing() const;
  // A mount over the world, at most one; undone by unmount() and the destructor.
  void mount_read_only(const std::string& below = "");
  void mount_small(unsigned long bytes);  // a copy of the world on a file system of this size
  void unmount();

 private:
  uid_t uid_;
  std::string root_, live_;
  std::string mounted_;
};

}  // namespace h5i::test
