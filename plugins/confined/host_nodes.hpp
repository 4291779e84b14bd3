// The few things of a run that this tier makes on the host itself: directories behind fs.private, and nodes for mounts
// to stand on, because the spawner never creates a name in a tree of the host.
#pragma once
#include "request.hpp"
#include "view.hpp"

namespace h5i::confined {

// Makes what is missing (mode 0700) and empties every scratch directory.
sdk::Status prepare_private_dirs(const Request& request);

// Removes a name and everything beneath it, through descriptors and without following a link: the contents are a box's.
// What is not there is removed already. errno as an error number, 0 when nothing is left.
int remove_tree(const std::string& path);

// Holds placeholders for the time of a run. Walks beneath each root without following a link: the tree is a box's.
class Placeholders {
 public:
  static sdk::Result<Placeholders> make(const std::vector<Placeholder>& wanted);
  Placeholders(Placeholders&&) = default;
  Placeholders& operator=(Placeholders&&) = delete;
  // Removes those that were made here and are still empty, the deepest first.
  ~Placeholders();

 private:
  Placeholders() = default;
  std::vector<Placeholder> made_;
};

}  // namespace h5i::confined
