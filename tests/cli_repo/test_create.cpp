#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/unique_fd.hpp"
#include "tests/cli_repo/fixture.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {
// Everything that a create could leave behind.
std::string traces(const User& u) {
  return run_program("find", {u.repo + "/.git/h5i", u.home + "/.local/state/h5i/boxes", "-mindepth", "1"}, u.home, u.environment()).out + git(u.repo, {"for-each-ref"});
}
std::string in_box(const std::string& box, std::vector<std::string> args) {
  args.insert(args.begin(), {"--git-dir=" + box + "/git", "--work-tree=" + box + "/work"});
  return git(box + "/work", args);
}
}  // namespace

TEST_CASE("a box has the revision's files raw, a clean repository of its own, refs, log and policy") {
  User u;
  write_file(u.repo + "/a.txt", "changed by the user\n");
  write_file(u.repo + "/untracked", "x");
  Json c = u.create("fix");
  CHECK(c["box"].string() == "human/fix");
  CHECK(c["left_behind"]["modified"].integer() == 1);
  CHECK(c["left_behind"]["untracked"].integer() == 1);
  CHECK(c["next"].array().size() == 3);
  CHECK(read_file(u.work("fix") + "/a.txt") == "one\ntwo\nthree\n");
  CHECK(exists(u.work("fix") + "/.git"));
  CHECK(run_program("ls", {"-A", u.work("fix") + "/.git"}, u.home, u.environment()).out.empty());
  CHECK(in_box(u.box("fix"), {"status", "--porcelain"}) == "");
  CHECK(in_box(u.box("fix"), {"log", "--format=%s"}) == "first");
  CHECK(git(u.repo, {"rev-parse", "refs/heads/h5i/box/human/fix"}) == git(u.repo, {"rev-parse", "HEAD"}));
  CHECK(git(u.repo, {"rev-parse", "refs/h5i/base/human/fix"}) == git(u.repo, {"rev-parse", "HEAD"}));
  CHECK(read_file(u.box("fix") + "/log.jsonl").find("\"kind\":\"created\"") != std::string::npos);
  struct stat st{};
  REQUIRE(stat(u.box("fix").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0700);
  // The user's own tree is as it was.
  CHECK(git(u.repo, {"status", "--porcelain"}) == " M a.txt\n?? untracked");
}

TEST_CASE("for people, create ends with the three commands to type next") {
  User u;
  Ran r = u.run({"box", "create", "--name", "fix", "--isolation", "workspace"});
  CHECK(r.status == 0);
  CHECK(r.out.find("next:\n  h5i box run human/fix -- COMMAND\n  h5i box diff human/fix\n  h5i box apply human/fix\n") != std::string::npos);
  CHECK(r.out.find("stayed behind: 0 modified, 0 untracked, 0 ignored paths") != std::string::npos);
}

TEST_CASE("the agent part comes from --agent, then the environment, then it is human") {
  User u;
  CHECK(u.create("a", {"--agent", "Bot"})["box"].string() == "Bot/a");
  u.more_env = {"H5I_AGENT=other"};
  CHECK(u.json({"box", "create", "--name", "a", "--isolation", "workspace", "--profile", "workspace"})["box"].string() == "other/a");
}

TEST_CASE("what is refused leaves nothing") {
  User u;
  u.create("taken");
  git(u.repo, {"branch", "h5i/box/human/branch-only"});
  std::string before = traces(u);
  CHECK(u.refusal({"box", "create", "--name", "../x"}, "", 2) == "box.name");
  CHECK(u.refusal({"box", "create", "--name", "Upper"}, "", 2) == "box.name");
  CHECK(u.refusal({"box", "create", "--name", "a.lock"}, "", 2) == "box.name");
  CHECK(u.refusal({"box", "create", "--name", "x", "--agent", ".."}, "", 2) == "box.name");
  CHECK(u.refusal({"box", "create", "--name", "taken"}) == "box.exists");
  CHECK(u.refusal({"box", "create", "--name", "x", "--from", "nothing"}) == "git.revision");
  CHECK(u.refusal({"box", "create", "--name", "x", "--from=-x"}) == "git.revision");
  CHECK(u.refusal({"box", "create", "--name", "x", "--profile", "nothing"}) == "policy.no-profile");
  CHECK(u.refusal({"box", "create", "--name", "x", "--isolation", "nothing"}) == "tier.unknown");
  CHECK(u.refusal({"box", "create", "--name", "x", "--isolation", "microvm"}, "", 125) == "tier.not-installed");
  CHECK(u.refusal({"box", "create", "ext::sh -c id", "--name", "x"}) == "git.source");
  CHECK(u.refusal({"box", "create", "http://example.org/x", "--name", "x"}) == "git.source");
  CHECK(u.refusal({"box", "create", "ssh://-oProxyCommand=id/x", "--name", "x"}) == "git.source");
  CHECK(u.refusal({"box", "create", "nothing-there", "--name", "x"}) == "git.source");
  CHECK(u.refusal({"box", "create", "--name", "x", "--pr", "abc"}, "", 2) == "usage");
  CHECK(u.refusal({"box", "create", "--name", "x", "--pr", "7"}) == "git.source");
  CHECK(u.refusal({"box", "create", "--name", "x", "--new", "--pr", "7"}, "", 2) == "usage");
  CHECK(u.refusal({"box", "create", "--name", "x", "--history", "some"}, "", 2) == "usage");
  CHECK(u.refusal({"box", "create", "--name", "x"}, u.home) == "git.no-repository");
  CHECK(u.refusal({"box", "create", "file://" + u.home + "/nothing", "--name", "x", "--isolation", "workspace"}) == "git.failed");
  CHECK(u.refusal({"box", "create", "--name", "branch-only", "--isolation", "workspace"}) == "box.exists");
  CHECK(traces(u) == before);
}

TEST_CASE("what only a run, a probe or a host meets of a profile is refused in three lines too") {
  User u;
  auto profile = [&](const std::string& body) { write_file(u.repo + "/.h5i/env.yaml", "profiles:\n  a:\n    " + body + "\n"); };
  make_directories(u.repo + "/.h5i");
  // A listener of the host's in a grant: whoever listens there acts outside.
  make_directories(u.home + "/shared");
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::string path = u.home + "/shared/s";
  REQUIRE(path.size() < sizeof at.sun_path);
  path.copy(at.sun_path, path.size());
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  REQUIRE(listen(listener.get(), 1) == 0);
  profile("fs: { read: [/usr, ~/shared] }");
  CHECK(u.refusal({"box", "create", "--name", "x", "--profile", "a", "--isolation", "process"}) == "policy.granted-socket");
  listener.reset();
  unlink(path.c_str());
  CHECK(u.run({"box", "create", "--name", "x", "--profile", "a", "--isolation", "process"}).status == 0);  // the control
  // What a file denies, a tier without a view cannot hide.
  profile("fs: { deny: [$WORK/.env] }");
  CHECK(u.refusal({"box", "create", "--name", "y", "--profile", "a", "--isolation", "workspace"}) == "policy.field-unenforceable");
  CHECK(u.refusal({"box", "create", "--name", "y", "--profile", "a", "--isolation", "container"}, "", 125) == "tier.not-installed");
  CHECK(u.refusal({"box", "create", "--name", "y", "--isolation", "workspace", "--image", "registry.example/dev:1"}) == "policy.field-unenforceable");
  u.more_env = {"H5I_DEFAULT_ISOLATION=container"};
  CHECK(u.refusal({"box", "create", "--name", "y", "--profile", "a"}, "", 125) == "tier.not-installed");
  u.more_env = {};
  // Nobody is there yet to hand over a secret or to answer for a credential: said before anything runs.
  for (const char* body : {"secrets: { K: { source: 'env:H5I_SECRET_K', inject: file } }",
                           "auth: [ { host: api.example.org, credential: 'env:T', base_url_var: U, token_var: V } ]"}) {
    INFO(body);
    profile(body);
    std::string name = body[0] == 's' ? "secret" : "auth";
    u.create(name, {"--profile", "a"});
    Ran r = u.run({"box", "run", name, "--", "sh", "-c", "echo ran"});
    INFO(r.err);
    CHECK(r.status == 125);
    CHECK(r.out.empty());
    CHECK(is_refusal(r.err, "broker.absent"));
  }
}

TEST_CASE("a bare repository gives boxes, but neither changes nor a place to apply to") {
  User u;
  git(u.repo, {"clone", "-q", "--bare", u.repo, u.home + "/bare"});
  CHECK(u.refusal({"box", "create", "--name", "x", "--isolation", "workspace", "--with-changes"}, u.home + "/bare") == "git.bare");
  u.create("x", {}, u.home + "/bare");
  write_file(u.home + "/bare/h5i/boxes/human/x/work/new.txt", "new\n");
  CHECK(u.refusal({"box", "apply", "x", "--yes"}, u.home + "/bare") == "git.bare");
}

TEST_CASE("a repository whose format cannot be read is refused") {
  User u;
  git(u.repo, {"config", "core.repositoryformatversion", "1"});
  git(u.repo, {"config", "extensions.partialClone", "origin"});
  CHECK(u.refusal({"box", "create", "--name", "x"}) == "git.partial-clone");
  git(u.repo, {"config", "--unset", "extensions.partialClone"});
  git(u.repo, {"config", "extensions.refStorage", "reftable"});
  CHECK(u.refusal({"box", "create", "--name", "x"}) == "git.unsupported-extension");
}

TEST_CASE("paths that another git would convert are noted, and their bytes are the repository's") {
  User u;
  write_file(u.repo + "/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n*.txt text\n");
  write_file(u.repo + "/big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n");
  git(u.repo, {"add", "-A"});
  git(u.repo, {"commit", "-qm", "lfs"});
  Json c = u.create("fix");
  REQUIRE(c["raw"].array().size() == 1);
  CHECK(c["raw"].array()[0].string() == "big.bin");
  CHECK(read_file(u.work("fix") + "/big.bin").rfind("version https://", 0) == 0);
}

TEST_CASE("an unborn repository and a hostile tree are refused") {
  User u;
  git(u.home, {"init", "-q", "unborn"});
  CHECK(u.refusal({"box", "create", "--name", "x"}, u.home + "/unborn") == "git.unborn");
  std::string blob = git(u.repo, {"rev-parse", "HEAD:a.txt"});
  auto made = [&](std::vector<std::string> args, const std::string& input) {
    std::string out = run_program("git", args, u.repo, git_environment(u.repo), input).out;
    REQUIRE(out.size() == 41);
    return out.substr(0, 40);
  };
  std::string inner = made({"mktree"}, "100644 blob " + blob + "\tgit~1\n"), tree = made({"mktree"}, "040000 tree " + inner + "\td\n");
  git(u.repo, {"update-ref", "HEAD", made({"commit-tree", tree, "-m", "hostile"}, "")});
  CHECK(u.refusal({"box", "create", "--name", "x", "--isolation", "workspace"}) == "gate.dotgit");
  CHECK_FALSE(exists(u.box("x")));
}

TEST_CASE("a stale worktree of the user's does not matter") {
  User u;
  make_directories(u.repo + "/.git/worktrees/stale");
  u.create("fix");
}

TEST_CASE("a linked work tree gives its own HEAD") {
  User u;
  git(u.repo, {"worktree", "add", "-q", "-b", "other", u.home + "/linked"});
  write_file(u.home + "/linked/a.txt", "linked\n");
  git(u.home + "/linked", {"commit", "-qam", "second"});
  Json c = u.create("fix", {}, u.home + "/linked");
  CHECK(c["parent_branch"].string() == "refs/heads/other");
  CHECK(read_file(u.work("fix") + "/a.txt") == "linked\n");
}

TEST_CASE("--with-changes carries modified, deleted and untracked paths and no ignored ones") {
  User u;
  write_file(u.repo + "/.gitignore", "out/\n");
  git(u.repo, {"add", "-A"});
  git(u.repo, {"commit", "-qm", "ignore"});
  write_file(u.repo + "/a.txt", "mine\n");
  write_file(u.repo + "/new/file", "new\n");
  write_file(u.repo + "/out/big", "ignored");
  unlink((u.repo + "/dir/b.txt").c_str());
  Json c = u.create("fix", {"--with-changes"});
  CHECK(c["carried"].integer() == 3);
  CHECK(read_file(u.work("fix") + "/a.txt") == "mine\n");
  CHECK(read_file(u.work("fix") + "/new/file") == "new\n");
  CHECK_FALSE(exists(u.work("fix") + "/dir/b.txt"));
  CHECK_FALSE(exists(u.work("fix") + "/out"));
  // Only what the box itself does is its change.
  CHECK(u.json({"box", "diff", "fix"})["files"].integer() == 0);
  REQUIRE(symlink("/etc", (u.repo + "/leaves").c_str()) == 0);
  CHECK(u.refusal({"box", "create", "--name", "y", "--with-changes", "--isolation", "workspace"}) == "gate.symlink-outside");
}

TEST_CASE("a directory, a file URL and --new make boxes that belong to the user") {
  User u;
  write_file(u.home + "/plain/x/y.txt", "plain\n");
  Json d = u.create("dir", {u.home + "/plain"}, u.home);
  std::string state = u.home + "/.local/state/h5i/boxes/human/";
  CHECK(read_file(state + "dir/work/x/y.txt") == "plain\n");
  CHECK(in_box(state + "dir", {"status", "--porcelain"}) == "");
  Json url = u.create("url", {"file://" + u.repo}, u.home);
  CHECK(url["base_commit"].string() == git(u.repo, {"rev-parse", "HEAD"}));
  CHECK(in_box(state + "url", {"log", "--format=%s"}) == "first");
  git(u.repo, {"branch", "side"});
  CHECK(u.create("side", {"file://" + u.repo, "--from", "side"}, u.home)["base_commit"].string() == git(u.repo, {"rev-parse", "side"}));
  u.create("new", {"--new"}, u.home);
  CHECK(in_box(state + "new", {"status", "--porcelain"}) == "");
  write_file(state + "new/work/made.txt", "made\n");
  CHECK(u.json({"box", "diff", "new"}, 0, u.home)["files"].integer() == 1);
  CHECK(u.refusal({"box", "apply", "new", "--yes"}, u.home) == "box.detached");
  u.json({"box", "export", "new", "--output", u.home + "/out"}, 0, u.home);
  CHECK(read_file(u.home + "/out/patch.diff").find("+made") != std::string::npos);
}

TEST_CASE("--pr takes the head of a pull or merge request from origin") {
  User u;
  git(u.repo, {"checkout", "-qb", "pr"});
  write_file(u.repo + "/pr.txt", "pr\n");
  git(u.repo, {"add", "-A"});
  git(u.repo, {"commit", "-qm", "pull request"});
  std::string head = git(u.repo, {"rev-parse", "HEAD"});
  git(u.repo, {"update-ref", "refs/pull/7/head", head});
  git(u.repo, {"update-ref", "refs/merge-requests/8/head", head});
  git(u.repo, {"checkout", "-q", "main"});
  git(u.repo, {"branch", "-qD", "pr"});
  git(u.home, {"clone", "-q", "file://" + u.repo, "clone"});
  Json c = u.create("p", {"--pr", "7"}, u.home + "/clone");
  CHECK(c["base_commit"].string() == head);
  CHECK(c["parent_branch"].string() == "");
  CHECK(read_file(u.home + "/clone/.git/h5i/boxes/human/p/work/pr.txt") == "pr\n");
  CHECK(u.create("m", {"--pr", "8"}, u.home + "/clone")["base_commit"].string() == head);
  CHECK(u.refusal({"box", "create", "--name", "n", "--pr", "9", "--isolation", "workspace"}, u.home + "/clone") == "git.revision");
  CHECK(git(u.home + "/clone", {"for-each-ref", "refs/h5i/fetched", "refs/tags"}) == "");
}

TEST_CASE("--history none and shallow copy only what is reachable") {
  User u;
  write_file(u.repo + "/secret", "old secret\n");
  git(u.repo, {"add", "-A"});
  git(u.repo, {"commit", "-qm", "secret"});
  std::string secret = git(u.repo, {"rev-parse", "HEAD:secret"});
  git(u.repo, {"rm", "-q", "secret"});
  git(u.repo, {"commit", "-qm", "third"});
  auto holds = [&](const std::string& name) {
    return run_program("git", {"--git-dir=" + u.box(name) + "/git", "cat-file", "-e", secret}, u.home, git_environment(u.home)).status == 0;
  };
  u.create("full");
  u.create("shallow", {"--history", "shallow"});
  u.create("none", {"--history", "none"});
  CHECK(holds("full"));
  CHECK_FALSE(holds("shallow"));
  CHECK_FALSE(holds("none"));
  CHECK(in_box(u.box("shallow"), {"log", "--format=%s"}) == "third");
  CHECK(in_box(u.box("none"), {"log", "--format=%an %s"}).find("third") == std::string::npos);
  for (const char* n : {"shallow", "none"}) CHECK(in_box(u.box(n), {"status", "--porcelain"}) == "");
}

TEST_CASE("a configuration that runs programs runs none") {
  User u;
  std::string marker = u.home + "/marker";
  write_file(u.repo + "/.gitattributes", "* filter=evil\n");
  git(u.repo, {"add", "-A"});
  git(u.repo, {"commit", "-qm", "attributes"});
  for (const char* key : {"filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "core.sshCommand", "core.pager", "diff.external"}) git(u.repo, {"config", key, "touch " + marker + ";cat"});
  for (const char* hook : {"post-checkout", "reference-transaction", "pre-commit", "post-commit"}) write_file(u.repo + "/.git/hooks/" + hook, "#!/bin/sh\ntouch " + marker + "\n", 0755);
  unlink(marker.c_str());
  u.create("fix", {"--with-changes"});
  write_file(u.work("fix") + "/a.txt", "next\n");
  u.json({"box", "diff", "fix"});
  u.json({"box", "propose", "fix"});
  u.json({"box", "apply", "fix", "--yes"});
  CHECK_FALSE(exists(marker));
}
