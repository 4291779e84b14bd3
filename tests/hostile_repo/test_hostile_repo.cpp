// Hostile both ways: the repository that a box is made of, and what the box left when its work is looked at.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "tests/bad_input/world.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;
namespace fs = std::filesystem;

namespace {

// In no file of the repository and in no output may this be found.
constexpr const char* kCanary = "CANARY-7f3a91";

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// A world, a marker that counts how often anything ran it, and what must stay outside.
struct Site {
  World w;
  std::string marker, ran;
  Site(uid_t uid, const std::string& tier) : w(uid), marker(w.outside("marker.sh")), ran(w.outside("ran")) {
    w.tier = tier;
    w.write(marker, "#!/bin/sh\necho ran >> " + ran + "\ncat\n", 0755);
    w.write(w.outside("secret/note.txt"), std::string(kCanary) + "\n");
    w.write(w.outside("secret/config"), "[user]\n\tname = " + std::string(kCanary) + "\n[core]\n\tfsmonitor = " + marker + "\n");
    Ended e = run(Program{.argv = {"/bin/sh", "-c", "git init -q --template= -b main . && git add . && git commit -qm secret"}, .env = {{"HOME", w.home()}}, .cwd = w.outside("secret"), .uid = uid});
    REQUIRE(e.status == 0);
  }
  // A name, and words more of `box create`.
  std::vector<std::string> create(const std::string& name, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"box", "create", "--name", name, "--isolation", w.tier});
    return more;
  }
  void make_both() const {
    for (const char* name : {"fix", "other"}) w.made(create(name));
  }
  bool fired() {
    bool f = fs::exists(ran);
    fs::remove(ran);
    return f;
  }
  void no_canary_in(const std::string& text) const { CHECK(text.find(kCanary) == std::string::npos); }
  // Every file of box and export, and every object that the box can name.
  void no_canary_below(const std::string& top) const {
    std::error_code error;
    for (fs::recursive_directory_iterator it(top, error), end; it != end; it.increment(error)) {
      if (!fs::is_regular_file(fs::symlink_status(it->path()))) continue;
      INFO(it->path());
      no_canary_in(bytes_of(it->path()));
    }
  }
};

struct Trick {
  std::string name;
  std::function<void(Site&)> make;  // in a repository with one commit
  std::string create;               // "ok", or ids of the refusals that `box create` may give: "a|b"
  bool fires = false;               // the git program, used as people use it, runs the marker
  std::string run = "ok";           // the same of `box run`, in a box that is older than the trick
};

void configure(Site& s, const std::string& key, const std::string& value) { s.w.git({"config", key, value}); }

const char* kHooks[] = {"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout",
                        "post-merge", "pre-push", "pre-receive", "update", "proc-receive", "post-receive", "post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite",
                        "sendemail-validate", "fsmonitor-watchman", "p4-changelist", "p4-pre-submit", "post-index-change"};

