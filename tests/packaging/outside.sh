#!/bin/bash
# A tier that confines, built outside the tree from the installed SDK alone: it proves itself, `auto` takes it when host
# policy ranks it and not before, it runs, and it stops every adversary case of what it claims.
. "$(dirname "$0")/lib.sh"
id=com.example.strict
claims="fs.read fs.write fs.deny fs.private net.mode net.unix resources.mem resources.procs resources.cpu resources.wall resources.fsize resources.output env.pass env.set tools"
sdk=$scratch/sdk host=$scratch/host away=$scratch/away
install_component "$sdk" sdk
# The process tier's own files under another name are a whole tier that sees nothing but the SDK.
mkdir "$away"
cp "$source"/plugins/confined/*.cpp "$source"/plugins/confined/*.hpp "$source"/plugins/tier-process/tier.cpp "$away"
sed -i "s/kProcess{\"process\"/kProcess{\"$id\"/" "$away/request.hpp"
grep -q "$id" "$away/request.hpp" || fail "the copy still goes by the name of the process tier"
cat >"$away/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(strict VERSION 2.1.0 LANGUAGES C CXX)
find_package(h5i-sdk REQUIRED)
find_package(OpenSSL REQUIRED)
find_library(SECCOMP NAMES libseccomp.a REQUIRED)
add_executable(bake bake.cpp filter.cpp)
target_link_libraries(bake PRIVATE h5i::sdk OpenSSL::Crypto "\${SECCOMP}")
add_custom_command(OUTPUT baked.cpp COMMAND bake baked.cpp DEPENDS bake VERBATIM)
h5i_add_plugin(NAME tier-strict ID $id KIND tier
  SOURCES tier.cpp request.cpp host_view.cpp view.cpp limits.cpp plan.cpp host_nodes.cpp probe.cpp canary.cpp verify.cpp network_proof.cpp baked.cpp
  INCLUDE "\${CMAKE_CURRENT_SOURCE_DIR}" HOST_SERVICES spawn cgroup CLAIMS $claims
  POSTURE "Own root, namespaces, Landlock and a system-call allow-list." MAINTAINERS "Elsewhere" PACKAGE tier-strict)
END
expect 0 cmake -S "$away" -B "$scratch/out" -DCMAKE_PREFIX_PATH="$sdk" -DCMAKE_BUILD_TYPE=Release
expect 0 cmake --build "$scratch/out"
built=$(find "$scratch/out" -name tier-strict.so | head -1)
[ -n "$built" ] || fail "no tier-strict.so was built"

# Its user's own: from a file to trusted, still not taken unasked.
install_component "$host" runtime
install_component "$host" tier-workspace
h5i=$host/bin/h5i
expect 0 "$h5i" plugin install "$built"
expect 0 "$h5i" plugin trust "$id"
expect 0 "$h5i" plugin verify "$id"
make_repository "$scratch/repo"
cd "$scratch/repo" || exit 1
expect 1 "$h5i" box create --name unranked
says "tier.none"
mkdir -p "$XDG_CONFIG_HOME/h5i"
printf 'tiers:\n  order: [%s, workspace]\n' "$id" >"$XDG_CONFIG_HOME/h5i/host.yaml"
expect 0 "$h5i" box create --name ranked
says "$id"
expect 0 "$h5i" box capabilities --json
says "$id"
expect 0 "$h5i" box probe --tier "$id"
expect 3 "$h5i" box run ranked -- sh -c 'test ! -e /root && test ! -e "$0" && exit 3' "$scratch/repo/file"
expect 0 "$h5i" box run ranked -- sh -c 'echo more >>file && ! touch /etc/there 2>/dev/null'
expect 0 "$h5i" log verify ranked
expect 0 "$h5i" box inspect ranked --json
says "\"$id\""
# Ranked, but no more trusted: auto takes what else the owner of the machine ranked, says why, and refuses when that is nothing.
expect 0 "$h5i" plugin untrust "$id"
expect 0 "$h5i" box create --name untrusted
says "skipped $id"
says "plugin.untrusted"
says "tier workspace (from auto)"
printf 'tiers:\n  order: [%s]\n' "$id" >"$XDG_CONFIG_HOME/h5i/host.yaml"
expect 1 "$h5i" box create --name alone
says "tier.none"
says "plugin.untrusted"
expect 125 "$h5i" box run ranked -- true
says "plugin.untrusted"

# A package's: every case of what it claims, by the suite that tries this tree's own tiers.
cp "$built" "${built%.so}.plugin.yaml" "$host/lib/h5i/plugins/1/"
chmod 0755 "$scratch" "$host"
out=$(H5I_ADVERSARY_H5I=$h5i H5I_ADVERSARY_TIER=$id H5I_ADVERSARY_CLAIMS=$claims "$build/tests/adversary/test_adversary" '[given]' 2>&1 </dev/null)
[ $? = 0 ] || { fail "the adversary suite"; printf '%s\n' "$out" | tail -40 | sed 's/^/    /'; }
says "findings"
printf '%s\n' "$out" | grep "findings"
# The control: said to hold what the workspace tier does not, that one fails the same suite.
out=$(H5I_ADVERSARY_H5I=$h5i H5I_ADVERSARY_TIER=$id H5I_ADVERSARY_CLAIMS= "$build/tests/adversary/test_adversary" '[given]' 2>&1 </dev/null)
[ $? != 0 ] || fail "the suite passes a tier of which it tries nothing"
finish
