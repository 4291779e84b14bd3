#!/usr/bin/env bash
# In the guest, as its user or as root: what a box at `supervised` reaches and what it does not, each act with its control outside.
#   [UPLINK=NAME] supervised.sh [short]      short: what may differ by who runs it; NAME: what carries the packets, slirp4netns or pasta
set -u
h5i=/h5i/out/bin/h5i
. /h5i/repository.sh
cat >.h5i/env.yaml <<'YAML'
profiles:
  net:    { extends: default, isolation: supervised, net: { egress: [api.test, "mirror.test:8443", "198.51.100.0/28:80"] } }
  none:   { extends: default, isolation: supervised }
  rebind: { extends: default, isolation: supervised, net: { egress: [rebind.test] } }
  suffix: { extends: default, isolation: supervised, net: { egress: ["*.corp.test"] } }
  host:   { extends: default, isolation: supervised, net: { loopback: [3000] } }
  six:    { extends: default, isolation: supervised, net: { egress: [six.test] } }
YAML
echo x >file && git add -A && git commit -qm one

mounted() { awk '$5 !~ "^/run/|/binfmt_misc$" { print $5 }' /proc/self/mountinfo; }
mounted >mounts

# tcp ADDRESS PORT, udp ADDRESS PORT: "world" when somebody answered.
cat >dial.py <<'PY'
import socket, sys
for word in sys.argv[1:]:
    kind, to, port = word.split(",")
    try:
        a = socket.getaddrinfo(to, int(port), type=socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)[0]
        s = socket.socket(a[0], a[1])
        s.settimeout(4)
        s.connect(a[4])
        if kind == "udp": s.send(b"x")
        print(word, s.recv(16).decode().strip() or "nothing")
    except OSError as e:
        print(word, "refused")
PY
git add -A && git commit -qm two

acts=(tcp,api.test,443 tcp,mirror.test,8443 tcp,198.51.100.7,80
  tcp,api.test,80 tcp,mirror.test,443 tcp,203.0.113.12,443 tcp,198.51.100.16,80 tcp,::ffff:203.0.113.11,853 tcp,2001:db8:1::10,443 udp,2001:db8:1::10,443
  udp,203.0.113.10,443 udp,203.0.113.10,53 tcp,203.0.113.10,853 tcp,169.254.169.254,80 tcp,192.0.2.2,3000 tcp,192.0.2.2,22 udp,192.0.2.3,53)
# The control: outside, the world answers to all of them (the last three are the uplink's own).
for act in "${acts[@]:0:14}"; do is "outside: $act" "$(python3 dial.py "$act")" "$act world"; done

"$h5i" box create --name net --profile net >out 2>err || { cat out err; fail "create"; }
"$h5i" box run net -- python3 dial.py "${acts[@]}" >out 2>err || { cat out err; fail "run"; }
for act in "${acts[@]:0:3}"; do grep -qxF "$act world" out || fail "$act was not let through"; done
for act in "${acts[@]:3}"; do grep -qxF "$act refused" out || fail "$act was not refused"; done
"$h5i" box inspect net >seen 2>&1 || fail "inspect"
for rule in api.test:443 mirror.test:8443 198.51.100.0/28:80; do grep -Eq "let through: $rule: ([3-9]|[1-9][0-9]+) packets" seen || fail "packets to $rule are not told"; done
for to in "tcp 203.0.113.10:80" "tcp 203.0.113.11:443" "tcp 203.0.113.12:443" "tcp 198.51.100.16:80" "tcp 203.0.113.11:853" "tcp [2001:db8:1::10]:443" "udp [2001:db8:1::10]:443" "udp 203.0.113.10:443" \
  "udp 203.0.113.10:53" "tcp 203.0.113.10:853" "tcp 169.254.169.254:80" "tcp 192.0.2.2:3000" "tcp 192.0.2.2:22" "udp 192.0.2.3:53"; do
  grep -qF "refused: $to: " seen || fail "that $to was refused is not told"
done
grep -q "net.name-level" seen || fail "net.name-level is not in what is not enforced"
grep -q "net.landlock-ports" seen && grep -qF "(ABI 2) has no rules for the network" seen || fail "what Landlock lacks here is not told"
grep -Eq "resources.(mem|procs)" seen && fail "a limit is not held"
grep -q "the rules were not what they were" seen && fail "the rules changed"
grep -qF "\"path\":\"/usr/bin/${UPLINK:=slirp4netns}\",\"version\":\"$UPLINK " .git/h5i/boxes/human/net/log.jsonl || fail "the receipt does not name $UPLINK as the way out"
grep -qE "tier +supervised" seen && grep -qE "read from +cgroup" seen || fail "tier or usage"
[[ $failures -eq 0 ]] || cat err seen
"$h5i" log verify net >/dev/null 2>&1 || "$h5i" log verify net --allow-unsealed >/dev/null 2>&1 || fail "the log does not verify"

