#include "command.hpp"

#include <algorithm>

namespace h5i::container {
namespace {

sdk::Failure refused(std::string_view what, std::string_view value) {
  return sdk::failure(H5I_E_INVALID, std::string(what) + " cannot be said to podman: `" + std::string(value.substr(0, 100)) + "`");
}

// A path in a list of KEY=VALUE,...: the list is read as CSV, so neither its separator nor its quotes may occur, and no control.
bool plain_path(std::string_view s) {
  if (s.empty() || s[0] != '/') return false;
  for (char c : s)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || std::string_view(",\"\\:").find(c) != std::string_view::npos) return false;
  if (s == "/") return true;
  for (size_t at = 1; at <= s.size();) {
    size_t end = std::min(s.find('/', at), s.size());
    std::string_view part = s.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}
bool plain_name(std::string_view s) {
  return !s.empty() && s.size() <= 64 && s[0] != '-' && std::all_of(s.begin(), s.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}
bool variable(std::string_view s) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  return std::all_of(s.begin(), s.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

sdk::Result<Command> build_command(const Run& run) {
  for (const std::string* p : {&run.podman, &run.crun, &run.storage, &run.scratch, &run.cwd})
    if (!plain_path(*p)) return refused("a path", *p);
  if (!plain_name(run.name)) return refused("a name", run.name);
  if (run.driver != "overlay" && run.driver != "vfs") return refused("a storage driver", run.driver);
  if (run.argv.empty() || run.argv[0].empty()) return refused("an empty command", "");
  for (const std::string& word : run.argv)
    if (word.find('\0') != std::string::npos) return refused("a word with a zero byte", word);
  auto again = parse_image(run.image.text());
  if (!again || again->kind != run.image.kind) return refused("an image", run.image.text());
  if (run.image.kind != Image::Kind::STORAGE && run.image.kind != Image::Kind::ROOT) return refused("an image that was not imported", run.image.text());

  Command out;
  out.env = {{"PATH", "/usr/bin:/bin"},
             {"HOME", run.scratch},
             {"XDG_RUNTIME_DIR", run.scratch},
             // No configuration of the host's or the user's: it names runtimes, mounts, hooks and devices of its own.
             {"CONTAINERS_CONF", "/dev/null"},
             {"CONTAINERS_STORAGE_CONF", run.scratch + "/storage.conf"},
             {"CONTAINERS_REGISTRIES_CONF", "/dev/null"},
             // The user namespace, with a range of ids, is there already, and podman starts in it.
             {"_CONTAINERS_USERNS_CONFIGURED", "done"},
             {"_CONTAINERS_ROOTLESS_UID", std::to_string(run.owner_uid)},
             {"_CONTAINERS_ROOTLESS_GID", std::to_string(run.owner_gid)}};
  for (const auto& [name, value] : run.env) {
    // One line each; podman has no way to write a line's end in such a file.
    if (!variable(name)) return refused("a variable", name);
    if (value.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos) return refused("the value of a variable in more than one line", name);
    out.environment_file += name + "=" + value + "\n";
  }

  out.storage_conf = "[storage]\ndriver = \"" + run.driver + "\"\n";
  out.argv = {run.podman,
              "--root=" + run.scratch + "/state",
              "--runroot=" + run.scratch + "/run",
              "--tmpdir=" + run.scratch + "/tmp",
              "--storage-driver=" + run.driver,
              "--cgroup-manager=cgroupfs",
              "--runtime=" + run.crun,
              "--events-backend=none",
              "--hooks-dir=" + run.scratch + "/no-hooks",
              "--log-level=error",
              // Podman's database keeps what a container was told, its environment too, after the container is gone: it is the run's alone.
              "--storage-opt=" + run.driver + ".imagestore=" + run.storage,
              "run",
              "--name=" + run.name,
              "--rm",
              "--pull=never",
              // The network that podman starts in, which has no way out but the proxy's socket. Not "host": that would show the host's /sys.
              "--network=ns:/proc/self/ns/net",
              "--dns=none",
              "--no-hosts",
              "--http-proxy=false",
              "--env-host=false",
              "--unsetenv-all",
              "--env-file=/proc/self/fd/" + std::to_string(kEnvironmentFd),
              "--cap-drop=all",
              "--security-opt=no-new-privileges",
              "--read-only",
              "--read-only-tmpfs=false",
              "--tmpfs=/tmp:rw,nosuid,nodev,mode=1777,size=" + std::to_string(run.tmp_bytes),
              "--image-volume=ignore",
              "--ipc=private",
              "--uts=private",
              "--pid=private",
              "--cgroupns=private",
              "--hostname=box",
              "--passwd=false",
              "--user=0:0",
              "--systemd=false",
              "--sdnotify=ignore",
              "--no-healthcheck",
              "--log-driver=none",
              "--ulimit=core=0:0",
              "--ulimit=nofile=" + std::to_string(run.nofile) + ":" + std::to_string(run.nofile),
              "--ulimit=nproc=" + std::to_string(run.nproc) + ":" + std::to_string(run.nproc),
              "--umask=0022",
              "--entrypoint=",
              "--workdir=" + run.cwd};
  out.argv.insert(out.argv.end(), run.limits.words.begin(), run.limits.words.end());
  for (const Bind& b : run.binds) {
    if (!plain_path(b.source) || !plain_path(b.target) || b.target == "/") return refused("a mount", b.source + " " + b.target);
    out.argv.push_back("--mount=type=bind,src=" + b.source + ",dst=" + b.target + (b.writable ? "" : ",ro=true"));
  }
  // Where the options end. What is written in a root directory goes to a layer that the run takes with it.
  if (run.image.kind == Image::Kind::ROOT) out.argv.insert(out.argv.end(), {"--rootfs", "--", run.image.path + ":O"});
  else out.argv.insert(out.argv.end(), {"--", run.image.name});
  out.argv.insert(out.argv.end(), run.argv.begin(), run.argv.end());
  return out;
}

}  // namespace h5i::container