std::vector<Trick> host_tricks() {
  auto outside = [](Site& s, const std::string& below) { return s.w.outside(below); };
  return {
      {"nothing", [](Site&) {}, "ok"},
      {"programs named in the configuration", [](Site& s) {
         for (const char* key : {"core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy", "diff.external", "credential.helper", "gpg.program", "sequence.editor",
                                 "uploadpack.packObjectsHook", "diff.evil.textconv", "diff.evil.command", "merge.evil.driver", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process",
                                 "remote.origin.uploadpack", "remote.origin.vcs", "trailer.x.command", "interactive.diffFilter", "web.browser", "man.x.cmd", "difftool.x.cmd", "mergetool.x.cmd", "alias.status"})
           configure(s, key, std::string(key) == "alias.status" ? "!" + s.marker : s.marker);
         configure(s, "core.commitGraph", "true");
       }, "ok", true},
      {"attributes with filters, drivers, substitutions and encodings", [](Site& s) {
         s.w.write("r/.gitattributes", "* filter=evil diff=evil merge=evil export-subst ident working-tree-encoding=ISO-8859-1 text eol=crlf\n");
         s.w.sh("git add -A && git commit -qm attributes");
         for (const char* key : {"filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "merge.evil.driver"}) configure(s, key, s.marker);
         s.w.write("r/a.txt", "dirty\n");
         s.w.sh("touch a.txt; git checkout -q a.txt");
       }, "ok", true},
      {"hooks of every name", [](Site& s) {
         for (const char* h : kHooks) s.w.write(std::string("r/.git/hooks/") + h, bytes_of(s.marker), 0755);
       }, "ok", true},
      {"hooks elsewhere", [](Site& s) {
         for (const char* h : kHooks) s.w.write(s.w.outside(std::string("hooks/") + h), bytes_of(s.marker), 0755);
         configure(s, "core.hooksPath", s.w.outside("hooks"));
       }, "ok", true},
      {"an included file outside", [](Site& s) {
         s.w.sh("git config --unset user.name || true");
         configure(s, "include.path", s.w.outside("secret/config"));
       }, "ok", true},
      {"a conditional include", [](Site& s) { configure(s, "includeIf.gitdir:/.path", s.w.outside("secret/config")); }, "ok", true},
      {"an include that is a fifo", [](Site& s) {
         s.w.sh("mkfifo ../pipe");
         s.w.write("r/.git/config", bytes_of(s.w.where() + "/.git/config") + "[include]\n\tpath = ../../pipe\n");
       }, "ok"},
      {"a second configuration for the work tree", [](Site& s) {
         configure(s, "extensions.worktreeConfig", "true");
         s.w.write("r/.git/config.worktree", "[core]\n\tfsmonitor = " + s.marker + "\n\tworktree = " + s.w.outside("secret") + "\n");
       }, "ok"},
      {"core.worktree elsewhere", [](Site& s) { configure(s, "core.worktree", s.w.outside("secret")); }, "ok"},
      {"URLs that are replaced", [](Site& s) { configure(s, "url.ext::sh -c " + s.marker + ".insteadOf", "https://"); }, "ok"},
      {"a configuration that is a link outside", [&](Site& s) { s.w.sh("rm .git/config && ln -s " + outside(s, "secret/config") + " .git/config"); }, "git.unsupported-extension|git.redirected"},
      {"a configuration that is a fifo", [](Site& s) { s.w.sh("rm .git/config && mkfifo .git/config"); }, "git.unsupported-extension"},
      {"borrowed objects of another repository", [&](Site& s) { s.w.write("r/.git/objects/info/alternates", outside(s, "secret/.git/objects") + "\n"); }, "ok"},
      {"objects that are a link to another repository's", [&](Site& s) { s.w.sh("cp -rn .git/objects/. " + outside(s, "secret/.git/objects") + " && rm -rf .git/objects && ln -s " + outside(s, "secret/.git/objects") + " .git/objects"); }, "ok", false, "git.redirected"},
      {"refs that are a link", [](Site& s) { s.w.sh("mv .git/refs ../refs && ln -s ../../refs .git/refs"); }, "git.redirected"},
      {"a ref that is a link outside", [&](Site& s) { s.w.sh("ln -s " + outside(s, "secret/note.txt") + " .git/refs/heads/leak"); }, "git.redirected"},
      {"a ref that is a fifo", [](Site& s) { s.w.sh("mkfifo .git/refs/heads/pipe"); }, "git.unsupported-extension"},
      {"HEAD that is a link outside", [&](Site& s) { s.w.sh("rm .git/HEAD && ln -s " + outside(s, "secret/note.txt") + " .git/HEAD"); }, "git.redirected|path.escape"},
      {"HEAD that names a file outside", [&](Site& s) { s.w.write("r/.git/HEAD", "ref: refs/heads/../../../../secret/note.txt\n"); }, "git.failed|git.unsupported-extension|git.unborn"},
      {"an index that is a link outside", [&](Site& s) { s.w.sh("rm .git/index && ln -s " + outside(s, "secret/note.txt") + " .git/index"); }, "ok"},
      {"an index that is noise", [](Site& s) { s.w.write("r/.git/index", std::string(4096, '\xff')); }, "ok"},
      {"packed refs with odd names", [](Site& s) {
         std::string head = s.w.git({"rev-parse", "HEAD"}).out.substr(0, 40);
         s.w.write("r/.git/packed-refs", "# pack-refs with: peeled fully-peeled sorted \n" + head + " refs/heads/--upload-pack=x\n" + head + " refs/heads/a\n");
       }, "ok"},
      {"replacement refs and grafts", [](Site& s) {
         s.w.sh("echo evil > a.txt && git commit -qam evil && git replace HEAD HEAD~1 && mkdir -p .git/info && echo \"$(git rev-parse HEAD) \" > .git/info/grafts");
       }, "ok"},
      {"a shallow file that lies", [](Site& s) { s.w.write("r/.git/shallow", std::string(40, 'a') + "\n"); }, "ok"},
      {"submodule tricks", [](Site& s) {
         s.w.write("r/.gitmodules", "[submodule \"x\"]\n\tpath = sub\r\n\turl = -u" + s.marker + "\n\tupdate = !" + s.marker + "\n[submodule \"../../../hooks\"]\n\tpath = y\n\turl = ext::sh -c " + s.marker + "\n");
         s.w.sh("git add .gitmodules && git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub && git commit -qm sub");
       }, "ok"},
      {".git that leads to another repository by a file", [&](Site& s) {
         s.w.sh("mv .git ../kept");
         s.w.write("r/.git", "gitdir: " + outside(s, "secret/.git") + "\n");
       }, "git.redirected", false, "git.redirected|box.not-found"},
      {".git that leads to another repository by a link", [&](Site& s) { s.w.sh("mv .git ../kept && ln -s " + outside(s, "secret/.git") + " .git"); }, "git.redirected", false, "git.redirected|box.not-found"},
      {".git that is another repository's linked work tree", [&](Site& s) {
         s.w.sh("git -C " + outside(s, "secret") + " worktree add -q ../secret-two && mv .git ../kept && cp " + outside(s, "secret-two/.git") + " .git");
       }, "git.redirected", false, "git.redirected|box.not-found"},
      {"a git directory that poses as one of another repository's", [&](Site& s) {
         s.w.write("r/.git/commondir", outside(s, "secret/.git") + "\n");
         s.w.write("r/.git/gitdir", s.w.where() + "/.git\n");
       }, "git.redirected", false, "git.redirected|box.not-found"},
      {"a git directory that names another for its objects", [&](Site& s) { s.w.write("r/.git/commondir", outside(s, "secret/.git") + "\n"); }, "git.redirected", false, "git.redirected|box.not-found"},
      {"a pack that is noise", [](Site& s) {
         s.w.write("r/.git/objects/pack/pack-" + std::string(40, 'a') + ".pack", "PACK" + std::string(1000, '\xff'));
         s.w.write("r/.git/objects/pack/pack-" + std::string(40, 'a') + ".idx", "\xfftOc" + std::string(2000, '\xff'));
       }, "ok|git.failed"},
      {"a tree that holds .git in disguise", [](Site& s) {
         s.w.sh("b=$(git rev-parse HEAD:a.txt) && t=$(printf '100644 blob %s\\tgit~1\\n' $b | git mktree) && t=$(printf '040000 tree %s\\td\\n' $t | git mktree) && git update-ref HEAD $(git commit-tree $t -m x)");
       }, "gate.dotgit"},
      {"a work tree that holds links outside", [&](Site& s) { s.w.sh("ln -s " + outside(s, "secret") + " out && rm -rf dir && ln -s " + outside(s, "secret") + " dir"); }, "ok"},
      {"a policy that is a link outside", [&](Site& s) { s.w.sh("mkdir .h5i && ln -s " + outside(s, "secret/note.txt") + " .h5i/env.yaml"); }, "path.escape|policy.parse|denied|policy.path|input.invalid"},
  };
}

// What people do with git after each trick.
void people(Site& s) {
  s.w.sh("git status; git diff; git add -A; git commit -qm control; git checkout -q -b control; git log -1 -p", false);
}

// Of both tiers each: who does not confine can be asked everywhere; the one that confines, where it verifies.
std::vector<std::string> tiers() {
  static const bool confines = [] {
    Json probe = World(0).made({"box", "probe"});
    for (const Json& t : probe["tiers"].array())
      if (t["tier"].string() == "process" && t["state"].string() == "available") return true;
    printf("SKIP: hostile-repo-process: the process tier is not available here\n");
    return false;
  }();
  return confines ? std::vector<std::string>{"workspace", "process"} : std::vector<std::string>{"workspace"};
}

bool wanted(const std::string& name) {
  const char* only = getenv("H5I_HOSTILE_REPO_ONLY");
  return !only || name.find(only) != std::string::npos;
}

// In a box that confines, git shows all that it finds, and what lies outside is asked for by name.
std::vector<std::string> run_words(const Site& s, const std::string& box) {
  if (s.w.tier == "workspace") return {"box", "run", box, "--", "true"};
  return {"box", "run", box, "--", "sh", "-c", "exec 2>&1; git status; git diff; git log -p -2; git cat-file --batch-all-objects --batch; cat " + s.w.outside("secret/note.txt") + "; true"};
}

std::vector<std::vector<std::string>> work_verbs(const Site& s, const std::string& box, const std::string& out) {
  return {{"box", "ls"}, {"box", "status", box}, {"box", "log", box}, {"box", "inspect", box}, run_words(s, box), {"box", "diff", box}, {"box", "diff", box, "--raw"}, {"box", "compare", box, "other"},
          {"box", "rebase", box}, {"box", "propose", box, "-m", "m"}, {"box", "export", box, "--output", out}, {"log", "show", box}, {"log", "verify", box, "--allow-unsealed"}, {"log", "seal", box},
          {"policy", "show"}, {"policy", "check"}, {"policy", "explain", "workspace"}, {"box", "apply", box, "--yes"}, {"box", "abort", "other"}, {"box", "gc"}, {"box", "rm", box, "--force"}, {"box", "rm", "other", "--force"}};
}

Ended said(Site& s, const std::vector<std::string>& words) {
  Program p = s.w.h5i(words);
  p.timeout_s = 20;
  Ended e = run(p);
  if (words[1] == "run") s.w.settle();
  CAPTURE(words, e.out, e.err);
  CHECK(e.status >= 0);    // it ended by itself
  CHECK(e.status < 1000);  // and by no signal
  CHECK(e.err.find("[internal]") == std::string::npos);
  CHECK_FALSE(s.fired());
  s.no_canary_in(e.out + e.err);
  return e;
}

bool gave(const Ended& e, const std::string& wanted) {
  std::stringstream ids(wanted);
  for (std::string id; std::getline(ids, id, '|');)
    if (id == "ok" ? e.status == 0 : is_refusal(e.err, id)) return true;
  return false;
}

// Every object that git finds from the box's own repository.
void no_canary_in_objects_of(Site& s, const std::string& box) {
  Ended e = s.w.sh("test -d '" + box + "/git' || exit 0; git --git-dir='" + box + "/git' cat-file --batch-all-objects --batch", false);
  s.no_canary_in(e.out);
}

void change(Site& s, const std::string& box) {
  std::string work = s.w.box(box) + "/work";
  if (!fs::exists(work)) return;
  s.w.write(work + "/a.txt", "changed\n");
  s.w.write(work + "/new.txt", "new\n");
}

}  // namespace

TEST_CASE("a hostile repository makes no verb run code, read outside or wait for ever") {
  for (uid_t uid : people())
    for (const Trick& t : host_tricks()) {
      if (!wanted(t.name)) continue;
      CAPTURE(uid, t.name);
      // Made before the trick: the verbs on boxes meet it too. Each trick meets both tiers in both orders, shared out to the users.
      for (bool before : {true, false}) {
        const std::string tier = before == (uid == 0) ? tiers().front() : tiers().back();
        CAPTURE(before, tier);
        Site s(uid, tier);
        if (before) s.make_both();
        t.make(s);
        s.fired();
        if (before) {
          change(s, "fix");
        } else {
          Ended e = said(s, s.create("fix"));
          CAPTURE(e.out, e.err);
          CHECK(gave(e, t.create));
          said(s, s.create("other", {"--with-changes"}));
          change(s, "fix");
        }
        std::string box = s.w.box("fix");
        for (const auto& words : work_verbs(s, "fix", s.w.outside("out"))) {
          if (words[1] == "apply" || words[1] == "rm") {
            s.no_canary_below(box);
            // A box that is older than the trick sees the folders that it was made with: others are in no confining tier's view.
            if (words[1] == "apply" && !before) no_canary_in_objects_of(s, box);
          }
          Ended e = said(s, words);
          if (words[1] == "run" && before && !t.run.empty()) CHECK(gave(e, t.run));
        }
        s.no_canary_below(s.w.outside("out"));
        if (before || !t.fires) continue;
        people(s);
        CHECK(s.fired());
      }
    }
}

TEST_CASE("what a box left behind makes no verb run code or read outside") {
  struct Left {
    std::string name;
    std::function<void(Site&, const std::string& box)> make;
    std::string propose;
    std::function<void(Site&)> before = {};  // in the repository, before a box is made of it
  };
  auto submodule = [](Site& s) { s.w.sh("git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub && mkdir sub && git commit -qm sub"); };
  const std::vector<Left> rows = {
      {"its own repository with programs", [](Site& s, const std::string& box) {
         s.w.write(box + "/git/config", "[core]\n\tbare = false\n\tfsmonitor = " + s.marker + "\n\thooksPath = " + s.w.outside("secret") + "\n[include]\n\tpath = " + s.w.outside("secret/config") + "\n");
         for (const char* h : kHooks) s.w.write(box + "/git/hooks/" + h, bytes_of(s.marker), 0755);
       }, "ok"},
      {"its own repository as links", [](Site& s, const std::string& box) { s.w.sh("rm -rf '" + box + "/git/objects' '" + box + "/git/index' && ln -s " + s.w.outside("secret/.git/objects") + " '" + box + "/git/objects' && ln -s " + s.w.outside("secret/note.txt") + " '" + box + "/git/index'"); }, "ok"},
      {"a .git of its own", [](Site& s, const std::string& box) { s.w.write(box + "/work/.git/config", "[core]\n\tfsmonitor = " + s.marker + "\n"); }, "git.redirected"},
      {"a .git that is a file", [](Site& s, const std::string& box) { s.w.sh("rmdir '" + box + "/work/.git'"); s.w.write(box + "/work/.git", "gitdir: " + s.w.outside("secret/.git") + "\n"); }, "git.redirected"},
      {"a .git that is a link", [](Site& s, const std::string& box) { s.w.sh("rmdir '" + box + "/work/.git' && ln -s " + s.w.outside("secret/.git") + " '" + box + "/work/.git'"); }, "git.redirected"},
      {"a nested repository", [](Site& s, const std::string& box) { s.w.sh("cd '" + box + "/work' && mkdir -p a/b/c && git init -q a/b/c"); }, "gate.nested-repository"},
      {"names that fold to .git", [](Site& s, const std::string& box) { s.w.write(box + "/work/.GIT", "x"); }, "gate.dotgit"},
      {"a trailing dot", [](Site& s, const std::string& box) { s.w.write(box + "/work/.git./config", "x"); }, "gate.dotgit"},
      {"a short name", [](Site& s, const std::string& box) { s.w.write(box + "/work/GIT~1/hooks/x", "x"); }, "gate.dotgit"},
      {"a link outside", [](Site& s, const std::string& box) { s.w.sh("ln -s " + s.w.outside("secret/note.txt") + " '" + box + "/work/leak'"); }, "gate.symlink-outside"},
      {"a folder that became a link outside", [](Site& s, const std::string& box) { s.w.sh("rm -rf '" + box + "/work/dir' && ln -s " + s.w.outside("secret") + " '" + box + "/work/dir'"); }, "gate.symlink-outside"},
      {"a hard link to outside", [](Site& s, const std::string& box) { s.w.sh("ln " + s.w.outside("secret/note.txt") + " '" + box + "/work/leak'"); }, "gate.hardlink-outside"},
      {"a fifo", [](Site& s, const std::string& box) { s.w.sh("mkfifo '" + box + "/work/pipe'"); }, "gate.special-file"},
      {"attributes as a link", [](Site& s, const std::string& box) { s.w.sh("ln -s a.txt '" + box + "/work/.gitattributes'"); }, "gate.dotgit"},
      {"attributes with filters", [](Site& s, const std::string& box) { s.w.write(box + "/work/.gitattributes", "* filter=evil diff=evil export-subst\n"); }, "ok"},
      {"ignore rules as a link outside", [](Site& s, const std::string& box) { s.w.sh("ln -s " + s.w.outside("secret/note.txt") + " '" + box + "/work/.gitignore'"); }, "gate.symlink-outside"},
      {"option-like names", [](Site& s, const std::string& box) { s.w.write(box + "/work/--upload-pack=touch", "x"); s.w.write(box + "/work/-rf", "x"); }, "ok"},
      {"text that reads differently", [](Site& s, const std::string& box) { s.w.write(box + "/work/odd.txt", "good\rbad\n\xE2\x80\xAE rtl\nzero\xE2\x80\x8Bwidth\n\x1b]52;c;aGk=\x07\n"); }, "ok"},
      {"submodule tricks", [](Site& s, const std::string& box) { s.w.write(box + "/work/.gitmodules", "[submodule \"x\"]\n\tpath = sub\r\n\turl = ext::sh -c id\n\tupdate = !" + s.marker + "\n"); }, "ok"},
      {"a submodule's folder with content", [](Site& s, const std::string& box) { s.w.write(box + "/work/sub/x", "x\n"); }, "gate.gitlink", submodule},
      {"a submodule that became a link outside", [](Site& s, const std::string& box) { s.w.sh("rmdir '" + box + "/work/sub' && ln -s " + s.w.outside("secret") + " '" + box + "/work/sub'"); }, "gate.gitlink|gate.symlink-outside", submodule},
  };
  for (uid_t uid : people())
    for (const Left& row : rows) {
      if (!wanted(row.name)) continue;
      const std::string tier = (&row - rows.data()) % 2 == (uid == 0) ? tiers().front() : tiers().back();
      CAPTURE(uid, tier, row.name);
      Site s(uid, tier);
      if (row.before) row.before(s);
      s.make_both();
      change(s, "fix");
      std::string box = s.w.box("fix");
      row.make(s, box);
      Ended p = said(s, {"box", "propose", "fix"});
      CAPTURE(p.out, p.err);
      CHECK(gave(p, row.propose));
      for (const auto& words : work_verbs(s, "fix", s.w.outside("out"))) {
        Ended e = said(s, words);
        if (words[1] == "diff" && words.size() == 3)
          for (const char* raw : {"\x1b", "\r", "\xE2\x80\xAE", "\xE2\x80\x8B"}) CHECK(e.out.find(raw) == std::string::npos);
      }
      s.no_canary_below(s.w.outside("out"));
      s.no_canary_below(s.w.where());
      Ended all = s.w.sh("git cat-file --batch-all-objects --batch", false);
      s.no_canary_in(all.out);
    }
}

namespace {

// Somebody who, as `uid`, makes `folder` by turns itself, nothing, and a link to `target`.
class Swapper {
 public:
  Swapper(uid_t uid, const Site& s, std::string folder, const std::string& target) : folder_(std::move(folder)), link_(s.w.outside("link")), plain_(s.w.outside("plain")) {
    pid_ = fork();
    if (pid_ != 0) return;
    if (uid && (setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)) _exit(1);
    if (symlink(target.c_str(), link_.c_str()) != 0) _exit(1);
    for (useconds_t i = 0;; i++) {
      usleep(i * 7919 % 3000);  // at times long enough for what looks first and writes then
      rename(folder_.c_str(), plain_.c_str());
      rename(link_.c_str(), folder_.c_str());
      usleep(i * 104729 % 500);
      rename(folder_.c_str(), link_.c_str());
      rename(plain_.c_str(), folder_.c_str());
    }
  }
  ~Swapper() { end(); }
  Swapper(const Swapper&) = delete;
  // The folder is itself again.
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
    if (fs::is_symlink(folder_)) fs::remove(folder_);
    fs::remove(link_);
    if (!fs::exists(plain_)) return;
    fs::remove_all(folder_);  // one that a verb made while it was away
    fs::rename(plain_, folder_);
  }

 private:
  std::string folder_, link_, plain_;
  pid_t pid_;
};

}  // namespace

