#!/usr/bin/env bash
# In the guest: a change of a running box's rules fails, and then the rules before it cannot be put back either (tests/spawn/faulty_net.cpp in the place
# of h5i-net). The verb, the record, the run and its receipt say that nobody knows, and the box ends.
#   egress_unknown.sh install      as root: an h5i with that h5i-net
#   egress_unknown.sh              as its user
set -u
h5i=/run/faulty/bin/h5i
if [[ ${1-} == install ]]; then
  # A place of its own: /run is small, and a service manager that cannot write there makes no scope.
  mkdir /run/faulty && mount -t tmpfs -o size=400M,mode=755 faulty /run/faulty && cp -r /h5i/out/. /run/faulty && cp /h5i/h5i-net-faulty /run/faulty/libexec/h5i/h5i-net
  exit
fi
. /h5i/repository.sh
echo 'profiles: { live: { extends: default, isolation: supervised, net: { egress: [api.test] } } }' >.h5i/env.yaml
git add -A && git commit -qm one
"$h5i" box create --name live --profile live >out 2>err || { cat out err; fail "create"; }

# changed PORT: what becomes of a run whose rules are changed by a rule with that port.
changed() {
  rm -f told
  "$h5i" box run live -- sh -c 'echo on; for i in $(seq 300); do [ -e end ] && exit 3; sleep 0.1; done' >told 2>err-run &
  run=$!
  for ((i = 0; i < 600; i++)); do [[ -s told ]] && break; sleep 0.1; done
  [[ -s told ]] || { cat err-run; fail "$1: the run does not start"; }
  "$h5i" box egress add live "mirror.test:$1" --json >said.json 2>err
  verb=$?
  echo x >.git/h5i/boxes/human/live/work/end
  wait "$run"
  status=$?
  rm -f .git/h5i/boxes/human/live/work/end
  "$h5i" log show live --json >records 2>/dev/null
}
kinds() { grep -o '"kind":"egress-[a-z]*"' records | sort | uniq -c | sed 's/^ *//; s/"kind"://; s/"//g' | tr '\n' ' '; }

# The control: the names cannot be told, and the rules before are back. The box goes on.
changed 9100
[[ $verb == 1 && $status == 3 ]] || { cat err err-run; fail "control: the verb $verb, the run $status"; }
grep -qF '"id":"tier.setup-failed"' said.json || { cat said.json err; fail "control: why is not told"; }
[[ $(kinds) == "1 egress-asked 1 egress-refused " ]] || fail "control: records: $(kinds)"

for port in 9101 9102; do
  before=$(kinds)
  changed $port
  [[ $verb == 1 && $status == 125 ]] || { cat err err-run; fail "$port: the verb $verb, the run $status"; }
  grep -qF '"id":"run.violation"' said.json && grep -qF 'is not known; the box is ended' said.json && grep -qF 'could not be put back' said.json || { cat said.json err; fail "$port: the verb does not say that nobody knows"; }
  "$h5i" box inspect live --json >inspect.json 2>err-inspect || fail "$port: inspect"
  grep -qF '"status":"violation"' inspect.json && grep -qF 'is not known; the box is ended' inspect.json || { cat inspect.json; fail "$port: the receipt does not say so"; }
  grep -qF '"changes"' inspect.json && fail "$port: the receipt tells of a change"
  grep -qF '[run.violation]' err-run || { cat err-run; fail "$port: the run does not say so"; }
done
[[ $(kinds) == "3 egress-asked 1 egress-refused 2 egress-unknown " ]] || fail "records: $(kinds)"
"$h5i" log verify live --allow-unsealed >/dev/null 2>&1 || fail "the log does not verify"
for name in slirp4netns pasta; do pgrep -u "$(id -u)" "$name" >/dev/null && fail "a way out is left: $name"; done
[[ $failures -eq 0 ]] && echo egress-unknown-ok
[[ $failures -eq 0 ]]
