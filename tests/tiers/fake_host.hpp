// A host that exists only in a test.
#pragma once
#include <map>

#include "host_view.hpp"

namespace h5i::tests {

class FakeHost final : public confined::HostView {
 public:
  FakeHost& dir(const std::string& path) { return put(path, confined::NodeKind::DIRECTORY); }
  FakeHost& file(const std::string& path, std::string content = "", uint64_t links = 1) {
    put(path, confined::NodeKind::FILE);
    nodes_[path].node.links = links;
    nodes_[path].text = std::move(content);
    return *this;
  }
  FakeHost& link(const std::string& path, std::string to) {
    put(path, confined::NodeKind::SYMLINK);
    nodes_[path].text = std::move(to);
    return *this;
  }
  FakeHost& socket(const std::string& path) {
    put(path, confined::NodeKind::SOCKET);
    sockets_.push_back(path);
    return *this;
  }
  FakeHost& device(const std::string& path) { return put(path, confined::NodeKind::DEVICE); }

  confined::Node look(const std::string& path) const override {
    auto at = nodes_.find(path);
    return at == nodes_.end() ? confined::Node{} : at->second.node;
  }
  std::string link_target(const std::string& path) const override { return text(path); }
  std::string small_file(const std::string& path) const override { return text(path); }
  std::vector<std::string> names(const std::string& directory) const override {
    std::vector<std::string> out;
    std::string prefix = directory == "/" ? "/" : directory + "/";
    for (const auto& [path, entry] : nodes_)
      if (path.size() > prefix.size() && path.rfind(prefix, 0) == 0 &&
          path.find('/', prefix.size()) == std::string::npos)
        out.push_back(path.substr(prefix.size()));
    return out;
  }
  std::vector<std::string> listening_sockets() const override { return sockets_; }

 private:
  struct Entry {
    confined::Node node;
    std::string text;
  };
  FakeHost& put(const std::string& path, confined::NodeKind kind) {
    // Parents come into being with it.
    for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
      if (nodes_.count(path.substr(0, at)) == 0)
        nodes_[path.substr(0, at)].node = {confined::NodeKind::DIRECTORY, 2};
    nodes_[path].node = {kind, kind == confined::NodeKind::DIRECTORY ? 2u : 1u};
    return *this;
  }
  std::string text(const std::string& path) const {
    auto at = nodes_.find(path);
    return at == nodes_.end() ? std::string() : at->second.text;
  }
  std::map<std::string, Entry> nodes_;
  std::vector<std::string> sockets_;
};

// A merged-usr machine with one user.
inline FakeHost debian() {
  FakeHost h;
  h.dir("/usr/bin")
      .dir("/usr/lib")
      .dir("/usr/lib64")
      .link("/bin", "usr/bin")
      .link("/lib", "usr/lib")
      .link("/lib64", "usr/lib64");
  h.link("/sbin", "usr/sbin").dir("/usr/sbin").dir("/etc").dir("/home/u/.ssh").dir("/var/lib").dir("/tmp").dir("/proc");
  h.file("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nu:x:1000:1000:U:/home/u:/bin/bash\n");
  h.file("/etc/group", "root:x:0:\nu:x:1000:\n").file("/etc/hosts", "127.0.0.1 localhost\n10.0.0.7 printer\n");
  h.link("/etc/resolv.conf", "../run/resolve/local.conf").file("/run/resolve/local.conf", "nameserver 127.0.0.53\n");
  h.file("/proc/kcore").file("/proc/keys").file("/proc/sysrq-trigger").dir("/proc/sys").dir("/proc/irq");
  for (const char* d : {"null", "zero", "full", "random", "urandom", "tty"}) h.device(std::string("/dev/") + d);
  h.dir("/home/u/r/.git/h5i/boxes/a/b/work/.git").dir("/home/u/r/.git/h5i/boxes/a/b/git");
  h.dir("/home/u/r/.git/h5i/boxes/a/b/spool").dir("/home/u/r/.git/h5i/boxes/a/b/private").dir("/home/u/r/.git/objects");
  return h;
}

}  // namespace h5i::tests
