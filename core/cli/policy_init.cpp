// policy init: a commented file to start from. What exists is never overwritten.
#include <fcntl.h>

#include "core/cli/policy_input.hpp"
#include "core/os/beneath.hpp"

namespace h5i::cli {
namespace {

constexpr const char* kYaml = R"(# What boxes of this repository may do. Every field: docs/policy.md. Check: h5i policy check
#
# A field that is left out is inherited; an empty list is empty.
profiles:
  dev:
    extends: default            # or workspace, agent, browser, or a profile of this file
    # isolation: process        # exactly this tier, or the run is refused; left out: the strongest that verifies here
    # tools: [make, cc, git]    # programs that h5i starts; left out: any
    fs:
      # read:  [/usr, /etc]     # replaces the inherited list
      write: [$WORK]
      deny:  [~/.ssh, ~/.aws, ~/.config/gh, ~/.config/h5i, $REPO/.git/hooks, $WORK/.env]
      private: { node_modules: cache, .venv: cache }   # per box, outside of the reviewed tree
    net:
      mode: deny                # deny: no network at all; host: the host's own
      # egress: [registry.example.org, "*.example.org:443", "10.1.0.0/16:5432"]   # needs a tier that enforces it
    resources: { mem: 4G, procs: 256, wall: 30m }
    env:
      pass: [PATH, HOME, LANG, TERM, COLORTERM]
      set: { CI: "1" }
)";

constexpr const char* kToml = R"(# What boxes of this repository may do. Every field: docs/policy.md. Check: h5i policy check
#
# A field that is left out is inherited; an empty list is empty.
[profiles.dev]
extends = "default"             # or workspace, agent, browser, or a profile of this file
# isolation = "process"         # exactly this tier, or the run is refused; left out: the strongest that verifies here
# tools = ["make", "cc", "git"] # programs that h5i starts; left out: any

[profiles.dev.fs]
# read = ["/usr", "/etc"]       # replaces the inherited list
write = ["$WORK"]
deny = ["~/.ssh", "~/.aws", "~/.config/gh", "~/.config/h5i", "$REPO/.git/hooks", "$WORK/.env"]
private = { node_modules = "cache", ".venv" = "cache" }   # per box, outside of the reviewed tree

[profiles.dev.net]
mode = "deny"                   # deny: no network at all; host: the host's own
# egress = ["registry.example.org", "*.example.org:443", "10.1.0.0/16:5432"]   # needs a tier that enforces it

[profiles.dev.resources]
mem = "4G"
procs = 256
wall = "30m"

[profiles.dev.env]
pass = ["PATH", "HOME", "LANG", "TERM", "COLORTERM"]
set = { CI = "1" }
)";

// The whole file or none, and no folder that was made for it.
Result<void> write_new(const UniqueFd& root, const UniqueFd& dir, const std::string& name, const char* text) {
  auto fd = os::open_beneath(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
  auto done = fd ? os::write_all(*fd, text) : Result<void>(fd.error());
  if (done) return done;
  if (fd) unlinkat(dir.get(), name.c_str(), 0);
  unlinkat(root.get(), ".h5i", AT_REMOVEDIR);  // refused while anything else is in it
  return done;
}

bool present(const UniqueFd& dir, const char* name) {
  auto fd = os::open_beneath(dir, name, O_RDONLY | O_NONBLOCK);
  return fd.ok() || fd.error().sys_errno != ENOENT;  // a link or something unreadable is there too
}

}  // namespace

int policy_init(Context& ctx, const Parsed& parsed) {
  std::string format = parsed.get("--format", "yaml");
  if (format != "yaml" && format != "toml")
    return ctx.refuse(make_error(Errc::USAGE, "--format does not know " + format, "expected yaml or toml", "h5i policy init --help"));
  auto s = policy_surroundings(parsed);
  if (!s) return ctx.refuse(s.error());
  auto dir = os::make_directories_beneath(s->root, ".h5i", 0755);
  if (!dir) return ctx.refuse(dir.error());
  for (const char* name : {"env.yaml", "env.toml"})
    if (present(*dir, name))
      return ctx.refuse(make_error(Errc::EXISTS, "this repository has a policy already", s->directory + "/.h5i/" + name, "edit it, then h5i policy check"));
  std::string name = "env." + format;
  if (auto done = write_new(s->root, *dir, name, format == "yaml" ? kYaml : kToml); !done) return ctx.refuse(done.error());
  std::string path = s->directory + "/.h5i/" + name;
  if (ctx.json) ctx.result(json::Object{{"schema", "h5i.policy-init/1"}, {"file", path}, {"profile", "dev"}});
  else ctx.line("wrote " + path + "; next: h5i policy check, h5i policy explain dev, h5i box create --profile dev");
  return 0;
}

}  // namespace h5i::cli