TEST_CASE("a folder that is swapped for a link while work is taken leads nowhere") {
  for (uid_t uid : people()) {
    const std::string tier = uid == 0 ? tiers().front() : tiers().back();
    CAPTURE(uid, tier);
    Site s(uid, tier);
    int applied = 0;
    for (int i = 0; i < 10; i++) {
      s.w.made(s.create("fix"));
      change(s, "fix");
      const std::string work = s.w.box("fix") + "/work";
      s.w.write(work + "/dir/b.txt", std::to_string(i) + "\n");
      Swapper swapper(uid, s, work + "/dir", s.w.outside("secret"));
      for (std::vector<std::string> words : std::vector<std::vector<std::string>>{{"diff", "fix"}, {"propose", "fix"}, {"export", "fix", "--output", s.w.outside("out"), "--force"}, {"apply", "fix", "--yes"}}) {
        words.insert(words.begin(), "box");
        applied += said(s, words).status == 0 && words[1] == "apply";
      }
      swapper.end();
      s.no_canary_below(s.w.outside("out"));
      s.no_canary_below(s.w.where());
      said(s, {"box", "rm", "fix", "--force"});
      s.w.sh("git reset -q --hard");
    }
    printf("as %u, while the box's folder was swapped: applied %d times of 10\n", static_cast<unsigned>(uid), applied);
    s.no_canary_in(s.w.sh("git cat-file --batch-all-objects --batch", false).out);
  }
}

