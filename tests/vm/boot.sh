#!/usr/bin/env bash
# The guest: it boots, its user has a delegated cgroup v2, what the runner promises is so, and nothing of it is left.
set -u
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/h5i-vm-boot.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/tmp"
export TMPDIR=$scratch/tmp
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
is() { [[ $2 == "$3" ]] || fail "$1: '$2' instead of '$3'"; }
has() { case " $2 " in *" $3 "*) ;; *) fail "$1: '$2' lacks $3" ;; esac; }
value() { sed -n "s/^$1=//p" "$scratch/out"; }

echo carried >"$scratch/word"
cat >"$scratch/as-user" <<'END'
manager=/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service
echo "id=$(id -un)"
echo "session=$(cat /proc/self/cgroup)"
echo "runtime=$XDG_RUNTIME_DIR"
echo "links=$(ls /sys/class/net | tr '\n' ' ')"
echo "controllers=$(cat $manager/cgroup.controllers)"
# A scope of its own, asked of its service manager: controllers for a child, and a limit written there.
systemd-run --user --scope -q -p Delegate=yes bash -c '
  own=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)
  mkdir $own/callers $own/limited && echo $$ >$own/callers/cgroup.procs && echo "+memory +pids +cpu" >$own/cgroup.subtree_control
  echo 8388608 >$own/limited/memory.max && echo "limit=$(cat $own/limited/memory.max)"
  sleep 100 & echo $! >$own/limited/cgroup.procs && echo 1 >$own/limited/cgroup.kill; wait $!; echo "killed=$?"'
# Control: what is not delegated is not its own.
mkdir /sys/fs/cgroup/mine 2>/dev/null && echo "root-group=made" || echo "root-group=refused"
echo to-err >&2
exit 3
END
"$here/guest" --carry "$scratch/word" --carry "$scratch/as-user" --root 'echo "root=$(id -u) $(cat /h5i/word)"; echo x >/h5i/word' \
  >"$scratch/out" 2>"$scratch/err"
status=$?
[[ $status -ne 77 ]] || { cat "$scratch/out"; exit 77; }
is "the status of a line of root's that fails" "$status" 1
is "root, and what it was given" "$(value root)" "0 carried"

"$here/guest" --carry "$scratch/as-user" --root true --user '. /h5i/as-user' --root 'echo never' >"$scratch/out" 2>"$scratch/err"
is "the status of the user's line" $? 3
is "who" "$(value id)" u
has "its session" "$(value session | tr / ' ')" user-1000.slice
is "its runtime folder" "$(value runtime)" /run/user/1000
is "its network" "$(value links)" "lo "
for c in memory pids cpu; do has "what its service manager has" "$(value controllers)" "$c"; done
is "a limit in a group of its own" "$(value limit)" 8388608
is "a group that was killed" "$(value killed)" 137
is "the root group" "$(value root-group)" refused
grep -qx to-err "$scratch/err" || fail "what it wrote to standard error is not there"
grep -q never "$scratch/out" && fail "a line after one that failed was run"
[[ $failures -eq 0 ]] || { cat "$scratch/out" "$scratch/err"; }

"$here/guest" --timeout 1 --user 'echo never' >"$scratch/out" 2>"$scratch/err"
is "the status after the deadline" $? 124

# Killed at once, whatever it does: its machine goes with it, and its files have no names.
"$here/guest" --user 'echo never' >"$scratch/out" 2>"$scratch/err" &
runner=$!
machine=
for ((i = 0; i < 600; i++)); do
  machine=$(cat "/proc/$runner/task/$runner/children" 2>/dev/null)
  [[ $machine && $(cat "/proc/${machine%% *}/comm" 2>/dev/null) == qemu* ]] && break
  sleep 0.1
done
machine=${machine%% *}
[[ $(cat "/proc/$machine/comm" 2>/dev/null) == qemu* ]] || fail "control: no machine was seen"
kill -KILL "$runner"
wait "$runner" 2>/dev/null
for ((i = 0; i < 100; i++)); do [[ -e /proc/$machine ]] || break; sleep 0.1; done
[[ ! -e /proc/$machine ]] || fail "the machine outlived its runner"
is "files that are left" "$(ls -A "$TMPDIR")" ""
[[ $failures -eq 0 ]] && echo ok
[[ $failures -eq 0 ]]
