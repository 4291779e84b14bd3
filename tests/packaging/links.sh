#!/bin/bash
# The run path loads what it uses: no executable or kernel tier on it carries libgit2, Poco, yaml-cpp, libcrypto or
# libstdc++ as a shared library. Plugins export exactly one symbol. Control: a program that has such a library is seen.
. "$(dirname "$0")/lib.sh"
heavy='libgit2|Poco|yaml-cpp|libcrypto|libssl|libstdc\+\+'
prefix=$scratch/P
components=(runtime)
for m in "$build"/out/lib/h5i/plugins/1/*.plugin.yaml; do components+=("$(basename "$m" .plugin.yaml)"); done
for c in "${components[@]}"; do install_component "$prefix" "$c"; done

check_links() {
  # ldd fails on a static program, which is as light as it gets.
  local libs
  libs=$(LC_ALL=C ldd "$1" 2>&1)
  echo "$(basename "$1"): $(printf '%s\n' "$libs" | awk '{print $1}' | tr '\n' ' ')"
  case $libs in *"not found"*) fail "$1 lacks a library: $libs" ;; esac
  ! printf '%s\n' "$libs" | grep -Eq "$heavy"
}
light=("$prefix/bin/h5i" "$prefix/libexec/h5i/h5i-host" "$prefix/libexec/h5i/h5i-init" "$prefix/libexec/h5i/h5i-canary")
for f in "${light[@]}" "$prefix"/lib/h5i/plugins/1/tier-*.so; do
  [ -f "$f" ] || { fail "$f is not installed"; continue; }
  check_links "$f" || fail "$f loads what the run path may not"
done
check_links "$(command -v cmake)" && fail "control: cmake's libraries were not seen"

plugins=0
for f in "$prefix"/lib/h5i/plugins/1/*.so; do
  plugins=$((plugins + 1))
  exported=$(nm -D --defined-only --format=posix "$f" | awk '{print $1, $2}')
  case $exported in
    "h5i_plugin_entry_v1 D" | "h5i_plugin_entry_v1 R") ;;
    *) fail "$f exports: $exported" ;;
  esac
  # What was installed is what the manifest describes.
  grep -q "\"sha256\":\"$(sha256sum "$f" | cut -d' ' -f1)\"" "${f%.so}.plugin.yaml" || fail "$f is not what its manifest describes"
done
[ "$plugins" -ge 1 ] || fail "no plugin was installed"
# Nothing of a developer's machine is in what is shipped.
for f in "${light[@]}" "$prefix"/libexec/h5i/* "$prefix"/lib/h5i/plugins/1/*.so; do
  readelf -dW "$f" 2>/dev/null | grep -Eq 'RPATH|RUNPATH' && fail "$f carries a search path"
done
finish