TEST_CASE("a folder of the repository that is swapped for a link while work is applied to it is written nowhere else") {
  for (uid_t uid : people()) {
    const std::string tier = uid == 0 ? tiers().back() : tiers().front();
    CAPTURE(uid, tier);
    Site s(uid, tier);
    const std::string secret = s.w.outside("secret"), dir = s.w.where() + "/dir";
    s.w.write(secret + "/b.txt", "b\n");
    const Listing before = list_tree(secret);
    int applied = 0;
    for (int i = 0; i < 15; i++) {
      s.w.made(s.create("fix"));
      const std::string work = s.w.box("fix") + "/work", mark = std::to_string(i) + "\n";
      s.w.write(work + "/dir/b.txt", mark);
      for (int k = 0; k < 20; k++) s.w.write(work + "/dir/new/" + std::to_string(k), mark);
      Ended e;
      {
        Swapper swapper(uid, s, dir, secret);
        e = said(s, {"box", "apply", "fix", "--yes"});
      }
      CAPTURE(i, e.out, e.err);
      CHECK(differences(before, list_tree(secret)) == std::vector<std::string>{});
      applied += e.status == 0;
      // With the folder in its place again the next verb leaves the tree old or new, and nothing between.
      said(s, {"box", "diff", "fix"});
      said(s, {"box", "rm", "fix", "--force"});
      s.w.sh("git reset -q --hard && git clean -fdq");
    }
    printf("as %u, while the repository's folder was swapped: applied %d times of 15\n", static_cast<unsigned>(uid), applied);
  }
}

