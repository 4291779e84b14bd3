#!/bin/bash
# A build of any tier alone configures, tests asked for or not, and makes that tier and no other. Control: a tier that is not there does not.
. "$(dirname "$0")/lib.sh"
configure() { cmake -S "$source" -B "$scratch/build" -G Ninja -DH5I_TESTS=ON "$@"; }
for tiers in workspace process supervised "workspace;supervised" "process;supervised"; do
  rm -rf "$scratch/build"
  expect 0 configure "-DH5I_TIERS=$tiers"
  says "No tests: they need the tiers workspace and process, and H5I_TIERS is $tiers"
  expect 0 ninja -C "$scratch/build" -n
  for tier in workspace process supervised; do
    case ";$tiers;" in
      *";$tier;"*) says "tier-$tier.so" ;;
      *) says_not "tier-$tier.so" ;;
    esac
  done
done
rm -rf "$scratch/build"
expect 1 configure -DH5I_TIERS=nowhere
finish
