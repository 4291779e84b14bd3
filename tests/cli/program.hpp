// Runs an executable of the build tree as a user would, and keeps what it said.
#pragma once
#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace h5i::test {

struct Ended {
  int status = -1;  // exit status; 1000 + N when signal N ended it
  std::string out, err;
};

struct Program {
  std::vector<std::string> argv;             // argv[0]: "h5i", or an absolute path
  std::map<std::string, std::string> env;    // the whole environment besides `path`
  std::string path = "/usr/local/bin:/usr/bin:/bin";
  std::string cwd = "/";
  std::string input;                         // standard input; /dev/null when empty
  std::vector<int> closed;                   // of 0, 1, 2: closed before exec
  std::string out_to;                        // a path that standard output is opened on instead of a pipe
  uid_t uid = 0;                             // 0: as the test itself
  int timeout_s = 60;
  std::function<void()> before_exec;         // in the child, as `uid`, last of all
};

// <build>/out/bin/h5i
std::string h5i_path();
Ended run(const Program& p);
// Started, not waited for; the pid is the executable's. Standard output and error go to files `out` and `err`.
pid_t start(const Program& p, const std::string& out, const std::string& err);
// The exit status as in Ended; -1 after `timeout_s`, when it was killed.
int wait_for(pid_t pid, int timeout_s);

// Seconds of the monotonic clock.
double now();

// "refused: ... [id]", "  because: ...", "  see: ...": the three lines of a refusal, with this id.
bool is_refusal(const std::string& err, const std::string& id);

}  // namespace h5i::test
