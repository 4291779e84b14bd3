#!/bin/bash
# An outside plugin: the template builds against the installed SDK alone, passes its own test, and goes from a file to
# trusted by `plugin install` and `trust`; before that it is refused.
. "$(dirname "$0")/lib.sh"
sdk=$scratch/sdk host=$scratch/host
install_component "$sdk" sdk
cp -r "$sdk/share/h5i-sdk/template" "$scratch/template"
expect 0 cmake -S "$scratch/template" -B "$scratch/out" -DCMAKE_PREFIX_PATH="$sdk" -DCMAKE_BUILD_TYPE=Release
expect 0 cmake --build "$scratch/out"
expect 0 ctest --test-dir "$scratch/out" --output-on-failure
says "100% tests passed"
case $(cat "$scratch/template/CMakeLists.txt" "$scratch/template"/*.cpp) in *"$source"*) fail "the template knows the source tree" ;; esac

install_component "$host" runtime
plugin=$scratch/out/lib/h5i/plugins/1/tier-my
[ -f "$plugin.so" ] || plugin=$scratch/out/out/lib/h5i/plugins/1/tier-my
expect 0 "$host/bin/h5i" plugin inspect "$plugin.plugin.yaml"
says "com.example.my"
says "exports   h5i_plugin_entry_v1"
expect 1 "$host/bin/h5i" plugin trust com.example.my
says "not-found"
expect 0 "$host/bin/h5i" plugin install "$plugin.so"
expect 0 "$host/bin/h5i" plugin list
says "plugin.untrusted"
expect 1 "$host/bin/h5i" plugin verify com.example.my
expect 0 "$host/bin/h5i" plugin trust com.example.my
expect 0 "$host/bin/h5i" plugin verify com.example.my
says "in order"
expect 0 "$host/bin/h5i" box probe --tier com.example.my
says "com.example.my"
# Chosen by its id, and it runs; auto never takes it, because no host policy names it.
make_repository "$scratch/repo"
cd "$scratch/repo" || exit 1
expect 0 "$host/bin/h5i" box create --name mine --isolation com.example.my
expect 0 "$host/bin/h5i" box run mine -- sh -c 'cat file'
says "hello"
expect 3 "$host/bin/h5i" box run mine -- sh -c 'exit 3'
expect 0 "$host/bin/h5i" box inspect mine --json
says "com.example.my"
expect 1 "$host/bin/h5i" box create --name other
says "tier.none"
expect 0 "$host/bin/h5i" plugin untrust com.example.my
# From now on it is not mapped: the run is refused, and says why.
expect 125 "$host/bin/h5i" box run mine -- true
says "plugin.untrusted"
expect 1 "$host/bin/h5i" plugin verify com.example.my
says "plugin.untrusted"
expect 0 "$host/bin/h5i" plugin remove com.example.my
expect 1 "$host/bin/h5i" plugin verify com.example.my
says "not-found"
finish
