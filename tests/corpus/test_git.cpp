// All of git's porcelain on the private git directory of a box, beside the same words in an ordinary clone. Dates and names are fixed,
// so the two end with the same object ids; the repository that the box came from knows nothing of it.
#include "tests/cli/project.hpp"

using namespace h5i::test;

namespace {

// Everything that is made lies in the work tree: a box has no other place on disk. `kept` is ignored, and holds the other repositories.
const char* const kSetting = R"sh(
set -eu
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_EDITOR=: GIT_PAGER=cat GIT_TERMINAL_PROMPT=0
clock=1000000000
tick() { clock=$((clock + 60)); export GIT_AUTHOR_DATE="$clock +0100" GIT_COMMITTER_DATE="$clock +0100"; }
tick
git config advice.detachedHead false
git config protocol.file.allow always
mkdir -p .git/info kept
echo /kept > .git/info/exclude
git switch -q -C start
git branch -q -f main
)sh";

const char* const kEnd = R"sh(
echo "== end"
git status --porcelain
git log --all --format='%H %T %s' --date-order
git for-each-ref --format='%(refname) %(objectname)' refs/heads refs/tags refs/notes | grep -v refs/heads/h5i/
git write-tree
git fsck --strict --no-dangling
)sh";

struct Part {
  const char* what;
  const char* script;
};

