#!/usr/bin/env bash
# In the guest, as its user: what a running box may reach is changed from the host, and told before and after.
set -u
h5i=/h5i/out/bin/h5i
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
cd "$(mktemp -d)" || exit 1
export HOME=$PWD/home
mkdir home r && cd r || exit 1
git init -q . && git config user.name u && git config user.email u@x.test
mkdir .h5i
cat >.h5i/env.yaml <<'YAML'
profiles:
  live:  { extends: default, isolation: supervised, net: { egress: [api.test] } }
  shut:  { extends: default, isolation: supervised }
  plain: { extends: default, isolation: process }
YAML
# Says what it reaches, each time that the names it is told change.
cat >watch.py <<'PY'
import socket, sys, time
def reached(to, port):
    try:
        s = socket.create_connection((to, port), 4)
        return s.recv(16).decode().strip()
    except OSError: return "refused"
told = None
for _ in range(1200):
    names = [n for n in ("api.test", "mirror.test") if n in open("/etc/hosts").read()]
    if names != told:
        told = names
        print(" ".join(names), "203.0.113.10:443", reached("203.0.113.10", 443), "mirror.test:8443", reached("mirror.test", 8443), "mirror.test:443", reached("mirror.test", 443), flush=True)
    if told == ["mirror.test"]: sys.exit(0)
    time.sleep(0.1)
sys.exit("nothing came")
PY
git add -A && git commit -qm one

for box in live shut plain; do "$h5i" box create --name "$box" --profile "$box" >out 2>err || { cat out err; fail "create $box"; }; done
refused() { # ID WORDS... : the verb is refused for this reason
  local id=$1
  shift
  "$h5i" box egress "$@" >out 2>err && fail "box egress $* was not refused"
  grep -qF "[$id]" err || { cat err; fail "box egress $*: not $id"; }
}
seen() { for ((i = 0; i < 600; i++)); do [[ $(wc -l <told) -ge $1 ]] && return; sleep 0.1; done; fail "the box did not say line $1"; }

refused box.not-running list live
"$h5i" box run live -- python3 watch.py >told 2>err-run &
run=$!
seen 1
"$h5i" box egress list live >out 2>err || { cat err; fail "list"; }
[[ $(cat out) == "api.test:443  203.0.113.10" ]] || { cat out; fail "what list says"; }
# What no box may reach is not added, and a rule that is not there is not removed; nothing of a list is done when one of it cannot be.
refused policy.egress-rule add live 169.254.169.254
refused policy.egress-unresolved add live mirror.test:8443 rebind.test
refused policy.egress-unenforceable add live "*.corp.test"
refused policy.egress-unresolved add live six.test
refused not-found remove live mirror.test
mkdir -p "$HOME/.config/h5i" && printf 'net:\n  egress: [api.test, "mirror.test:8443"]\n' >"$HOME/.config/h5i/host.yaml"
refused policy.above-ceiling add live mirror.test
"$h5i" box egress add live mirror.test:8443 --json >added.json 2>err || { cat added.json err; fail "add"; }
seen 2
"$h5i" box egress add live mirror.test:8443 >out 2>err || fail "add what is there"
grep -q "nothing to change" err || fail "that nothing changed is not told"
"$h5i" box egress remove live api.test >out 2>err || { cat err; fail "remove"; }
wait "$run" || { cat err-run; fail "the run: $?"; }
diff told - <<'TOLD' || fail "what the box reached"
api.test 203.0.113.10:443 world mirror.test:8443 refused mirror.test:443 refused
api.test mirror.test 203.0.113.10:443 world mirror.test:8443 world mirror.test:443 refused
mirror.test 203.0.113.10:443 refused mirror.test:8443 world mirror.test:443 refused
TOLD
refused box.not-running add live mirror.test:8443

# Recorded before and after, and in the receipt with both digests.
[[ $("$h5i" box log live --kind egress-asked --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["records"]))') == 2 ]] || fail "what was asked is not recorded"
"$h5i" box inspect live --json >inspect.json 2>err || fail "inspect"
python3 - <<'PY' || fail "the receipt, or the answer of add"
import json
def find(v):
    if isinstance(v, dict):
        if v.get("schema") == "h5i.network/1": return v
        v = list(v.values())
    if isinstance(v, list):
        for w in v:
            if (r := find(w)): return r
net = find(json.load(open("inspect.json")))
changes = net["changes"]
assert [(c["do"], c["rules"]) for c in changes] == [("add", ["mirror.test:8443"]), ("remove", ["api.test:443"])], changes
assert changes[0]["effective_digest"] == changes[1]["effective_digest_before"] != changes[0]["effective_digest_before"], changes
assert changes[0]["rules_digest"] == changes[1]["rules_before"] and changes[1]["rules_digest"] == net["rules"] and not net["changed"], net
about = {a["about"]: a["packets"] for a in net["allowed"]}
assert about["api.test:443"] >= 6 and about["mirror.test:8443"] >= 6, about
assert {"tcp 203.0.113.11:443", "tcp 203.0.113.10:443"} <= {r["to"] for r in net["refused"]}, net["refused"]
added = json.load(open("added.json"))
assert added["schema"] == "h5i.box-egress/1" and added["changed"] == ["mirror.test:8443"] and len(added["rules"]) == 2, added
assert added["effective_digest_before"] == changes[0]["effective_digest_before"] and added["effective_digest"] == changes[0]["effective_digest"], added
PY
"$h5i" box inspect live 2>/dev/null | grep -q "the host removed api.test:443" || fail "inspect does not tell it to a person"
"$h5i" log verify live --allow-unsealed >/dev/null 2>&1 || fail "the log does not verify"

# A box that was shut stays shut, one without packet rules has none, and from inside a box nothing is changed.
rm "$HOME/.config/h5i/host.yaml"
for box in shut plain; do
  "$h5i" box run "$box" -- sh -c 'echo on; sleep 60' >told 2>err-run &
  run=$!
  seen 1
  if [[ $box == shut ]]; then refused box.no-egress add "$box" mirror.test:8443; else refused policy.egress-unenforceable add "$box" mirror.test:8443; fi
  "$h5i" box stop "$box" --grace 0 >/dev/null 2>&1
  wait "$run"
done
for box in live shut plain; do [[ ! -e $(echo .git/h5i/boxes/human/"$box")/control ]] || fail "$box: a socket is left"; done
[[ $failures -eq 0 ]] && echo egress-live-ok
[[ $failures -eq 0 ]]
