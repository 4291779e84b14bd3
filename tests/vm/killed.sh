#!/usr/bin/env bash
# killed.sh OUT PROGRAM: the kills of test_killed.cpp in a guest, 10 of them or H5I_ENDURANCE_ROUNDS: in a login of its user's; before that a few of
# the spawner alone and of everything at once, in a service whose group the system's manager delegated, as the user and as root.
set -eu
rounds=${H5I_ENDURANCE_ROUNDS:-10}
program=/h5i/${2##*/}
seed=${H5I_ENDURANCE_SEED:+H5I_ENDURANCE_SEED=$H5I_ENDURANCE_SEED}
# service UID ROUNDS VICTIM
service() {
  echo "systemd-run --quiet --wait --pipe --uid=$1 -p Delegate=yes env TMPDIR=/run/maps H5I_BUILD_DIR=/h5i H5I_ENDURANCE_ROUNDS=$2 H5I_VICTIM=$3 $seed $program -d yes"
}
few=$(((rounds + 9) / 10 + 1))
exec "$(dirname "$0")/guest" --timeout $((400 + rounds * 60)) --carry "$1" --carry "$2" \
  --root "modprobe -a tun nf_tables nft_ct nft_reject_inet nft_log nfnetlink_log loop ext4 && echo 8 >/proc/sys/user/max_net_namespaces && truncate -s 200M /run/disk && \
mkfs.ext4 -q /run/disk && mkdir /run/maps && mount -o loop /run/disk /run/maps && chmod 1777 /run/maps" \
  --root "$(service u $few spawner)" --root "$(service root $few spawner)" --root "$(service u $few all)" --root "$(service root $few all)" \
  --user "H5I_BUILD_DIR=/h5i H5I_ENDURANCE_ROUNDS=$rounds $seed $program -d yes"
