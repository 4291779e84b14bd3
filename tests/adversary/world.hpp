// What the cases act on: a user's home with a repository, granted and hidden files, and what of the host a box must not
// reach: sockets, shared memory, a process. Made for one user, removed at the end.
#pragma once
#include <sys/types.h>

#include <map>

#include "tests/adversary/suite.hpp"

namespace h5i::adversary {

class World {
 public:
  explicit World(Target target);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  Place outside(Ground ground = Ground::host);
  // Whether controls can be made there: a test that is not root has nobody to be root for it.
  bool has(Ground ground) const;
  // A box of this profile at the target's tier; made when it is first asked for. An empty box: creating it was refused,
  // and `why` says how.
  Place box(const std::string& profile, std::string* why = nullptr);

  // Another box of the same profile.
  Place fresh(const Place& like);

  // Everything that a case may have changed is made again.
  void reset();
  // What a case changed of the host although nothing of it was granted for writing; empty when all is as reset() made it.
  std::string changed() const;

  std::string fill(const std::string& text, const Place& place) const;  // {names}
  Ran h5i(std::vector<std::string> words, int timeout_s = 60) const;
  Ran host(const std::vector<std::string>& argv, const std::string& cwd, int timeout_s = 60) const;
  Ran at(Ground ground, const std::vector<std::string>& argv, const std::string& cwd, int timeout_s) const;
  Ran in_box(const std::string& box, const std::vector<std::string>& argv, int timeout_s) const;
  // One command with more variables in the environment of whoever starts it.
  Ran with(const std::map<std::string, std::string>& variables, const Place& place, const std::vector<std::string>& argv) const;
  // Whether this user could limit a group of processes by this controller, and the space of the work tree.
  bool delegated(const std::string& controller) const;
  bool has_quota() const;
  std::string box_dir(const std::string& slug) const { return repo() + "/.git/h5i/boxes/human/" + slug; }
  std::string home() const { return root_ + "/home"; }
  std::string repo() const { return home() + "/r"; }
  const Target& target() const { return target_; }
  bool slow() const;  // a guest, or a build with a sanitizer: what starts in a second elsewhere may take several
  pid_t victim() const { return victim_; }
  bool victim_lives() const;
  bool heard() const;  // a datagram came to the host's socket since reset()

  void write(const std::string& path, const std::string& text, unsigned mode = 0644) const;
  std::string read(const std::string& path) const;

 private:
  Place make(const std::string& slug, const std::string& profile, std::string* why);
  void give(const std::string& path) const;
  void listen_tcp(int family, const std::string& name);
  void listen();
  void start_victim();

  Target target_;
  unsigned uid_;
  std::string root_, name_;
  std::map<std::string, std::string> boxes_;  // slug -> profile
  std::map<std::string, std::string> names_;
  std::map<std::string, std::string> sealed_;  // path -> what it was
  std::vector<int> fds_;
  int udp_ = -1, shm_ = -1, sem_ = -1, msg_ = -1;
  pid_t victim_ = 0;
};

// Processes whose command line holds `mark`.
std::vector<pid_t> processes_with(const std::string& mark);

}  // namespace h5i::adversary