TEST_CASE("refs that are swapped while a command runs change nothing of what the box holds or gives") {
  struct Swap {
    std::string name;
    std::function<void(Site&)> make;
    std::string propose, apply;
  };
  auto evil = [](Site& s, const std::string& ref) {
    s.w.sh("b=$(echo evil | git hash-object -w --stdin) && t=$(printf '100644 blob %s\\tevil.txt\\n' $b | git mktree) && git update-ref " + ref + " $(git commit-tree $t -p HEAD -m evil)");
  };
  const std::vector<Swap> rows = {
      {"nothing", [](Site&) {}, "ok", "ok"},
      {"the base moved", [&](Site& s) { evil(s, "refs/h5i/base/human/fix"); }, "ok", "ok"},
      {"the base gone", [](Site& s) { s.w.git({"update-ref", "-d", "refs/h5i/base/human/fix"}); }, "ok", "ok"},
      {"the box's branch moved", [&](Site& s) { evil(s, "refs/heads/h5i/box/human/fix"); }, "git.ref-changed", "git.ref-changed"},
      {"the box's branch gone", [](Site& s) { s.w.git({"update-ref", "-d", "refs/heads/h5i/box/human/fix"}); }, "git.ref-changed", "git.ref-changed"},
      {"the branch that it was made of moved", [&](Site& s) { evil(s, "refs/heads/main"); s.w.git({"reset", "-q", "--hard"}); }, "ok", "git.conflict"},
      {"all of them packed", [](Site& s) { s.w.git({"pack-refs", "--all"}); }, "ok", "ok"},
      {"refs became a link", [](Site& s) { s.w.sh("mv .git/refs ../refs && ln -s ../../refs .git/refs"); }, "git.redirected", "git.redirected"},
      {"the base became a link outside", [](Site& s) { s.w.sh("ln -sf " + s.w.outside("secret/note.txt") + " .git/refs/h5i/base/human/fix"); }, "git.redirected", "git.redirected"},
      {"HEAD became a link outside", [](Site& s) { s.w.sh("ln -sf " + s.w.outside("secret/note.txt") + " .git/HEAD"); }, "git.redirected", "git.redirected"},
  };
  for (uid_t uid : people())
    for (const Swap& row : rows) {
      if (!wanted(row.name)) continue;
      const std::string tier = (&row - rows.data()) % 2 == (uid == 0) ? tiers().front() : tiers().back();
      CAPTURE(uid, tier, row.name);
      Site s(uid, tier);
      s.make_both();
      change(s, "fix");
      const std::string work = s.w.box("fix") + "/work";
      Program run = s.w.h5i({"box", "run", "fix", "--", "sh", "-c", "echo started; while ! grep -q go run.sh; do sleep 0.02; done; git log --format=%s; git ls-files; true"});
      pid_t pid = start(run, s.w.outside("said"), s.w.outside("said.err"));
      for (int i = 0; i < 2000 && bytes_of(s.w.outside("said")).find("started") == std::string::npos; i++) usleep(10000);
      row.make(s);
      s.w.write(work + "/run.sh", "#!/bin/sh\necho hi\n#go\n", 0755);
      CHECK(wait_for(pid, 60) == 0);
      s.w.settle();
      // What git shows in a box that confines is what it was made of.
      if (tier != "workspace") CHECK(bytes_of(s.w.outside("said")) == "started\nfirst\na.txt\ndir/b.txt\nlink\nrun.sh\n");
      CHECK(said(s, {"log", "verify", "fix", "--allow-unsealed"}).status == 0);
      const std::string head = s.w.git({"rev-parse", "HEAD"}, false).out;
      Ended p = said(s, {"box", "propose", "fix"});
      CAPTURE(p.out, p.err);
      CHECK(gave(p, row.propose));
      Ended a = said(s, {"box", "apply", "fix", "--yes"});
      CAPTURE(a.out, a.err);
      CHECK(gave(a, row.apply));
      if (a.status == 0) CHECK(s.w.git({"ls-tree", "-r", "--name-only", "HEAD"}).out == "a.txt\ndir/b.txt\nlink\nnew.txt\nrun.sh\n");
      if (a.status != 0) CHECK(s.w.git({"rev-parse", "HEAD"}, false).out == head);
    }
}
