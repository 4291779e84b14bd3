#!/usr/bin/env bash
# killed.sh OUT PROGRAM: the kills of test_killed.cpp in a guest, 10 of them or H5I_ENDURANCE_ROUNDS.
set -eu
rounds=${H5I_ENDURANCE_ROUNDS:-10}
exec "$(dirname "$0")/guest" --timeout $((240 + rounds * 30)) --carry "$1" --carry "$2" \
  --root "modprobe -a tun nf_tables nft_ct nft_reject_inet nft_log nfnetlink_log && echo 8 >/proc/sys/user/max_net_namespaces" \
  --user "H5I_BUILD_DIR=/h5i H5I_ENDURANCE_ROUNDS=$rounds ${H5I_ENDURANCE_SEED:+H5I_ENDURANCE_SEED=$H5I_ENDURANCE_SEED} /h5i/${2##*/} -d yes"
