#include "core/session/last_run.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"

namespace h5i::session {
namespace {

constexpr off_t kTail = 4 << 20;  // four records of the greatest length

std::optional<LastRun> run_in(std::string_view line) {
  auto names = [&](const char* kind) { return line.find("\"" + std::string(kind) + "\"") != std::string_view::npos; };
  if (!names("receipt") && !names("run-refused") && !names("attested")) return std::nullopt;
  auto v = json::parse(line);
  if (!v) return std::nullopt;
  const std::string& kind = (*v)["kind"].string();
  // Only the core writes these; a record of another lane that is called so is not one.
  if ((kind != "receipt" && kind != "run-refused" && kind != "attested") || (*v)["observer"].string() != "core") return std::nullopt;
  return LastRun{kind, SessionId((*v)["session"].string()), (*v)["time"].string(), static_cast<uint64_t>((*v)["seq"].integer()),
                 (*v)["body"]};
}

}  // namespace

Result<std::optional<LastRun>> last_run(const BoxPaths& paths) {
  UniqueFd dir = H5I_TRY(os::open_directory(paths.dir));
  auto fd = os::open_beneath(dir, "log.jsonl", O_RDONLY | O_NONBLOCK);
  if (!fd) {
    if (fd.error().code == Errc::NOT_FOUND) return std::optional<LastRun>{};
    return std::move(fd).error();
  }
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) return sys_error("stat " + printable(paths.log()));
  if (!S_ISREG(st.st_mode)) return make_error(Errc::CORRUPT, "the log is not a regular file", printable(paths.log()));
  off_t from = st.st_size > kTail ? st.st_size - kTail : 0;
  std::string text(static_cast<size_t>(st.st_size - from), '\0');
  ssize_t got = ::pread(fd->get(), text.data(), text.size(), from);
  if (got < 0) return sys_error("read " + printable(paths.log()));
  std::string_view rest(text.data(), static_cast<size_t>(got));
  if (from > 0) rest.remove_prefix(std::min(rest.find('\n'), rest.size()));
  while (!rest.empty()) {
    size_t end = rest.find_last_not_of('\n');
    if (end == std::string_view::npos) break;
    rest = rest.substr(0, end + 1);
    size_t start = rest.rfind('\n');
    std::string_view line = start == std::string_view::npos ? rest : rest.substr(start + 1);
    if (auto run = run_in(line)) return run;
    if (start == std::string_view::npos) break;
    rest = rest.substr(0, start);
  }
  return std::optional<LastRun>{};
}

}  // namespace h5i::session
