#!/usr/bin/env bash
# In the guest, as root: a network namespace that stands for the internet. It has the addresses of the test, and answers "world" to each who connects
# to a TCP port that it listens on and to each datagram on port 53 or 443, but to a question about a name on port 53 what is to be known of it. Who
# was asked about what is in /run/world.names.
set -euo pipefail
for module in tun veth nf_tables nft_ct nft_reject_inet nft_log nfnetlink_log; do modprobe "$module" 2>/dev/null || true; done
ip netns add world
ip link add outside type veth peer name inside netns world
ip addr add 203.0.113.1/24 dev outside
ip addr add 2001:db8:1::1/64 dev outside nodad
ip link set outside up
ip -n world link set lo up
ip -n world link set inside up
ip -n world addr add 203.0.113.10/24 dev inside
for address in 203.0.113.11 203.0.113.12 198.51.100.0 198.51.100.7 198.51.100.15 198.51.100.16 169.254.169.254; do ip -n world addr add "$address/32" dev inside; done
for last in 10 11; do ip -n world addr add 2001:db8:1::$last/64 dev inside nodad; done
# Ways to write an IPv4 address in an IPv6 one: NAT64, 6to4, Teredo, translated.
for address in 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1 2001::ffff:5601:5601 ::ffff:0:a9fe:a9fe; do ip -n world addr add $address/128 dev inside nodad; done
ip route add default via 203.0.113.10
ip -6 route add default via 2001:db8:1::10
rm -f /etc/resolv.conf
printf 'nameserver 203.0.113.10\noptions timeout:2\n' >/etc/resolv.conf
cat >/run/world.py <<'PY'
import select, socket
known = {"api.test": "203.0.113.10", "mirror.test": "203.0.113.11", "rebind.test": "169.254.169.254", "six.test": "2001:db8:1::10"}
asked = open("/run/world.names", "a", buffering=1)
def answer(q):
    if len(q) < 17 or q[2] & 0x80: return b"world\n"
    labels, i = [], 12
    while q[i]:
        labels.append(q[i + 1:i + 1 + q[i]].decode("ascii", "replace"))
        i += q[i] + 1
    name, kind = ".".join(labels).lower(), q[i + 1:i + 5]
    print(name, file=asked)
    address = known.get(name, "")
    family, wanted = (socket.AF_INET6, b"\0\x1c") if ":" in address else (socket.AF_INET, b"\0\x01")
    data = socket.inet_pton(family, address) if address and kind[:2] == wanted else b""
    head = q[:2] + b"\x85" + (b"\x80" if address else b"\x83") + b"\0\1" + (b"\0\1" if data else b"\0\0") + b"\0\0\0\0" + q[12:i + 5]
    return head + (b"\xc0\x0c" + kind + b"\0\0\0\x3c" + len(data).to_bytes(2, "big") + data if data else b"")
tcp, udp = [], []
for port in (22, 25, 53, 80, 443, 853, 8443):
    s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("::", port))
    s.listen(64)
    tcp.append(s)
# By IPv6 an answer would come from whichever address the kernel likes best.
for to, port in (("::", 53), ("::", 443), ("2001:db8:1::10", 443)):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((to, port))
    udp.append(s)
print("up", flush=True)
while True:
    for s in select.select(tcp + udp, [], [])[0]:
        if s in tcp:
            c, _ = s.accept()
            try: c.sendall(b"world\n")
            except OSError: pass
            c.close()
        else:
            try:
                what, who = s.recvfrom(2048)
                s.sendto(answer(what), who)
            except (OSError, IndexError): pass
PY
systemd-run --quiet --unit=world -p NetworkNamespacePath=/run/netns/world -p Restart=on-failure python3 /run/world.py
# Services of the host's own, which no box may reach unasked; one listens where a resolver would.
systemd-run --quiet --unit=own python3 -c '
import os, socket
os.makedirs("/run/systemd/resolve", exist_ok=True)
os.umask(0)
r = socket.socket(socket.AF_UNIX)
r.bind("/run/systemd/resolve/io.systemd.Resolve")
r.listen(64)
s = socket.create_server(("127.0.0.1", 3000))
while True:
    c, _ = s.accept()
    c.sendall(b"host\n")
    c.close()'
# Who looks into a box's network from outside: commands with the number of a process in it, from whoever asks.
mkdir -m 1777 /run/oracle
cat >/run/oracle.sh <<'SH'
shopt -s nullglob
while :; do
  for ask in /run/oracle/*.ask; do
    read -r pid command <"$ask"
    rm "$ask"
    nsenter --net="/proc/$pid/ns/net" $command >"${ask%.ask}.answer" 2>&1
    chmod 666 "${ask%.ask}.answer"
    mv "${ask%.ask}.answer" "${ask%.ask}.out"
  done
  sleep 0.1
done
SH
systemd-run --quiet --unit=oracle bash /run/oracle.sh
for ((i = 0; i < 100; i++)); do
  timeout 2 bash -c 'exec 3<>/dev/tcp/203.0.113.10/443 && cat <&3' 2>/dev/null | grep -q world && timeout 2 bash -c 'exec 3<>/dev/tcp/127.0.0.1/3000 && cat <&3' 2>/dev/null | grep -q host && exit 0
  sleep 0.2
done
echo "the world did not come up" >&2
exit 1
