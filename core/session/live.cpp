#include "core/session/live.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"

namespace h5i::session {
namespace {

constexpr std::string_view kSchema = "h5i.live/1";
constexpr uint64_t kLimit = 1u << 20;
constexpr size_t kMostProcesses = 4096, kMostPlaceholders = 4096;

Error damaged(const BoxPaths& paths, std::string why) {
  return make_error(Errc::CORRUPT, "the record of what runs in the box cannot be read", printable(paths.live()) + ": " + why);
}

}  // namespace

uint64_t process_start(pid_t pid) {
  if (pid <= 0) return 0;
  UniqueFd fd(::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return 0;
  auto text = os::read_all(fd, 8192);
  // The command's name is in parentheses and may hold anything, so fields are counted after the last one.
  size_t at = text ? text->rfind(')') : std::string::npos;
  if (at == std::string::npos || at + 2 >= text->size()) return 0;
  std::string_view rest = std::string_view(*text).substr(at + 2);
  if (rest[0] == 'Z' || rest[0] == 'X') return 0;
  for (int field = 3; field < 22; field++) {
    size_t space = rest.find(' ');
    if (space == std::string_view::npos) return 0;
    rest.remove_prefix(space + 1);
  }
  uint64_t start = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), start);
  return start;
}

bool is_alive(const LiveProcess& p) { return p.start != 0 && process_start(p.pid) == p.start; }

Result<UniqueFd> open_process(const LiveProcess& p) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, p.pid, 0)));
  if (!fd) {
    if (errno == ESRCH) return make_error(Errc::NOT_FOUND, "the process is gone", std::to_string(p.pid));
    return sys_error("pidfd_open");
  }
  // Looked at after the descriptor exists: from here on the id cannot be given to another.
  if (!is_alive(p)) return make_error(Errc::NOT_FOUND, "the process is gone", std::to_string(p.pid));
  return fd;
}

Result<std::optional<Live>> read_live(const BoxPaths& paths) {
  UniqueFd dir = H5I_TRY(os::open_directory(paths.dir));
  auto text = os::read_file_beneath(dir, "live.json", kLimit);
  if (!text) {
    if (text.error().code == Errc::NOT_FOUND) return std::optional<Live>{};
    return std::move(text).error();
  }
  auto v = parse_json(*text, "live.json", kLimit);
  if (!v) return damaged(paths, v.error().evidence);
  if ((*v)["schema"].string() != kSchema) return damaged(paths, "unknown schema " + printable((*v)["schema"].string()));
  Live live;
  live.session = SessionId((*v)["session"].string());
  live.verb = (*v)["verb"].string();
  live.started = (*v)["started"].string();
  live.boot = (*v)["boot"].string();
  live.tier = (*v)["tier"].string();
  if ((*v)["processes"].array().size() > kMostProcesses) return damaged(paths, "too many processes");
  for (const Json& p : (*v)["processes"].array()) {
    int64_t pid = p["pid"].integer(), start = p["start"].integer();
    if (pid <= 1 || pid > 0x7fffffff || start <= 0) return damaged(paths, "a process id or start time is not one");
    live.processes.push_back({p["role"].string(), static_cast<pid_t>(pid), static_cast<uint64_t>(start)});
  }
  live.groups = (*v)["groups"].string();
  if (!live.groups.empty() && !live.groups.starts_with('/')) return damaged(paths, "where groups are made is no absolute name");
  if ((*v)["placeholders"].array().size() > kMostPlaceholders) return damaged(paths, "too many placeholders");
  for (const Json& name : (*v)["placeholders"].array()) {
    if (!name.string().starts_with('/')) return damaged(paths, "a placeholder is no absolute name");
    live.placeholders.push_back(name.string());
  }
  return std::optional<Live>(std::move(live));
}

Result<void> write_live(const BoxPaths& paths, const Live& live) {
  Json processes = json::Array{};
  for (const LiveProcess& p : live.processes)
    processes.push(json::Object{{"role", p.role}, {"pid", static_cast<int64_t>(p.pid)}, {"start", p.start}});
  Json v = json::Object{{"schema", kSchema},   {"session", live.session.value}, {"verb", live.verb}, {"started", live.started},
                        {"boot", live.boot},   {"tier", live.tier},             {"processes", processes}};
  if (!live.groups.empty()) v["groups"] = live.groups;
  if (!live.placeholders.empty()) {
    Json names = json::Array{};
    for (const std::string& name : live.placeholders) names.push(name);
    v["placeholders"] = std::move(names);
  }
  UniqueFd dir = H5I_TRY(os::open_directory(paths.dir));
  const char* temporary = kNewLive;  // one name: the lock makes us the only writer, and the sweep knows it
  UniqueFd fd = H5I_TRY(os::open_beneath(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  if (auto written = os::write_all(fd, json::canonical(v) + "\n"); !written) {
    ::unlinkat(dir.get(), temporary, 0);
    return written;
  }
  if (::renameat(dir.get(), temporary, dir.get(), "live.json") != 0) return sys_error("rename " + printable(paths.live()));
  return {};
}

Result<void> clear_live(const BoxPaths& paths) {
  UniqueFd dir = H5I_TRY(os::open_directory(paths.dir));
  if (::unlinkat(dir.get(), "live.json", 0) != 0 && errno != ENOENT) return sys_error("remove " + printable(paths.live()));
  return {};
}

}  // namespace h5i::session
