# Shared by the scripts here: a scratch directory of the runner's own, and checks that say what they saw.
set -u
build=${H5I_BUILD_DIR:?} source=${H5I_SOURCE_DIR:?}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/h5i-packaging-XXXXXX")
trap 'chmod -R u+w "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
export HOME=$scratch/home XDG_STATE_HOME=$scratch/home/state XDG_CONFIG_HOME=$scratch/home/config
export XDG_CACHE_HOME=$scratch/home/cache XDG_RUNTIME_DIR=$scratch/home/run
mkdir -p "$HOME" "$XDG_RUNTIME_DIR"
chmod 0700 "$XDG_RUNTIME_DIR"
failures=0

fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
# expect STATUS COMMAND...: output in $out, both streams.
expect() {
  local want=$1 got
  shift
  out=$("$@" 2>&1 </dev/null)
  got=$?
  if [ "$got" != "$want" ]; then
    fail "exit status $got instead of $want: $*"
    printf '%s\n' "$out" | sed 's/^/    /'
  fi
}
says() { case $out in *"$1"*) ;; *) fail "output lacks \"$1\":"; printf '%s\n' "$out" | sed 's/^/    /' ;; esac; }
says_not() { case $out in *"$1"*) fail "output has \"$1\":"; printf '%s\n' "$out" | sed 's/^/    /' ;; esac; }
install_component() { cmake --install "$build" --prefix "$1" --component "$2" >"$scratch/install.log" 2>&1 || { cat "$scratch/install.log"; fail "component $2 does not install"; }; }
make_repository() {
  mkdir "$1"
  git -C "$1" init -q -b main
  git -C "$1" config user.name T
  git -C "$1" config user.email t@example.com
  echo hello >"$1/file"
  git -C "$1" add file
  git -C "$1" commit -q -m first
}
finish() { [ "$failures" = 0 ] && echo "ok" ; [ "$failures" = 0 ]; exit; }
