// A run as podman's words. Pure. Every word is an argument of its own, nothing is read by a shell, and nothing that the host's own
// configuration of podman says comes in.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "image.hpp"
#include "limits.hpp"

namespace h5i::container {

constexpr int kEnvironmentFd = 3;  // where podman finds the box's environment

struct Bind {
  std::string source, target;  // absolute and normal
  bool writable = false;
};
struct Run {
  std::string podman, crun;      // absolute: never looked for
  std::string storage;           // where images are; only read
  std::string scratch;           // podman's own state, the run's alone, to be removed with it: the box's environment is written there
  std::string driver = "overlay";
  std::string name;  // of the container: [a-z0-9-]
  Image image;       // STORAGE or ROOT; what is in another form is imported first
  std::vector<Bind> binds;
  std::string cwd;
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;
  Limits limits;
  uint64_t tmp_bytes = 1ull << 30, nofile = 1024, nproc = 256;
  uint32_t owner_uid = 0, owner_gid = 0;  // who the user namespace that podman starts in was made for
};

struct Command {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  // podman's own
  std::string environment_file;            // the box's, at kEnvironmentFd: values are in no argument and in no environment but the box's
  std::string storage_conf;                // to be written to scratch/storage.conf: podman complains of an empty one
};

// INVALID names the word that podman could take for something else.
sdk::Result<Command> build_command(const Run& run);

}  // namespace h5i::container
