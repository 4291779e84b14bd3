#pragma once
#include "command.hpp"

namespace h5i::test {

inline container::Run sample_run() {
  container::Run run;
  run.podman = "/usr/bin/podman";
  run.crun = "/usr/bin/crun";
  run.storage = "/state/storage";
  run.scratch = "/state/run";
  run.name = "h5i-01abc";
  run.image = *container::parse_image("/srv/root");
  run.binds = {{"/home/u/work", "/work", true}, {"/etc/ssl", "/etc/ssl", false}};
  run.cwd = "/work";
  run.argv = {"sh", "-c", "echo $HOME; id"};
  run.env = {{"CI", "1"}, {"TOKEN", "s3cret value"}};
  run.limits = *container::build_limits({}, false);
  run.owner_uid = run.owner_gid = 1000;
  return run;
}
inline bool has_word(const container::Command& c, const std::string& word) {
  for (const std::string& w : c.argv)
    if (w == word) return true;
  return false;
}

}  // namespace h5i::test
