#!/usr/bin/env bash
# In the guest, as its user or as root: what a running box may reach is changed from the host, and told before and after.
#   egress_live.sh [short]      short: what may differ by who runs it
set -u
short=${1-}
boxes=(live)
[[ $short == short ]] || boxes+=(shut plain)
h5i=/h5i/out/bin/h5i
. /h5i/repository.sh
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

for box in "${boxes[@]}"; do "$h5i" box create --name "$box" --profile "$box" >out 2>err || { cat out err; fail "create $box"; }; done
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
if [[ $short != short ]]; then
  refused policy.egress-unresolved add live mirror.test:8443 rebind.test
  refused policy.egress-unenforceable add live "*.corp.test"
  refused policy.egress-unresolved add live six.test
  refused not-found remove live mirror.test
fi
mkdir -p "$HOME/.config/h5i" && printf 'net:\n  egress: [api.test, "mirror.test:8443"]\n' >"$HOME/.config/h5i/host.yaml"
refused policy.above-ceiling add live mirror.test
"$h5i" box egress add live mirror.test:8443 --json >added.json 2>err || { cat added.json err; fail "add"; }
seen 2
"$h5i" box egress add live mirror.test:8443 >out 2>err || fail "add what is there"
grep -q "nothing to change" err || fail "that nothing changed is not told"
"$h5i" box egress remove live api.test >out 2>err || { cat err; fail "remove"; }
wait "$run" || { status=$?; cat err-run; fail "the run: $status"; }
diff told - <<'TOLD' || fail "what the box reached"
api.test 203.0.113.10:443 world mirror.test:8443 refused mirror.test:443 refused
api.test mirror.test 203.0.113.10:443 world mirror.test:8443 world mirror.test:443 refused
mirror.test 203.0.113.10:443 refused mirror.test:8443 world mirror.test:443 refused
TOLD
refused box.not-running add live mirror.test:8443

# Recorded before and after, and in the receipt with both digests.
[[ $("$h5i" log show live --kind egress-asked --json | grep -o '"kind":"egress-asked"' | wc -l) == 2 ]] || fail "what was asked is not recorded"
"$h5i" box inspect live --json >inspect.json 2>err || fail "inspect"
part() { grep -o "$1" inspect.json | head -n 1 | grep -o '"[0-9a-f]\{64\}"'; } # REGEX: the digests in what it finds
h='"[0-9a-f]\{64\}"'
mapfile -t added < <(part "\"do\":\"add\",\"effective_digest\":$h,\"effective_digest_before\":$h")
mapfile -t removed < <(part "\"do\":\"remove\",\"effective_digest\":$h,\"effective_digest_before\":$h")
mapfile -t rules_added < <(part "\"rules\":\[\"mirror.test:8443\"\],\"rules_before\":$h,\"rules_digest\":$h")
mapfile -t rules_removed < <(part "\"rules\":\[\"api.test:443\"\],\"rules_before\":$h,\"rules_digest\":$h")
[[ ${#added[@]} == 2 && ${added[0]} != "${added[1]}" && ${removed[1]} == "${added[0]}" ]] || fail "effective digests: ${added[*]} ${removed[*]}"
[[ ${#rules_added[@]} == 2 && ${rules_removed[0]} == "${rules_added[1]}" ]] || fail "digests of the rules: ${rules_added[*]} ${rules_removed[*]}"
grep -qF "\"rules\":${rules_removed[1]},\"schema\":\"h5i.network/1\"" inspect.json || fail "the rules at the end are not those of the last change"
grep -qF '"changed":false,' inspect.json || fail "the rules changed unasked"
for what in '"effective_digest":'"${added[0]}" '"effective_digest_before":'"${added[1]}" '"changed":["mirror.test:8443"]' '"schema":"h5i.box-egress/1"'; do grep -qF "$what" added.json || fail "add does not say $what"; done
"$h5i" box inspect live >seen 2>&1
for rule in api.test:443 mirror.test:8443; do grep -Eq "let through: $rule: ([6-9]|[1-9][0-9]+) packets" seen || fail "packets to $rule are not told"; done
for to in "tcp 203.0.113.11:443" "tcp 203.0.113.10:443"; do grep -qF "refused: $to: " seen || fail "that $to was refused is not told"; done
"$h5i" box inspect live 2>/dev/null | grep -q "the host removed api.test:443" || fail "inspect does not tell it to a person"
"$h5i" log verify live --allow-unsealed >/dev/null 2>&1 || fail "the log does not verify"

# A box that was shut stays shut, one without packet rules has none, and from inside a box nothing is changed.
rm "$HOME/.config/h5i/host.yaml"
for box in "${boxes[@]:1}"; do
  "$h5i" box run "$box" -- sh -c 'echo on; sleep 60' >told 2>err-run &
  run=$!
  seen 1
  if [[ $box == shut ]]; then refused box.no-egress add "$box" mirror.test:8443; else refused policy.egress-unenforceable add "$box" mirror.test:8443; fi
  "$h5i" box stop "$box" --grace 0 >/dev/null 2>&1
  wait "$run"
done
for box in "${boxes[@]}"; do [[ ! -e $(echo .git/h5i/boxes/human/"$box")/control ]] || fail "$box: a socket is left"; done
[[ $failures -eq 0 ]] && echo egress-live-ok
[[ $failures -eq 0 ]]
