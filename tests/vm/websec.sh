#!/usr/bin/env bash
# In the guest, as its user: a web session whose wire is in a box at `supervised`. What its rules let through arrives, what they refuse is told as the
# host saw it. The controls are the same session without a box, and the same act with the other rule.
set -u
h5i=/h5i/out/bin/h5i
. /h5i/repository.sh
cat >.h5i/env.yaml <<'YAML'
profiles:
  net: { extends: default, isolation: supervised, net: { egress: ["198.51.100.0/28:80"] } }
YAML
echo x >file && git add -A && git commit -qm one
"$h5i" box create --name net --profile net >out 2>err || { cat out err; fail "create"; }
scope=(--scope http://198.51.100.7 --scope http://203.0.113.10)
"$h5i" websec open in "${scope[@]}" --in net >out 2>&1 || { cat out; fail "open --in"; }
grep -qF "in box human/net (supervised)" out || fail "open does not say where"
"$h5i" websec open out "${scope[@]}" >out 2>&1 || { cat out; fail "open"; }
log=$HOME/.local/state/h5i/websec/in/log.jsonl

# The world says "world" to everybody, which is no HTTP: that it was reached is in the outcome.
reached() { grep -q '"ended":"refused"' <<<"$1" && grep -q '"wire_bytes":[1-9]' <<<"$1"; }
said=$("$h5i" websec send in http://198.51.100.7/ --json 2>&1)
reached "$said" || fail "what the box's rules let through was not reached: $said"
for url in http://198.51.100.7/ http://203.0.113.10/; do
  said=$("$h5i" websec send out "$url" --json 2>&1)
  reached "$said" || fail "outside, $url was not reached: $said"
done

said=$("$h5i" websec send in http://203.0.113.10/ --timeout 5 2>&1)
grep -q connect-failed <<<"$said" || fail "what the box's rules refuse did not fail: $said"
grep -qF "host-observed: the rules of the box refused tcp 203.0.113.10:80" <<<"$said" || fail "that the rules refused it is not told: $said"
grep '"kind":"box-run"' "$log" | grep '"lane":"host-observed"' | grep -qF '"to":"tcp 203.0.113.10:80"' || fail "the log has no word of the host's about it"
grep '"kind":"box-run"' "$log" | head -1 | grep -qF '203.0.113.10' && fail "the host saw what was not there"
[[ $(grep -c '"kind":"send"' "$log") == 2 && $(grep -c '"kind":"send"' "$log") == $(grep '"kind":"send"' "$log" | grep -c '"lane":"engine-claimed"') ]] || fail "the sends are not the engine's"
"$h5i" log verify "$log" >out 2>&1 || { cat out; fail "log verify"; }
[[ $failures == 0 ]] || exit 1
echo "websec in a box: all held"
