// The built-in profiles as data. Their paths may be missing on a host: a note says so, and the run goes on.
#include <algorithm>

#include "core/policy/egress.hpp"
#include "core/policy/model.hpp"

namespace h5i::policy {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30, kMiB = int64_t{1} << 20;
using List = std::vector<std::string>;

class Maker {
 public:
  Maker(std::string name, std::string extends, std::string summary, const PathRoots& roots) : roots_(roots) {
    p_.name = std::move(name);
    if (!extends.empty()) p_.extends = std::move(extends);
    p_.summary = std::move(summary);
  }
  Maker& set(const std::string& field, Json value) {
    p_.settings[field] = Setting{std::move(value), p_.name, "", {}, {}};
    return *this;
  }
  Maker& list(const std::string& field, List values) {
    std::sort(values.begin(), values.end());
    Json out = json::Array();
    for (std::string& v : values) out.push(std::move(v));
    return set(field, std::move(out));
  }
  // Paths of a root that is unset here are left out: without HOME there is nothing below it to grant or to deny.
  Maker& paths(const std::string& field, const List& written) {
    List out;
    for (const std::string& w : written)
      if (auto path = expand_path(w, roots_)) out.push_back(*path);
    return list(field, std::move(out));
  }
  Maker& egress(const List& hosts) {
    std::vector<EgressRule> rules;
    for (const std::string& h : hosts)
      if (auto rule = parse_egress(h)) rules.push_back(*rule);
    sort_rules(rules);
    Json out = json::Array();
    for (const EgressRule& r : rules) out.push(r.to_json());
    return set("net.egress", std::move(out));
  }
  Maker& limits(int64_t mem, int64_t procs) { return set("resources.mem", mem).set("resources.procs", procs); }
  Profile done() { return std::move(p_); }

 private:
  Profile p_;
  const PathRoots& roots_;
};

const List kSystem = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"};
// Tools that a user installed for themselves, without the files beside them that hold credentials.
const List kUserTools = {"~/.local/bin", "~/.local/lib", "~/.local/share/claude", "~/.nvm", "~/.cargo/bin", "~/.cargo/env",
                         "~/.cargo/config", "~/.cargo/config.toml", "~/.cargo/registry", "~/.cargo/git",
                         "~/.rustup/settings.toml", "~/.rustup/toolchains", "~/.bashrc", "~/.bash_profile", "~/.profile",
                         "~/.zshrc", "~/.zshenv", "~/.zprofile", "~/.gitconfig", "~/.config/git/config", "~/.config/git/ignore"};
const List kDenied = {"~/.ssh", "~/.aws", "~/.config/gh", "~/.config/h5i", "$REPO/.git/hooks"};
const List kDefaultEnv = {"PATH", "HOME", "LANG", "TERM", "COLORTERM"};
const List kAgentEnv = {"PATH", "HOME", "LANG", "TERM", "COLORTERM", "USER", "SHELL"};

List operator+(List a, const List& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

std::map<std::string, Profile> builtin_profiles(const PathRoots& roots, const std::string& runtime) {
  std::map<std::string, Profile> all;
  auto add = [&](Profile p) { all[p.name] = std::move(p); };

  add(Maker("default", "", "builds and tests: system read-only, $WORK writable, no network", roots)
          .paths("fs.read", kSystem)
          .paths("fs.write", {"$WORK"})
          .paths("fs.deny", kDenied)
          .set("fs.private", json::Object())
          .set("net.mode", "deny")
          .set("net.unix", false)
          .limits(4 * kGiB, 256)
          .set("resources.wall", 1800)
          .set("resources.output", 64 * kMiB)
          .list("env.pass", kDefaultEnv)
          .set("env.set", json::Object())
          .set("audit.capture", "all")
          .done());

  add(Maker("workspace", "default", "trusted work: no confinement, environment list and deadline still apply", roots)
          .set("isolation", "workspace")
          .list("fs.read", {})
          .list("fs.deny", {})
          .set("net.mode", "host")
          .done());

  auto agent = [&](const std::string& name, const std::string& what, const List& state, const List& api) {
    return Maker(name, "default", what, roots)
        .paths("fs.read", kSystem + kUserTools)
        .paths("fs.write", List{"$WORK", "~/.cache", "~/.npm"} + state)
        .egress(api)
        .limits(8 * kGiB, 512)
        .list("env.pass", kAgentEnv)
        .done();
  };
  add(agent("agent-claude", "the Claude agent: its own state and its API, nothing of another agent",
            {"~/.claude", "~/.claude.json"}, {"api.anthropic.com", "platform.claude.com", "statsig.anthropic.com"}));
  add(agent("agent-codex", "the Codex agent: its own state and its API, nothing of another agent", {"~/.codex"},
            {"api.openai.com", "auth.openai.com", "chatgpt.com"}));

  if (!runtime.empty()) {
    add(Maker("agent", "agent-" + runtime, "the agent profile of the runtime in use here", roots).done());
    add(Maker("browser", "agent-" + runtime, "an agent with headless Chromium: unix sockets, more memory and tasks", roots)
            .set("net.unix", true)
            .limits(12 * kGiB, 1024)
            .done());
  }
  return all;
}

}  // namespace h5i::policy
