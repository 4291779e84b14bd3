#!/usr/bin/env bash
# scripts/install-packages takes the options that it has, and refuses others before it looks at anything.
. "$(dirname "$0")/lib.sh"

expect 2 "$source/scripts/install-packages" --tests
says "there is no option --tests"
expect 2 "$source/scripts/install-packages" --test --bench
says "at most one option"
expect 0 "$source/scripts/install-packages" --help
says "--test"
says "--bench"
finish
