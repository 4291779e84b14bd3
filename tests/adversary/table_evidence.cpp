// Group F: evidence, environment, terminal, configuration, plugins.
#include "tests/adversary/cases.hpp"
#include "tests/adversary/world.hpp"

namespace h5i::adversary {
namespace {

bool has(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

// Sequences that would move a cursor or fill a clipboard, in output and in what the box stages; then every view is asked.
std::string terminal(const Place& p) {
  const std::string evil = "printf '\\033]52;c;aGk=\\007\\033[2K\\rOK\\033[6n\\302\\233 \\220q\\n'";
  if (!p.inside()) return has(p.command({"/bin/sh", "-c", evil}).out, "\033]52") ? "did" : "did not";
  p.command({"/bin/sh", "-c", evil + "; " + evil + " >&2; " + evil + " > \"$H5I_SPOOL/$(printf 'a\\033[2K').json\"; true"});
  std::string said;
  for (const auto& words : {std::vector<std::string>{"box", "inspect", p.box}, {"box", "log", p.box}, {"box", "status", p.box}, {"log", "show", p.box}, {"box", "ls"}}) {
    Ran r = p.world->h5i(words);
    said += r.out + r.err;
  }
  for (const char* bad : {"\033", "\007", "\r", "\302\233"})
    if (has(said, bad)) return "a control character reaches the terminal";
  return "neutral";
}

// GLIBC_TUNABLES makes room for ThreadSanitizer's runtime, which no loader with an audit library could take in otherwise.
const std::map<std::string, std::string> kInjected = {{"GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=1000000"},
                                                      {"LD_PRELOAD", "/nonexistent/x.so"}, {"LD_AUDIT", "/nonexistent/x.so"}, {"LD_LIBRARY_PATH", "/nonexistent"},
                                                      {"GCONV_PATH", "/nonexistent"},      {"NODE_OPTIONS", "--require /x"},  {"PYTHONSTARTUP", "/x"},
                                                      {"PYTHONPATH", "/x"},                {"PERL5OPT", "-Mx"},               {"RUBYOPT", "-rx"},
                                                      {"BASH_ENV", "/x"},                  {"ENV", "/x"},                     {"GIT_DIR", "/nonexistent"},
                                                      {"GIT_CONFIG_COUNT", "0"},           {"GIT_SSH_COMMAND", "false"},      {"JAVA_TOOL_OPTIONS", "-Dx"},
                                                      {"BASH_FUNC_ls%%", "() { false; }"}, {"RUSTC_WRAPPER", "/x"},           {"MAKEFLAGS", "-n"},
                                                      {"SSH_AUTH_SOCK", "/x"},             {"AWS_SECRET_ACCESS_KEY", "x"},    {"H5I_SECRET_X", "x"}};

std::string environment(const Place& p) {
  Ran r = p.world->with(kInjected, p, {"{attack}", "environment", "PATH", "HOME", "LANG", "TERM", "COLORTERM", "H5I_BOX", "H5I_SESSION", "H5I_SPOOL"});
  if (!p.inside()) return has(r.out, ": did") && has(r.err, "LD_PRELOAD") ? "did" : "did not: " + r.out;
  return has(r.out, ": ENOENT") ? "none" : r.out + r.err;
}

// The box rewrites the profile that it would be run under next; what counts is the resolved policy that the box was made with.
std::string next_launch(const Place& at_first) {
  Place p = at_first.inside() ? at_first.world->fresh(at_first) : at_first;
  const std::string plant = "mkdir -p .h5i; printf 'profiles:\\n  attack:\\n    extends: workspace\\n' > .h5i/env.yaml";
  if (!p.inside()) return p.command({"/bin/sh", "-c", plant}).status == 0 ? "did" : "did not";
  p.command({"/bin/sh", "-c", "cd {work} && " + plant});
  Ran r = p.tries({{"read", "{hidden}"}, {"sys", "keyctl", "0", "-3", "1"}});
  return r.answers[0] == "ENOENT" && r.answers[1] == "EPERM" ? "pinned" : "widened";
}

// Our own command line, carried into the box and called there.
std::string own_cli(const Place& p) {
  std::string copy = p.world->home() + "/shared/h5i";
  if (!p.inside()) return p.command({copy, "box", "ls"}).status == 0 || p.command({copy, "version"}).status == 0 ? "did" : "did not";
  Ran r = p.command({"/bin/sh", "-c", copy + " box run " + p.box + " -- true; echo run $?; " + copy + " box stop " + p.box + "; echo stop $?; " + copy +
                                          " box create --allow-unconfined --name inside; echo create $?; " + copy + " box allow add evil.example; echo allow $?"});
  for (const char* verb : {"run 0", "stop 0", "create 0", "allow 0"})
    if (has(r.out, verb)) return std::string(verb) + " inside: " + r.out;
  return "refused";
}

}  // namespace

std::vector<Case> cases_of_evidence() {
  return {
      {.id = "F01",
       .what = "terminal sequences in what a box prints and stages",
       .must = "KPW",
       .right = "neutral text in every view",
       .tries = {watched("OSC, CSI, C1", {"neutral"}, terminal)},
       .elsewhere = {{"tests/evidence/test_render.cpp", "nothing in a receipt reaches a terminal or a Markdown page as more than text"},
                     {"tests/cli/test_light_verbs.cpp", "terminal sequences that a box left in its records move no cursor in any view, and the bytes stay in JSON"}}},
      {.id = "F03", .what = "redaction that is side-stepped", .must = "K", .right = "scrubbed before storage, in every form", .elsewhere = {{"tests/evidence/test_redact.cpp", "a known value is scrubbed in every form, cut at every place"}, {"tests/evidence/test_redact.cpp", "how the output is cut into chunks changes nothing"}}},
      {.id = "F04", .what = "a secret in the arguments or environment of a helper", .must = "K", .right = "grants are refused until there is a broker; credentials in arguments are redacted", .elsewhere = {{"tests/session_run/test_units.cpp", "a profile with secrets or auth is refused by id; empty ones are not"}, {"tests/session_run/test_run.cpp", "a credential in output and arguments is redacted before it is shown or kept"}}},
      {.id = "F06", .what = "scratch with a name that somebody else can take first", .must = "K", .right = "private directories, never taken from somebody else", .elsewhere = {{"tests/session/test_lock.cpp", "a private directory is closed to others and never taken from somebody else"}}},
      {.id = "F07",
       .what = "variables that make programs load code, set where h5i is started",
       .must = "KPW",
       .claim = "env.pass",
       .right = "an allow-list: none arrives",
       .tries = {watched("twenty variables", {"none"}, environment)},
       .elsewhere = {{"tests/policy/test_resolve.cpp", "environment names that load code need env.dangerous"}, {"tests/session_run/test_run.cpp", "the environment is env.pass and env.set and the box's own three names, and nothing else"}}},
      {.id = "F09", .what = "the digest says one thing, the kernel another", .must = "K", .right = "each field is enforced or declared, and the digest covers the effective form", .elsewhere = {{"tests/tiers/test_policy_fields.cpp", "every field of a policy is tried, declared, refused, or the core's, at both tiers"}, {"tests/spawn/test_plan.cpp", "the effective digest covers confinement and not the command"}}},
      {.id = "F10", .what = "a receipt that was edited, cut, replayed or re-ordered", .must = "K", .right = "verify names the record", .elsewhere = {{"tests/evidence/test_chain.cpp", "a removed, added, moved or foreign record is named"}, {"tests/cli/test_whole.cpp", "a copied log that was changed is not verified, and the first bad record is named"}}},
      {.id = "F12",
       .what = "the box widens its next launch, or calls our command line from inside",
       .must = "KP",
       .right = "the policy is pinned by digest when the box is made; from inside nothing of a box can be reached",
       .tries = {watched("its own profile", {"pinned"}, next_launch), watched("h5i inside", {"refused"}, own_cli),
                 outside_by(held("sys openat -100 s:{box}/policy.resolved.json 1", {"ENOENT", "EACCES"}), "sys openat -100 s:{box}/policy.resolved.json 1"),
                 outside_by(held("sys openat -100 s:{box}/log.jsonl 1", {"ENOENT", "EACCES"}), "sys openat -100 s:{box}/log.jsonl 1")},
       .elsewhere = {{"tests/session/test_manifest.cpp", "a policy is used only with the digest that the manifest pins"}, {"tests/policy/test_verbs.cpp", "the host's list is not edited from inside a box"}}},
      {.id = "F13", .what = "a plugin put where h5i might look", .must = "K", .right = "owner, mode and way are checked, the descriptor is what is mapped, the digest is in the receipt", .elsewhere = {{"tests/plugin/test_trusted_path.cpp", "a directory that others may write is refused, at the end and on the way"}, {"tests/plugin_verbs/test_hostile_plugins.cpp", "no variable adds a directory of plugins or a library to those that are believed"}}},
      {.id = "F15", .what = "a plugin that overclaims", .must = "K", .right = "the core sees it before the program runs", .elsewhere = {{"tests/plugin_verbs/test_hostile_plugins.cpp", "a plugin whose enforcement does nothing is caught by the core before the program runs"}, {"tests/adversary/test_mutants.cpp", "of each copy of the tier with one protection removed it is said who catches it"}}},
  };
}

}  // namespace h5i::adversary
