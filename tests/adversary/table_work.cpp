// Group C: the work tree, git, and what leaves a box. What the box plants is made inside; then the host's verbs are asked.
#include <unistd.h>

#include <filesystem>

#include "tests/adversary/cases.hpp"
#include "tests/adversary/world.hpp"

namespace h5i::adversary {
namespace {

bool has(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

Ran shell(const Place& p, const std::string& script) { return p.command({"/bin/sh", "-c", script}); }

// A box of this scene's own, so that what it plants is nobody else's.
Place own(const Place& p) { return p.inside() ? p.world->fresh(p) : p; }

// A program that says that it ran, by a file.
std::string marker(const Place& p) { return p.world->fill("{root}/ran", p); }
std::string planted(const Place& p) { return "echo ran > " + marker(p); }
std::string took(const Place& p) {
  bool ran = !p.world->read(marker(p)).empty();
  unlink(marker(p).c_str());
  return ran ? "ran" : "did not run";
}

// Everything that a person would ask of a box with work in it.
std::string review(const Place& p) {
  std::string all;
  for (const char* verb : {"diff", "status", "log", "inspect", "propose"}) {
    std::vector<std::string> words{"box", verb, p.box};
    if (std::string(verb) == "propose") words.insert(words.end(), {"--message", "m"});
    Ran r = p.world->h5i(words);
    all += r.out + r.err;
  }
  return all;
}

// Outside the same words in a repository, and git asked to do what they are for.
std::string by_git(const Place& p, const std::string& plant, const std::string& use) {
  shell(p, "git init -q g && cd g && echo a > README && " + plant + "; " + use + "; true");
  return took(p);
}

Scene runs_on_host(const std::string& plant, const std::string& use) {
  return [=](const Place& at_first) -> std::string {
    Place p = own(at_first);
    std::string filled = plant;
    for (size_t at; (at = filled.find("@RUN@")) != std::string::npos;) filled.replace(at, 5, planted(p));
    if (!p.inside()) return by_git(p, filled, use);
    shell(p, "cd {work} && " + filled + "; echo more >> README; true");
    took(p);  // what ran inside the box is the box's own affair
    review(p);
    std::string host = p.world->read(p.world->repo() + "/.git/hooks/pre-commit");
    return host.empty() ? took(p) : "planted in the host's repository";
  };
}

// What the box wrote to its .git is in a directory that nobody on the host takes for a repository.
std::string private_git(const Place& at_first) {
  Place p = own(at_first);
  shell(p, "cd {work} && mkdir -p .git/hooks && echo id > .git/hooks/pre-commit; mv .git moved; rm -rf .git; true");
  if (!p.inside()) return p.world->read(p.work + "/moved/hooks/pre-commit").empty() ? "not there" : "moved and planted";
  bool folder = std::filesystem::is_directory(p.work + "/.git");
  bool empty = folder && std::filesystem::is_empty(p.work + "/.git");
  return empty && !std::filesystem::exists(p.work + "/moved") ? "the box's own" : "seen on the host";
}

// The change is seen, whatever the box did to its own git.
Scene seen_in_diff(const std::string& hide) {
  return [=](const Place& at_first) -> std::string {
    Place p = own(at_first);
    if (!p.inside()) {
      Ran r = shell(p, "git init -q g && cd g && cp {repo}/README . && git add . && git commit -qm one && " + hide + "; git status --porcelain; git diff");
      return has(r.out, "evil") ? "shown" : "hidden";
    }
    shell(p, "cd {work} && " + hide + "; true");
    return has(p.world->h5i({"box", "diff", p.box}).out, "+evil") ? "shown" : "hidden";
  };
}

std::string nested(const Place& at_first) {
  Place p = own(at_first);
  if (!p.inside()) return shell(p, "git init -q g && cd g && git init -q sub && cd sub && git commit -q --allow-empty -m x").status == 0 ? "did" : "did not";
  shell(p, "cd {work} && git init -q sub && cd sub && git commit -q --allow-empty -m x");
  Ran r = p.world->h5i({"box", "propose", p.box, "--message", "m"});
  bool named = r.status == 1 && has(r.err, "gate.nested-repository") && has(r.err, "sub");
  return named ? "refused by name" : "status " + std::to_string(r.status) + " " + r.err;
}

// The box's .git becomes a pointer to somebody else's repository.
std::string redirected(const Place& at_first) {
  Place p = own(at_first);
  World& w = *p.world;
  std::string other = w.fill("{root}/other", p);
  w.host({"/bin/sh", "-c", "rm -rf " + other + "; mkdir -p " + other + " && cd " + other + " && git init -q . && echo theirs > file && git add . && git commit -qm theirs"}, w.home());
  std::string before = w.host({"/bin/sh", "-c", "cd " + other + " && find . -type f | sort | xargs sha256sum"}, w.home()).out;
  std::string trick = "rm -rf .git; echo 'gitdir: " + other + "/.git' > .git; echo more >> README";
  std::string out = "untouched";
  if (!p.inside()) {
    Ran r = shell(p, "mkdir -p t && cd t && " + trick + "; git log --format=%s");
    out = has(r.out, "theirs") ? "followed" : "not followed";
  } else {
    shell(p, "cd {work}; " + trick);
    std::string said = review(p);
    if (has(said, "theirs")) out = "shown";
  }
  if (w.host({"/bin/sh", "-c", "cd " + other + " && find . -type f | sort | xargs sha256sum"}, w.home()).out != before && p.inside()) out = "changed";
  w.host({"rm", "-rf", other}, w.home());
  return out;
}

std::string handed_off(const Place& at_first) {
  Place p = own(at_first);
  const std::string plant = "mkdir -p .claude .vscode a/b/c/d/.vscode .github/workflows && echo '{}' > .claude/settings.json; echo '{}' > .vscode/tasks.json; "
                            "echo '{}' > a/b/c/d/.vscode/tasks.json; echo 'on: push' > .github/workflows/x.yml; echo '[user]' > .gitmodules";
  if (!p.inside()) return shell(p, plant).status == 0 ? "did" : "did not";
  Ran planted = shell(p, "cd {work} && " + plant);
  Ran r = p.world->h5i({"box", "diff", p.box});
  for (const char* name : {".claude/settings.json", ".vscode/tasks.json", "a/b/c/d/.vscode/tasks.json", ".github/workflows/x.yml"}) {
    size_t at = r.out.find("will run on your side");
    if (at == std::string::npos || !has(r.out.substr(at), name)) return std::string(name) + " is not named: " + planted.out + planted.err + r.out + r.err;
  }
  return "named";
}

// Names and contents that would drive a terminal or read differently than they are.
std::string neutral(const Place& at_first) {
  Place p = own(at_first);
  const std::string plant = "printf x > \"$(printf 'a\\033[2Kb')\"; printf 'ok\\r\\033]52;c;aGk=\\007 \\342\\200\\256 evil\\n' >> README; mkdir -- --upload-pack=x; echo y > --upload-pack=x/-rf";
  if (!p.inside()) {
    Ran r = shell(p, plant + "; cat README; ls");
    return has(r.out, "\033") ? "did" : "did not";
  }
  shell(p, "cd {work} && " + plant);
  std::string said = review(p);
  for (char c : {'\033', '\007', '\r'})
    if (has(said, std::string(1, c))) return "a control character reaches the terminal";
  if (has(said, "\342\200\256")) return "a bidi control reaches the terminal";
  return "neutral";
}

// The work tree is, after a run that did nothing, what it was before: no mask or placeholder stays. A folder's own time may change
// while a placeholder comes and goes, so the folders themselves ("." and "..") are not listed.
std::string litter(const Place& at_first) {
  Place p = own(at_first);
  if (!p.inside()) return shell(p, "touch .env").status == 0 ? "did" : "did not";
  std::string list = "cd " + p.work + " && find . -path ./.git -prune -o -print | sort; ls -lA " + p.world->home() + "/open " + p.world->home() + "/shared";
  std::string before = p.world->host({"/bin/sh", "-c", list}, "/").out;
  shell(p, "true");
  return p.world->host({"/bin/sh", "-c", list}, "/").out == before ? "as before" : "changed";
}

}  // namespace

std::vector<Case> cases_of_work() {
  const std::string git = "tests/git/test_hostile.cpp", gate = "tests/gate/test_scan.cpp", rules = "tests/gate/test_rules.cpp";
  return {
      {.id = "C01",
       .what = "a hook that the box plants",
       .must = "KPS",
       .claim = "fs.write",
       .right = "it is the box's own; no verb of the host runs it",
       .tries = {watched("pre-commit", {"did not run"},
                         runs_on_host("mkdir -p .git/hooks; for h in pre-commit post-checkout post-index-change reference-transaction prepare-commit-msg; do printf '#!/bin/sh\\n@RUN@\\n' > "
                                      ".git/hooks/$h; chmod +x .git/hooks/$h; done",
                                      "git add . && git commit -qm x"),
                         {"ran"}),
                 watched("the host's side of .git", {"the box's own"}, private_git, {"moved and planted"}),
                 held("make {repo}/.git/hooks/post-merge", {"ENOENT", "EACCES"}), held("sys access s:{repo}/.git/config 0", {"ENOENT"})},
       .elsewhere = {{git, "hooks never run"}, {"tests/cli_repo/test_create.cpp", "a configuration that runs programs runs none"}}},
      {.id = "C03",
       .what = "filter, textconv and fsmonitor programs in the box's configuration and attributes",
       .must = "K",
       .right = "none runs",
       .tries = {watched("filter.clean and smudge", {"did not run"},
                         runs_on_host("echo '* filter=x' > .gitattributes; git config filter.x.clean \"sh -c '@RUN@; cat'\"; git config filter.x.smudge \"sh -c '@RUN@; cat'\"", "git add ."), {"ran"}),
                 watched("core.fsmonitor", {"did not run"}, runs_on_host("git config core.fsmonitor \"sh -c '@RUN@'\"", "git add . ; git status"), {"ran"})},
       .elsewhere = {{git, "filters, textconv, external diff and merge drivers of configuration and attributes never run"},
                     {git, "fsmonitor, hooksPath and included configuration never run a program"}}},
      {.id = "C04",
       .what = "external diff and textconv",
       .must = "K",
       .right = "none runs",
       .tries = {watched("diff.external", {"did not run"}, runs_on_host("git config diff.external \"sh -c '@RUN@'\"", "git add . ; git commit -qm x; echo b >> README; git diff"), {"ran"}),
                 watched("textconv", {"did not run"},
                         runs_on_host("echo '* diff=x' > .gitattributes; git config diff.x.textconv \"sh -c '@RUN@'\"", "git add . ; git commit -qm x; echo b >> README; git diff"), {"ran"})},
       .elsewhere = {{git, "filters, textconv, external diff and merge drivers of configuration and attributes never run"}}},
      {.id = "C05",
       .what = "indirection in configuration: include, config.worktree",
       .must = "K",
       .right = "none runs",
       .tries = {watched("include.path", {"did not run"},
                         runs_on_host("printf '[core]\\n\\tfsmonitor = \"sh -c \\\\\"@RUN@\\\\\"\"\\n' > inc; git config include.path ../inc", "git add .; git status"), {"ran"}),
                 watched("config.worktree", {"did not run"},
                         runs_on_host("git config extensions.worktreeConfig true; printf '[core]\\n\\tfsmonitor = \"sh -c \\\\\"@RUN@\\\\\"\"\\n' > .git/config.worktree", "git add .; git status"), {"ran"})},
       .elsewhere = {{git, "fsmonitor, hooksPath and included configuration never run a program"}, {git, "configuration of user and system is not searched"}}},
      {.id = "C06",
       .what = "files that other tools run, absent at the start and made by the box, at any depth",
       .must = "KPS",
       .claim = "fs.write",
       .right = "each is named in the diff as what will run on your side",
       .tries = {watched("settings, tasks and workflows", {"named"}, handed_off)},
       .elsewhere = {{"tests/gate/test_handoff.cpp", "files that other tools run are named at any depth, whatever their case"},
                     {"tests/gate/test_handoff.cpp", "what a link shows under a tool's name is named, whatever it is called itself"}}},
      {.id = "C07",
       .what = "the box's .git becomes a pointer to another repository",
       .must = "KPW",
       .right = "the other repository is neither read nor changed",
       .tries = {watched("gitdir: elsewhere", {"untouched"}, redirected, {"followed"})},
       .elsewhere = {{"tests/cli_repo/test_review.cpp", "a .git that somebody wrote outside the box is never read"}, {gate, "refused: .git at the top that is not the empty directory of h5i"}}},
      {.id = "C09", .what = "tricks in .gitmodules", .must = "K", .right = "named; no submodule is ever initialised", .elsewhere = {{"tests/gate/test_handoff.cpp", "tricks in .gitmodules are named with their lines"}}},
      {.id = "C10",
       .what = "a nested repository, a new submodule entry",
       .must = "K",
       .right = "propose refuses and names it",
       .tries = {watched("git init sub", {"refused by name"}, nested)},
       .elsewhere = {{gate, "an unchanged submodule round-trips; changed, moved, filled and new ones are refused"},
                     {gate, "refused: what git takes for a repository without .git, with its objects and configuration in it or elsewhere"}}},
      {.id = "C12",
       .what = "index bits hide a change",
       .must = "K",
       .right = "the file system is read, not the box's index",
       .tries = {watched("skip-worktree", {"shown"}, seen_in_diff("git update-index --skip-worktree README; echo evil >> README"), {"hidden"}),
                 watched("assume-unchanged", {"shown"}, seen_in_diff("git update-index --assume-unchanged README; echo evil >> README"), {"hidden"})},
       .elsewhere = {{"tests/cli_repo/test_review.cpp", "propose makes the commit from the files, not from the box's index, commits or refs"}}},
      {.id = "C13",
       .what = "replace refs and grafts show something else",
       .must = "K",
       .right = "what is there is shown",
       .tries = {watched("git replace", {"shown"},
                         seen_in_diff("echo evil >> README; git add README; git commit -qm bad; git replace HEAD HEAD~1"), {"hidden"})},
       .elsewhere = {{git, "replace refs and grafts show nothing else than what is there"}}},
      {.id = "C15",
       .what = "core.worktree points elsewhere",
       .must = "K",
       .right = "the box's work tree is the one of the host's records",
       .tries = {watched("core.worktree", {"shown"}, seen_in_diff("echo evil >> README; mkdir -p .git/elsewhere; git show HEAD:README > .git/elsewhere/README; git config core.worktree $PWD/.git/elsewhere"), {"hidden"})},
       .elsewhere = {{git, "core.worktree points nowhere"}}},
      {.id = "C16",
       .what = "a directory is swapped for a link while the host reads it",
       .must = "K",
       .right = "nothing outside is read",
       .elsewhere = {{gate, "a directory that is swapped for a link while the tree is read never leads outside"}, {"tests/git/test_checkout.cpp", "writing never goes through a link that the box put in place of a directory"}}},
      {.id = "C18",
       .what = "hard links: another name for what is denied, or for what is outside",
       .must = "KPS",
       .claim = "fs.deny",
       .right = "EXDEV or ENOENT; the gate refuses links to outside",
       .tries = {held("sys linkat -100 s:{hidden} -100 s:{work}/l1 0", {"ENOENT", "EXDEV"}), held("sys linkat -100 s:{file} -100 s:{work}/l2 0", {"EXDEV"}),
                 outside_by(held("sys linkat f:{file} s: -100 s:{work}/l3 0x1000", {"EXDEV", "ENOENT", "EPERM"}), "sys linkat -100 s:{file} -100 s:{work}/l3 0"),
                 outside_by(held("sys linkat -100 s:/proc/self/exe -100 s:{work}/l4 0x400", {"EXDEV", "EPERM"}), "sys linkat -100 s:{file} -100 s:{work}/l4 0"),
                 outside_by(held("sys renameat2 -100 s:{open}/plain -100 s:{work}/moved 0", {"EXDEV"}), "sys renameat2 -100 s:{open}/plain -100 s:{open}/moved 0"),
                 held("sys linkat -100 s:{attack} -100 s:{open}/l5 0", {"EXDEV"})},
       .elsewhere = {{gate, "refused: a hard link whose other name is outside"}}},
      {.id = "C19", .what = "names that leave, on the way out", .must = "K", .right = "refused, nothing written", .elsewhere = {{rules, "paths that leave, are absolute or empty are refused"}, {rules, "names that are too long or hold control characters are refused"}}},
      {.id = "C21",
       .what = "names that are options or control codes, text that reads differently",
       .must = "K",
       .right = "printed escaped, in every view",
       .tries = {watched("escapes, carriage returns, bidi", {"neutral"}, neutral)},
       .elsewhere = {{"tests/cli_repo/test_review.cpp", "text of a box cannot drive the terminal; --raw is for pipes"}}},
      {.id = "C22", .what = "text that reads differently than it runs", .must = "K", .right = "found and marked", .elsewhere = {{"tests/gate/test_handoff.cpp", "text that reads differently than it runs is found, ordinary text is not"}}},
      {.id = "C24", .what = "a link in the repository where h5i would mount or read", .must = "KPS", .right = "a refusal", .elsewhere = {{"tests/spawn/test_confinement.cpp", "a symbolic link as a source or on the way to one is a refusal"}, {"tests/policy/test_resolve.cpp", "files are read through a descriptor, and links are not followed"}}},
      {.id = "C25", .what = "a private path below a planted link", .must = "KPS", .right = "refused component by component", .elsewhere = {{"tests/tiers/test_view.cpp", "private directories are mounted over the work tree from outside it"}, {"tests/policy/test_config.cpp", "private paths stay inside the work tree and apart"}}},
      {.id = "C27", .what = "a crash or a full disk in the middle of apply", .must = "K", .right = "all or nothing", .elsewhere = {{"tests/git/test_worktree.cpp", "after a kill at any moment the next look makes all old or all new"}}},
      {.id = "C30", .what = "deeper than a scan would look", .must = "KPS", .right = "by name at any depth, at review", .elsewhere = {{"tests/gate/test_handoff.cpp", "files that other tools run are named at any depth, whatever their case"}, {gate, "refused: .git below the top, in disguise, as file and as directory"}}},
      {.id = "C31",
       .what = "masks and placeholders leave litter",
       .must = "PS",
       .right = "the trees are as before",
       .tries = {watched("a run that does nothing", {"as before"}, litter)},
       .elsewhere = {{"tests/session/test_placeholders.cpp", "placeholders are removed while they are empty, never through a link"},
                     {"tests/endurance/test_killed.cpp", "what stood there for a denial is gone after h5i-host or all of ours was killed, in the work tree and outside"}}},
      {.id = "C33", .what = "a .git that is a file or a link, dotfiles that are links", .must = "PS", .right = "runs, or one refusal", .elsewhere = {{"tests/cli_repo/test_create.cpp", "a linked work tree gives its own HEAD"}, {"tests/session/test_find.cpp", "a linked work tree leads to the common directory"}}},
      {.id = "C34", .what = "one stale worktree blocks all", .must = "K", .right = "create works", .elsewhere = {{"tests/cli_repo/test_create.cpp", "a stale worktree of the user's does not matter"}}},
      {.id = "C36", .what = "two boxes with one base apply at once", .must = "K", .right = "each is whole or refused", .elsewhere = {{"tests/cli_repo/test_apply.cpp", "of boxes with one base that apply at once, each is whole or refused"}}},
  };
}

}  // namespace h5i::adversary