const Part kParts[] = {
    {"add, commit, branch, switch, restore, reset, mv, rm, clean, diff", R"sh(
for i in 1 2 3; do seq $i 9 > f$i; done
git add f1 f2
git status --porcelain
git add -A
git commit -qm 'three files'
git branch side
git switch -q side
tick
echo side >> f1
git commit -qam side
git switch -q -
git branch --list 'm*' 's*'
echo changed >> f2
git diff --stat
git diff f2 | tail -1
git add f2
git diff --cached --name-only
git restore --staged --worktree f2
git mv f3 g3
git rm -q f2
tick
git commit -qm moved
git show --stat --format=%s -M HEAD
git reset -q --soft HEAD~1
git status --porcelain
git reset -q --hard ORIG_HEAD
ls
touch junk
mkdir junk.d
touch junk.d/x
git clean -nd
git clean -qfd
ls
printf '1\na\n3\n' > p
git add p
tick
git commit -qm p
seq 5 > p
printf 's\ny\nn\n' | git add -p p > /dev/null; git diff --cached --numstat; git reset -q --hard
tick
git commit -q --amend -m 'p, amended'
git commit -q --allow-empty -m empty
git checkout -q HEAD~1
git checkout -q start
git switch -q --orphan alone
echo alone > alone
git add alone
git commit -q -m alone
git switch -q start
)sh"},
    {"merge with a conflict and its resolution, rebase, cherry-pick, revert, rerere", R"sh(
git config rerere.enabled true
seq 10 > f
git add f
git commit -qm base
git switch -qc left
sed -i 's/^5$/left/' f
tick
git commit -qam left
git switch -q start
sed -i 's/^5$/right/' f
tick
git commit -qam right
git merge left || echo "status $?"
git status --porcelain
git diff --name-only --diff-filter=U
sed -i '/^<<<</d;/^====/d;/^>>>>/d' f
git add f
tick
git commit -q --no-edit
git log -1 --format='%s %p' | wc -w
git reset -q --hard HEAD~1
git merge left 2>&1 | tail -2 || true
git checkout -q --theirs f
cat f | grep -n left
git merge --abort
git status --porcelain
git merge -q -s ours -m ours left
git reset -q --hard HEAD~1
git switch -qc topic HEAD~1 && for i in a b c; do tick && echo $i > $i && git add $i && git commit -qm $i; done
git rebase -q start
git log --format=%s -4
tick
echo fix >> b
git commit -qa --fixup=:/^b
git -c sequence.editor=: rebase -q -i --autosquash start
git log --format=%s -3
cat b
GIT_SEQUENCE_EDITOR="sed -i -e '1s/pick/drop/' -e '2s/pick/reword/'" git rebase -q -i start
git log --format=%s -2
git rebase left 2> /dev/null || { echo conflict && git checkout -q --theirs f && git add f && git rebase --continue > /dev/null 2>&1; }
git log --format=%s -3
git switch -q start
tick
git cherry-pick topic > /dev/null
git cherry start topic
tick
git revert --no-edit HEAD > /dev/null
git log --format=%s -2
git merge-base start left | wc -c
git merge -q --squash topic > /dev/null
git commit -q -m squashed
git reset -q --hard HEAD~1
git range-diff left..topic left..topic | wc -l
git rerere status
git merge -q --no-ff -m merged topic~1
git log -1 --format='%s %p' | wc -w
)sh"},
    {"stash, tag, notes, log, blame, grep, bisect, reflog, describe, shortlog", R"sh(
for i in $(seq 12); do tick && echo "line $i" >> f && git add f && git commit -qm "commit $i"; done
git tag light HEAD~3
git tag -a -m 'with words' v1 HEAD~5
git describe
git describe --tags
git tag -n
echo dirty >> f
echo new > new
git stash push -q -u -m mine
git status --porcelain
git stash list
git stash show --stat
git stash pop -q
git status --porcelain
git reset -q --hard
rm new
git notes add -m 'a note' HEAD
git log -1 --show-notes --format='%s %N'
git notes append -m more
git notes show
git log --oneline --graph -3 | cat
git log -S'line 7' --format=%s
git log -L2,2:f --format=%s -s
git shortlog -sn HEAD
git log --since=@1000000300 --format=%s | wc -l
git blame -s f | cut -d' ' -f1 | sort -u | wc -l
git blame -L3,3 --porcelain f | grep summary
git grep -n 'line 1[01]'
git grep -c line HEAD~2 -- f
git bisect start HEAD HEAD~11 > /dev/null
git bisect run sh -c '! grep -q "line 6" f' > kept/bisect
grep 'first bad' kept/bisect
git bisect log | grep -c '^git bisect'
git bisect reset 2> /dev/null
git symbolic-ref --short HEAD
git reflog --format=%gs | sed -n 1,4p
git rev-parse --verify -q 'HEAD@{2}'
git reset -q --hard HEAD~2
git reset -q --hard 'HEAD@{1}'
git name-rev --name-only HEAD
git show-branch start light | tail -1
git ls-files -s
git cat-file -p HEAD^{tree}
git rev-list --count --all
git log --format='%an %ad %cn %cd' -1
git whatchanged -1 --format=%s --no-abbrev
git diff-tree -r --name-status HEAD
)sh"},
    {"worktree, sparse-checkout, submodule, subtree of another repository, hooks, attributes", R"sh(
mkdir -p a b/c
echo 1 > a/f
echo 2 > b/c/f
echo 3 > top
git add .
git commit -qm tree
git worktree add -q kept/wt -b wt
echo there > kept/wt/there
git -C kept/wt add .
tick
git -C kept/wt commit -qm there
git worktree list | wc -l
git log wt -1 --format=%s
git worktree lock kept/wt
git worktree unlock kept/wt
git worktree remove kept/wt
git worktree prune
git branch -D -q wt
git sparse-checkout set --cone a
ls
git sparse-checkout list
git sparse-checkout disable
ls
git init -q -b main kept/sub
(cd kept/sub && echo s > s && git add s && git commit -qm sub)
git -c protocol.file.allow=always submodule --quiet add "$PWD/kept/sub" sub
git config -f .gitmodules submodule.sub.url ../sub
git add .gitmodules sub
tick
git commit -qm 'with a submodule'
git submodule status | cut -c1-41
git submodule foreach --quiet 'git log --format=%s'
git ls-files -s sub
git submodule deinit -q -f sub
git rm -q -f sub
rm -rf .git/modules
tick
git commit -qm 'without it'
ls
printf '#!/bin/sh\necho hook ran\ngrep -q forbidden top && exit 1 || exit 0\n' > .git/hooks/pre-commit
chmod +x .git/hooks/pre-commit
echo 4 >> top
tick
git commit -qam hooked
echo forbidden >> top
{ git commit -qam no || echo "refused $?"; }
git commit -q --no-verify -am yes
rm .git/hooks/pre-commit
printf 'f filter=up\n*.bin binary\n*.txt text eol=crlf\n' > .gitattributes
git config filter.up.clean 'tr a-z A-Z'
git config filter.up.smudge 'tr A-Z a-z'
echo lower > f
printf 'a\r\n' > x.txt
tick
git add . 2> /dev/null
git commit -qm attributes
git show HEAD:f
rm f x.txt
git checkout -q -- .
cat f
wc -c < x.txt
git check-attr -a x.bin
git config alias.last 'log -1 --format=%s'
git last
git config --get-regexp 'filter.*'
printf '*.o\n' > .gitignore
touch x.o
git status --porcelain --ignored
git check-ignore -v x.o
rm .gitignore x.o
)sh"},
    {"clone, fetch, push, pull, bundle, archive, format-patch and am, gc, repack, fsck, replace, filter-branch, maintenance", R"sh(
for i in 1 2 3; do tick && echo $i >> f && git add f && git commit -qm "c$i"; done
git init -q --bare -b main kept/bare.git
git remote add origin "$PWD/kept/bare.git"
git push -q -u origin start
git ls-remote origin | cut -f2
git clone -q -b start kept/bare.git kept/clone
(cd kept/clone && tick && echo clone >> f && git commit -qam clone && git push -q)
git fetch -q
git rev-list --count start..origin/start
git pull -q --ff-only
git log -1 --format=%s
git clone -q --depth 1 "file://$PWD/kept/bare.git" -b start kept/shallow
git -C kept/shallow rev-list --count HEAD
git -C kept/shallow fetch -q --unshallow
git -C kept/shallow log --format=%s | head -2
git push -q --force-with-lease origin HEAD~1:refs/heads/other
git push -q origin --delete other
git remote -v | cut -f1
git remote rm origin
git bundle create -q kept/b.bundle start
git bundle verify -q kept/b.bundle
git clone -q -b start kept/b.bundle kept/from-bundle
git -C kept/from-bundle log --format=%T -1
git archive --prefix=p/ HEAD | sha256sum
git archive --format=zip HEAD -o kept/a.zip
git archive --format=tar.gz HEAD f | tar -tzf -
git format-patch -q -o kept/patches HEAD~2
ls kept/patches
git switch -qc mail HEAD~2
git am -q kept/patches/*.patch
git log --format='%T %s' -2
git reset -q --hard HEAD~1
git apply --check kept/patches/0002*
git apply kept/patches/0002*
git status --porcelain
git reset -q --hard
echo broken > f
git commit -qam broken
{ git am -q kept/patches/0002* 2> /dev/null || { echo conflict && git am --abort; }; }
git switch -q start
git gc -q
git count-objects -v | grep -E '^(count|garbage)'
git repack -adq
git prune
git fsck --full
git pack-refs --all
git verify-pack .git/objects/pack/*.idx
git maintenance run --task=commit-graph --quiet
git commit-graph verify
git multi-pack-index write
git log --format=%s -1
git replace -f HEAD~1 HEAD~2
git log --format=%s -2
git replace -d $(git replace) > /dev/null
FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --msg-filter 'tr a-z A-Z' HEAD~1..HEAD > /dev/null
git log -1 --format=%s
git update-ref -d refs/original/refs/heads/start
git fast-export start | git -C kept/bare.git fast-import --quiet --force
git -C kept/bare.git log start -1 --format=%T
git var GIT_COMMITTER_IDENT
git hash-object f
git merge-tree --write-tree start mail > kept/mt || git rev-parse start^{tree}
)sh"},
};

}  // namespace

TEST_CASE("git's porcelain does on a box's private git directory what it does in an ordinary clone") {
  for (uid_t uid : users()) {
    Project p(uid);
    auto outside = [&](const std::string& script, const std::string& folder) {
      return run(Program{.argv = {"/bin/sh", "-c", script}, .env = {{"HOME", p / ""}}, .cwd = p / folder, .uid = p.uid(), .timeout_s = 120});
    };
    auto refs_of_repository = [&] { return outside("git for-each-ref && git config --list --local && git status --porcelain && ls .git/hooks", "r").out; };
    int n = 0;
    for (const Part& part : kParts) {
      std::string name = "part" + std::to_string(++n), script = std::string(kSetting) + part.script + kEnd;
      p.create(name);
      p.git("clone -q . ../" + name + " && git -C ../" + name + " remote rm origin");
      std::string before = refs_of_repository();
      Ended there = outside("exec 2>&1\n" + script, name);
      CAPTURE(uid, part.what, there.out);
      REQUIRE(there.status == 0);
      CHECK(there.out.find("== end\n") != std::string::npos);

      Program boxed = p.h5i({"box", "run", name, "--", "sh", "-c", "exec 2>&1\n" + script});
      boxed.timeout_s = 120;
      Ended here = run(boxed);
      CAPTURE(here.err);
      CHECK(here.status == 0);
      CHECK(here.out == there.out);

      CHECK(refs_of_repository() == before);
      CHECK(outside("git fsck --strict && test -z \"$(ls -A .git/h5i/boxes/human/" + name + "/work/.git)\"", "r").status == 0);
    }
  }
}
