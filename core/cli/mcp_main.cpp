// h5i-mcp: boxes as tools for an agent on the host.
#include <unistd.h>

#include "core/cli/command.hpp"
#include "core/cli/executables.hpp"
#include "core/cli/version.hpp"
#include "core/mcp/serve.hpp"
#include "core/mcp/tools.hpp"

namespace {

int mcp(h5i::cli::Context& ctx, const h5i::cli::Parsed&) {
  if (ctx.json) {
    ctx.result(h5i::json::Object{{"schema", "h5i.mcp/1"}, {"tools", h5i::mcp::tool_list()}});
    return 0;
  }
  if (isatty(0)) ctx.note("waiting for an agent's messages, one JSON object a line; Ctrl-D ends it");
  auto served = h5i::mcp::serve([] { return h5i::cli::open_executable("h5i"); }, h5i::cli::version_text());
  return served ? 0 : ctx.refuse(served.error());
}

}  // namespace

int main(int argc, char** argv) {
  h5i::cli::implement("mcp", "", mcp);
  return h5i::cli::main_with("h5i-mcp", argc, argv);
}
