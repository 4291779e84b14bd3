#include "core/cli/call_executable.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/cli/executables.hpp"

extern char** environ;

namespace h5i::cli {
namespace {

constexpr size_t kAnswerLimit = 16u << 20;

Error error_of(const Json& answer) {
  const Json& e = answer["error"];
  return make_error(errc_from_id(e["id"].string()), e["what"].string(), e["evidence"].string(), e["next"].string());
}

Result<std::string> read_answer(int fd) {
  std::string out;
  char buffer[65536];
  for (;;) {
    ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read an answer");
    if (n == 0) return out;
    if (out.size() + static_cast<size_t>(n) > kAnswerLimit) return make_error(Errc::TOO_LARGE, "an answer is too long");
    out.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace

Result<Json> call_executable(const std::string& name, std::vector<std::string> words, const std::string& cwd) {
  UniqueFd program = H5I_TRY(open_executable(name));
  words.insert(words.begin(), "h5i");
  words.push_back("--json");
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return sys_error("make a pipe");
  UniqueFd from(ends[0]), to(ends[1]), null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return sys_error("open /dev/null");
  pid_t pid = ::fork();
  if (pid < 0) return sys_error("fork");
  if (pid == 0) {
    if (::dup2(null.get(), 0) < 0 || ::dup2(to.get(), 1) < 0 || ::chdir(cwd.c_str()) != 0) ::_exit(126);
    ::execveat(program.get(), "", argv.data(), environ, AT_EMPTY_PATH);
    ::_exit(127);
  }
  to.reset();
  auto text = read_answer(from.get());
  from.reset();
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!text) return std::move(text).error();
  auto answer = json::parse(*text);
  if (answer && answer->object().contains("error")) return error_of(*answer);
  if (!answer || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return make_error(Errc::INTERNAL, name + " gave no answer", WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                                                                                   : "signal " + std::to_string(WTERMSIG(status)));
  return std::move(*answer);
}

}  // namespace h5i::cli
