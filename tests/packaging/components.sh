#!/bin/bash
# Runtime and one tier alone, in an empty prefix that the runner owns: list, probe, and a box that runs on that tier. Every
# other tier is "not installed", with its package's name.
. "$(dirname "$0")/lib.sh"
tier=${1:?tier}
prefix=$scratch/P
install_component "$prefix" runtime
h5i=$prefix/bin/h5i

# Control: without the tier's component there is none.
expect 0 "$h5i" plugin list
says "no plugin is installed"
install_component "$prefix" "tier-$tier"
[ "$(ls "$prefix"/lib/h5i/plugins/1/*.so | wc -l)" = 1 ] || fail "one tier was installed, found: $(ls "$prefix/lib/h5i/plugins/1")"

expect 0 "$h5i" plugin list
says "usable"
says "container        not installed (package h5i-tier-container)"
expect 0 "$h5i" plugin verify
expect 0 "$h5i" box probe
says "$tier"
expect 0 "$h5i" box doctor --json

repo=$scratch/repo
make_repository "$repo"
cd "$repo" || exit 1

absent=process
[ "$tier" = process ] && absent=workspace
expect 125 "$h5i" box create --name absent --isolation "$absent"
says "tier.not-installed"
says "not installed"
says "h5i-tier-$absent"
says_not "tier.refused"

if ! "$h5i" box probe --tier "$tier" --json 2>/dev/null | grep -q '"state":"impossible"'; then
  expect 0 "$h5i" box create --name one --isolation "$tier"
  expect 0 "$h5i" box run one -- sh -c 'cat file; echo made >new'
  says "hello"
  expect 7 "$h5i" box run one -- sh -c 'exit 7'
  expect 0 "$h5i" box diff one
  says "new"
  # A tier that was there at create and is gone at run: 125, and the package.
  rm "$prefix/lib/h5i/plugins/1/tier-$tier".*
  expect 125 "$h5i" box run one -- true
  says "not installed"
  says "h5i-tier-$tier"
else
  echo "SKIP: packaging-$tier: the tier is impossible on this host"
  [ "$failures" = 0 ] && exit 77
fi
finish
