#!/bin/bash
# In the guest, as a service: runs what the host asks for on the control port, as root or in a login of the user u. What a command writes
# goes to the ports out and err; each command is answered by "exit N", after its output.
set -u
export LC_ALL=C
ports=/dev/virtio-ports
exec 3<>"$ports/control" 4>"$ports/out" 5>"$ports/err"
as() {
  local work=/root
  if [[ $1 == root ]]; then
    (cd "$work" && exec bash -c "$2")
  else
    su -l "$1" -c "$2"
  fi
}
mkdir -p /h5i
mount -o ro /dev/vdb /h5i
# Libraries that the host's programs link and this image does not have.
for lib in /h5i/lib/*; do
  [[ -e $lib && ! -e /usr/lib/x86_64-linux-gnu/${lib##*/} ]] && cp "$lib" /usr/lib/x86_64-linux-gnu/
done
echo ready >&3
while read -r who bytes <&3; do
  IFS= read -r -N "$bytes" line <&3
  # Through pipes: a port cannot be opened a second time, as /dev/stdout would.
  status=$({ { as "$who" "$line" 3>&- 4>&- 5>&- 6>&- </dev/null 2>&7 | cat >&4; echo "${PIPESTATUS[0]}" >&6; } 7>&1 | cat >&5; } 6>&1)
  echo "exit $status" >&3
done
