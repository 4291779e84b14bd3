#!/usr/bin/env bash
# In the guest, as root: all of a run in a delegated service is killed, the service lives on, and the next command comes from outside it.
set -u
h5i=/h5i/out/bin/h5i
place=/sys/fs/cgroup/system.slice/elsewhere.service
dir=$(mktemp -d) && chmod 755 "$dir" && mkdir "$dir/home" && chown u "$dir" "$dir/home"
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
left() { find $place -maxdepth 1 -name 'h5i-box-*' -printf '%f\n' | sort; }
cat >"$dir/service" <<END
cd $dir && mkdir r && cd r && git init -q . && git config user.name u && git config user.email u@x.test && git commit -q --allow-empty -m one || exit
$h5i box create --name fix --isolation process || exit
$h5i box run fix -- sh -c 'echo up >up; sleep 300' &
while [ ! -e .git/h5i/boxes/human/fix/work/up ]; do sleep 0.1; done
kill -KILL \$(pgrep -u u h5i)
wait
touch $dir/killed
sleep 300
END
systemd-run --quiet --unit=elsewhere --uid=u -p Delegate=yes -E HOME="$dir/home" bash "$dir/service"
for ((i = 0; i < 300; i++)); do [[ -e $dir/killed ]] && break; sleep 0.1; done
[[ -e $dir/killed ]] || fail "the run does not come up"
# The control: it is left, and one that is not ours is beside it.
[[ $(left | wc -l) == 1 ]] || fail "control: nothing is left: $(left)"
mkdir $place/h5i-box-0123456789abcdef
su u -c "cd $dir/r && HOME=$dir/home $h5i box ls" >"$dir/out" 2>&1 || { cat "$dir/out"; fail "box ls"; }
[[ $(left) == h5i-box-0123456789abcdef ]] || fail "after the next command: $(left)"
su u -c "cd $dir/r && HOME=$dir/home $h5i log show fix --kind sweep --json" | grep -q "$place/h5i-box-" || fail "the sweep does not tell of it"
rmdir $place/h5i-box-0123456789abcdef && systemctl stop elsewhere
[[ $failures -eq 0 ]] && echo elsewhere-ok
[[ $failures -eq 0 ]]
