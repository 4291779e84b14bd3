// What a plan must know of the host, behind an interface, so that plans are built without a kernel in the unit tests.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "h5i/plugin.hpp"

namespace h5i::confined {

enum class NodeKind { ABSENT, DIRECTORY, FILE, SYMLINK, SOCKET, DEVICE, FIFO };

struct Node {
  NodeKind kind = NodeKind::ABSENT;
  uint64_t links = 0;
};

class HostView {
 public:
  virtual ~HostView() = default;
  virtual Node look(const std::string& path) const = 0;                // never follows the last component
  virtual std::string link_target(const std::string& path) const = 0;  // empty when it cannot be read
  virtual std::vector<std::string> names(const std::string& directory) const = 0;
  virtual std::string small_file(const std::string& path) const = 0;  // at most 64 KiB; empty when it cannot be read
  // Paths of the sockets that programs of this network namespace listen on.
  virtual std::vector<std::string> listening_sockets() const = 0;
};

class RealHostView final : public HostView {
 public:
  Node look(const std::string& path) const override;
  std::string link_target(const std::string& path) const override;
  std::vector<std::string> names(const std::string& directory) const override;
  std::string small_file(const std::string& path) const override;
  std::vector<std::string> listening_sockets() const override;
};

// Facts of the kernel and of this process.
struct HostFacts {
  int landlock_abi = 0;  // 0: none
  uint64_t nofile_soft = 1024, nofile_hard = 4096;
  unsigned kernel_major = 0, kernel_minor = 0;
  json::Value cgroup;  // as h5i.host.cgroup/1 describes it; null: not asked

  bool kernel_at_least(unsigned major, unsigned minor) const {
    return kernel_major > major || (kernel_major == major && kernel_minor >= minor);
  }
};
HostFacts read_facts();

}  // namespace h5i::confined
