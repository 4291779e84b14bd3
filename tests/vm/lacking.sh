#!/usr/bin/env bash
# In the guest, as its user: each of what `supervised` is made of is taken away, one after the other. It is then refused by that name at probe, at create and at
# run of a box that was made before, and nothing runs at any tier instead.
#   lacking.sh components      what a filter can take away
#   lacking.sh manager         afterwards: where root has stopped the user's service manager
set -u
h5i=/h5i/out/bin/h5i without=/h5i/without
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
export HOME=/tmp/lacking
mkdir -p $HOME/r && cd $HOME/r || exit 1

# lacking COMPONENT WRAPPER...
lacking() {
  local component=$1 verb
  shift
  "$@" "$h5i" box probe --tier supervised >probe 2>err
  grep -q "^supervised: impossible" probe && grep -Eq "^ +impossible here: missing (.* )?$component( |\$)" probe || { cat probe err; fail "$component: not named by probe"; }
  for verb in create run; do
    if [[ $verb == create ]]; then "$@" "$h5i" box create --name new --profile net >out 2>err; else "$@" "$h5i" box run made -- echo ran >out 2>err; fi
    [[ $? -ne 0 ]] || fail "$component: $verb went on"
    grep -q ran out && fail "$component: something ran"
    grep -q "\[tier.probe.missing\]" err && grep -Eq "missing ([a-z2-]+, )*$component" err || { cat out err; fail "$component: not named by $verb"; }
  done
  [[ -e .git/h5i/boxes/human/new ]] && fail "$component: a box was made"
}

if [[ $1 == components ]]; then
  # A session as a login makes it, and nothing of ours around it.
  grep -Eq '^0::/user.slice/user-[0-9]+.slice/session-[a-z0-9]+.scope$' /proc/self/cgroup || { cat /proc/self/cgroup; fail "control: no login's session"; }
  git init -q . && git config user.name u && git config user.email u@x.test
  mkdir .h5i
  echo 'profiles: { net: { extends: default, isolation: supervised, net: { egress: ["198.51.100.0/28:80"] } } }' >.h5i/env.yaml
  echo x >file && git add -A && git commit -qm one
  "$h5i" box create --name made --profile net >out 2>err || { cat out err; fail "control: create"; }
  [[ $("$h5i" box run made -- echo ran 2>err) == ran ]] || { cat err; fail "control: run"; }
  for component in user-namespace network-namespace nftables seccomp-user-notification seccomp-filter landlock no-new-privs; do lacking $component $without $component; done
  # The control: with all of them it runs again.
  [[ $("$h5i" box run made -- echo ran 2>err) == ran ]] || { cat err; fail "control: run afterwards"; }
  "$h5i" box doctor | tee out | grep -q '^ok  *cgroup:' || { cat out; fail "control: doctor misses the cgroup"; }
else
  lacking cgroup-v2-delegation env -u XDG_RUNTIME_DIR -u DBUS_SESSION_BUS_ADDRESS
  lacking cgroup-v2-delegation env
  "$h5i" box doctor >out
  grep -A1 '^limited  *cgroup:' out | grep -q 'remedy: have a service manager of your own (systemd --user .*supervised. is refused' || { cat out; fail "no remedy"; }
fi
[[ $failures -eq 0 ]] && echo "lacking-$1-ok"
[[ $failures -eq 0 ]]