# Nobody inside changes what holds it; who only looks at its addresses may. What is held is seen from outside, by nft in the box's network.
cat >meddle.py <<'PY'
import errno, os, socket, time
def wait(name):
    while not os.path.exists(name): time.sleep(0.05)
def tried(what, f):
    try: f(); print(what, "done")
    except OSError as e: print(what, errno.errorcode.get(e.errno, e.errno))
open("ready", "w").close()
wait("go")
print("getifaddrs", os.popen("hostname -I").read().split()[:1], flush=True)  # which asks it, and nobody else
tried("netfilter", lambda: socket.socket(16, 3, 12))
for protocol in (4, 6, 15, 16, 21): tried("netlink-%d" % protocol, lambda: socket.socket(16, 3, protocol))
tried("packet", lambda: socket.socket(17, 3, 0))
tried("raw", lambda: socket.socket(2, 3, 1))
tried("icmp", lambda: socket.socket(2, 2, 1))
tried("mptcp", lambda: socket.socket(2, 1, 262))
tried("sctp", lambda: socket.socket(2, 1, 132))
tried("vsock", lambda: socket.socket(40, 1, 0))
for words in (["ip", "route", "add", "203.0.113.12", "dev", "h5i0"], ["ip", "addr", "add", "192.0.2.9/24", "dev", "h5i0"], ["ip", "link", "set", "h5i0", "down"],
              ["ip", "link", "add", "x", "type", "dummy"], ["nft", "flush", "ruleset"], ["nft", "add", "table", "inet", "x"]):
    print(" ".join(words[:3]), "done" if os.system("PATH=$PATH:/usr/sbin:/sbin " + " ".join(words) + " >/dev/null 2>&1") == 0 else "refused", flush=True)
