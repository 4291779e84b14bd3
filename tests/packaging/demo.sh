#!/bin/bash
# What scripts/quickstart shows, on an installation below /tmp and from a repository of another user: each attempt of the hostile script
# has its fate, the patch its way out, the log its proof. Control: an installation without the tier shows nothing.
. "$(dirname "$0")/lib.sh"
prefix=$scratch/P
install_component "$prefix" runtime
repository=$scratch/repository
git -c safe.directory='*' -C "$source" rev-parse --is-inside-work-tree >/dev/null 2>&1 || { echo "SKIP: packaging-demo: the source is no repository"; exit 77; }
GIT_CONFIG_GLOBAL=$scratch/trusts git config --global safe.directory '*'
GIT_CONFIG_GLOBAL=$scratch/trusts git clone -q "$source" "$repository" || fail "no clone of the source"
# The scripts as they are here, also before they are committed.
cp "$source/scripts/demo" "$source/scripts/hostile-demo" "$repository/scripts/"
git -C "$repository" -c user.name=T -c user.email=t@example.com commit -qam "scripts as they are" 2>/dev/null
[ "$(id -u)" = 0 ] && chown -R 1000:1000 "$repository"
chmod 755 "$scratch"

expect 125 "$repository/scripts/demo" "$prefix"
says "tier.not-installed"
says_not "everything was as promised"
install_component "$prefix" tier-process
if "$prefix/bin/h5i" box probe --tier process --json 2>/dev/null | grep -q '"state":"impossible"'; then
  echo "SKIP: packaging-process: the tier is impossible on this host"
  [ "$failures" = 0 ] && exit 77
fi

expect 0 "$repository/scripts/demo" "$prefix"
for attempt in "read the private key" "list the home directory of the host" "plant a git hook in the host's repository" \
  "plant a command in the host's git config" "connect to an outside address" "make a user namespace"; do
  says "$attempt: stopped ("
done
says "use the network by address: stopped (bash: line 1: /dev/tcp/192.0.2.1/80: Network is unreachable)"
says "leave a daemon behind: started"
says "fork 10,000 times: stopped after "
says "print terminal escapes: ^[]52;"
for ok in "the daemon is dead" "no escape reaches a person's view" "one byte changed is refused" "the last record removed is refused" \
  "two records swapped is refused" "a record of another box is refused" "git apply --index"; do
  says "$ok"
done
says "because: record 2: "
says "because: record 1: numbered 2"
says "quickstart: everything was as promised"
says_not "SUCCEEDED"
says_not "NOT as promised"
finish
