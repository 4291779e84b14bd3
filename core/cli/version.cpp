#include "core/cli/version.hpp"

#include "core/cli/executables.hpp"
#include "h5i/abi.h"

namespace h5i::cli {

std::string version_text() { return H5I_VERSION; }

int print_version(Context& ctx) {
  Json features = json::Array{};
  for (const char* name : {"h5i-host", "h5i-repo", "h5i-policy", "h5i-evidence", "h5i-mcp", "h5i-metrics"})
    if (executable_present(name)) features.push(std::string(name).substr(4));
  ctx.result(json::Object{{"schema", "h5i.version/1"},
                          {"version", H5I_VERSION},
                          {"commit", H5I_COMMIT},
                          {"features", features},
                          {"abi", json::Object{{"major", H5I_ABI_MAJOR}, {"minor", H5I_ABI_MINOR}}}});
  if (!ctx.json)
    ctx.line(std::string("h5i ") + H5I_VERSION + " (" + H5I_COMMIT + "), plugin ABI " + std::to_string(H5I_ABI_MAJOR) + "." +
             std::to_string(H5I_ABI_MINOR));
  return 0;
}

}  // namespace h5i::cli