print("interfaces", len(socket.if_nameindex()), flush=True)
open("done", "w").close()
wait("end")
PY
git add -A && git commit -qm three
# ask NAME COMMAND: what root's oracle says, of the network of the box that runs meddle.py
ask() {
  echo "$(pgrep -xf 'python3 meddle.py') $2" >"/run/oracle/$1.new" && mv "/run/oracle/$1.new" "/run/oracle/$1.ask"
  for ((i = 0; i < 200; i++)); do [[ -e /run/oracle/$1.out ]] && return; sleep 0.1; done
  fail "nobody answers for $1"
}
wait_for() { for ((i = 0; i < 600; i++)); do [[ -e $1 ]] && return; kill -0 $run 2>/dev/null || break; sleep 0.1; done; fail "$1 does not come"; }
rm -f /run/oracle/*
"$h5i" box create --name meddle --profile net >out 2>err || { cat out err; fail "create meddle"; }
work=$PWD/.git/h5i/boxes/human/meddle/work
"$h5i" box run meddle -- python3 meddle.py >out 2>err &
run=$!
wait_for "$work/ready"
ask before "nft -s list ruleset"
: >"$work/go"
wait_for "$work/done"
ask after "nft -s list ruleset"
grep -q "^table inet h5i {" /run/oracle/before.out && grep -q "203.0.113.10 . 443" /run/oracle/before.out || { cat /run/oracle/before.out; fail "control: the rules are not seen"; }
cmp -s /run/oracle/before.out /run/oracle/after.out || { diff /run/oracle/before.out /run/oracle/after.out; fail "the rules changed"; }
# The control: a change is seen, and told.
ask spoil "nft add rule inet h5i output accept"
ask spoilt "nft -s list ruleset"
cmp -s /run/oracle/before.out /run/oracle/spoilt.out && { cat /run/oracle/spoil.out; fail "control: a change is not seen"; }
: >"$work/end"
wait $run || { cat err; fail "run meddle"; }
for what in netfilter netlink-{4,6,15,16,21} packet raw icmp mptcp sctp vsock "ip route add" "ip addr add" "ip link set" "ip link add" "nft flush ruleset" "nft add table"; do
  grep -q "^$what " out || fail "$what was not tried"
  grep -q "^$what done" out && fail "$what was done"
done
is "getifaddrs" "$(sed -n 's/^getifaddrs //p' out)" "['192.0.2.100']"
# Each kind of socket that was refused is counted; what ip and nft asked for besides is more.
[[ $("$h5i" box inspect meddle --json 2>/dev/null | grep -o '"count":[0-9]*,"errno":"[A-Z]*","number":[0-9]*,"sockets":' | grep -o '[0-9]*' | head -n 1) -ge 12 ]] || fail "refused sockets are not counted"
# So that the receipt says which: a refused socket has no destination, since none was named yet.
"$h5i" box inspect meddle --json 2>/dev/null >inspected
for kind in "inet dgram icmp" "inet raw icmp" "inet stream mptcp" "vsock stream" "netlink raw netfilter"; do
  grep -q "\"count\":[0-9]*,\"kind\":\"$kind\"" inspected || { cat inspected; fail "the receipt does not count $kind"; }
done
"$h5i" box inspect meddle 2>&1 | grep -q "inet dgram icmp 1" || fail "inspect does not tell of icmp"
is "interfaces" "$(sed -n 's/^interfaces //p' out)" 2
"$h5i" box inspect meddle 2>&1 | grep -q "the rules were not what they were" || fail "control: that the rules were changed from outside is not told"
[[ $failures -eq 0 ]] || cat out err

if [[ ${1-} != short ]]; then
# No name leaves a box; outside the same question is heard.
ask_for() { python3 -c "import socket,sys
try: socket.getaddrinfo(sys.argv[1], 80)
except OSError: pass" "$1"; }
ask_for control.test
"$h5i" box run net -- python3 -c "import socket
for n in ('secret.test', 'secret.api.test'):
  try: socket.getaddrinfo(n, 80)
  except OSError: pass
print(socket.getaddrinfo('api.test', 80)[0][4][0])" >out 2>err || { cat err; fail "names in a box"; }
is "a name of the box's own" "$(cat out)" 203.0.113.10
grep -qx control.test /run/world.names || fail "control: a name that was asked outside is not heard"
grep -q secret /run/world.names && fail "a name left the box"

# Without a rule nothing is reached; the host's loopback at the ports that are named, and no other.
"$h5i" box create --name none --profile none >out 2>err || { cat out err; fail "create none"; }
is "no rule" "$("$h5i" box run none -- python3 dial.py tcp,203.0.113.10,443 2>err)" "tcp,203.0.113.10,443 refused"
"$h5i" box create --name host --profile host >out 2>err || { cat out err; fail "create host"; }
is "the host's loopback" "$("$h5i" box run host -- python3 dial.py tcp,192.0.2.2,3000 tcp,192.0.2.2,22 tcp,203.0.113.10,443 2>err | tr '\n' ' ')" \
  "tcp,192.0.2.2,3000 host tcp,192.0.2.2,22 refused tcp,203.0.113.10,443 refused "

# By IPv6, which a box has when a rule names such an address.
"$h5i" box create --name six --profile six >out 2>err || { cat out err; fail "create six"; }
is "by IPv6" "$("$h5i" box run six -- python3 dial.py tcp,six.test,443 tcp,six.test,80 tcp,2001:db8:1::11,443 tcp,203.0.113.10,443 2>err | tr '\n' ' ')" \
  "tcp,six.test,443 world tcp,six.test,80 refused tcp,2001:db8:1::11,443 refused tcp,203.0.113.10,443 refused "
"$h5i" box inspect six >seen 2>&1
for to in "tcp [2001:db8:1::10]:80" "tcp [2001:db8:1::11]:443" "tcp 203.0.113.10:443"; do grep -qF "refused: $to: " seen || fail "that $to was refused is not told"; done

# Names that lead where no box may go, and names that are no host.
"$h5i" box create --name rebind --profile rebind >out 2>err && fail "a name that leads to metadata made a box"
[[ $(wc -l <err) == 3 ]] && grep -q "\[policy.egress-unresolved\]" err && grep -q "^  because: " err && grep -q "^  see: " err || { cat err; fail "why not is not told in three lines"; }
"$h5i" box create --name suffix --profile suffix >out 2>err && fail "a suffix made a box"
grep -q "policy.egress-unenforceable" err || { cat err; fail "why no suffix is not told"; }
fi

# Nothing is left of any of it, and nothing of the host's was mounted or taken off; what is below /run, or mounted when it is looked at, is
# the service manager's.
mounted >mounts.after
cmp -s mounts mounts.after || { diff mounts mounts.after; fail "the host's mounts changed"; }
sleep 1
for name in slirp4netns pasta h5i; do is "processes that are left, $name" "$(pgrep -u "$(id -u)" -c "$name" || true)" 0; done
[[ $failures -eq 0 ]] && echo supervised-ok
[[ $failures -eq 0 ]]
