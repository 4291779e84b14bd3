// Whether rootless podman can run here. What is looked at and what follows from it are apart, so that every refusal has a test.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "h5i/plugin.hpp"

namespace h5i::container {

struct Program {
  std::string path;     // empty: not there
  std::string version;  // the first line of what it says
  std::string fault;    // why it is not used although it is there
};
struct Range {
  uint64_t first = 0, count = 0;
};
struct EngineFacts {
  uint32_t uid = 0;
  std::string user;  // its name, as the tables of ranges may have it
  Program podman, crun, newuidmap, newgidmap;
  bool docker = false;  // its program or its socket is there
  std::vector<Range> uids, gids;
  std::string mapping;  // why no range of ids could be mapped into a user namespace; empty: one was
  json::Value cgroup;   // as h5i.host.cgroup/1 describes it; null: not asked
};

// Reads tables and asks programs their version; leaves nothing behind.
EngineFacts read_engine();

struct Component {
  std::string id;
  bool ok = false;
  std::string evidence;
  bool required = true;
};
std::vector<Component> judge_engine(const EngineFacts& facts);

// The lines of /etc/subuid that are `user`'s or `uid`'s (subuid(5)).
std::vector<Range> ranges_of(std::string_view table, std::string_view user, uint32_t uid);
// "podman version 4.3.1": at least `major`.`minor`?
bool at_least(std::string_view version, int major, int minor);

}  // namespace h5i::container
