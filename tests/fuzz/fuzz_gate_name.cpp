// Any bytes as a path that wants to leave a box: what the gate lets pass is relative, has no component that leads up or is
// .git to anybody, and stays allowed when it is asked again; a link's target is judged without end or crash.
#include <strings.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/base/text.hpp"
#include "core/gate/ignore.hpp"
#include "core/gate/rules.hpp"

using namespace h5i;
using namespace h5i::gate;

namespace {

void passed(const std::string& path, bool base_had) {
  if (path.empty() || path[0] == '/' || path.size() > kMaxPath) abort();
  if (!base_had && printable(path) != path) abort();
  for (char c : path)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) abort();
  for (size_t i = 0; i <= path.size();) {
    size_t end = std::min(path.find('/', i), path.size());
    std::string part = path.substr(i, end - i);
    if (part.empty() || part == "." || part == ".." || part.size() > kMaxName || disguised_git(part)) abort();
    if (part.size() >= 4 && strncasecmp(part.c_str(), ".git", 4) == 0 && (part.size() == 4 || part[4] == '.' || part[4] == ':' || part[4] == ' ') &&
        part.find_first_not_of(". ", 4) == std::string::npos)
      abort();
    i = end + 1;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string path(reinterpret_cast<const char*>(data), size);
  for (bool base_had : {false, true}) {
    auto v = check_path(path, base_had);
    if (!v) passed(path, base_had);
    else if (errc_id(v->rule).substr(0, 5) != "gate." || v->path != path) abort();
  }
  // What is refused stays refused as a part of a longer path.
  if (size && size < 1000 && path.find('/') == std::string::npos && check_name(path, path, true) && !check_path("a/" + path + "/b", true)) abort();
  // As a link: a chain of links that each lead to the next, and one to itself.
  auto target_of = [&](const std::string& at) -> std::optional<std::string> {
    if (at == "loop") return "loop";
    if (at == "d/next") return path;
    return std::nullopt;
  };
  for (const char* link : {"l", "d/l", "d/next"}) {
    LinkLeads leads = resolve_link(link, path, target_of);
    if (!path.empty() && path[0] == '/' && leads != LinkLeads::OUTSIDE) abort();
    bool refused = check_link(link, path, false, target_of).has_value();
    if (refused == (leads == LinkLeads::INSIDE)) abort();
  }
  if (size < 300) {
    IgnoreRules rules;
    rules.add("", path);
    (void)rules.ignored("dir/a.txt", false);
  }
  return 0;
}
