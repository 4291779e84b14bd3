# Sourced in the guest: a repository of a fresh user, in a folder of its own, and how a check fails.
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
is() { [[ $2 == "$3" ]] || fail "$1: '$2' instead of '$3'"; }
cd "$(mktemp -d)" || exit 1
export HOME=$PWD/home
mkdir home r && cd r || exit 1
git init -q . && git config user.name u && git config user.email u@x.test
mkdir .h5i
