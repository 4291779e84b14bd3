#!/bin/sh
# client.sh BUILD: installs the protocol's own client below BUILD and drives h5i mcp with it. Without node, npm or a registry there is nothing to try.
set -eu
here=$(cd "$(dirname "$0")" && pwd) build=$1 at=$1/mcp-client
command -v node >/dev/null && command -v npm >/dev/null || { echo "SKIP: mcp-client: no node or no npm here"; exit 0; }
mkdir -p "$at"
cp "$here/client.mjs" "$at/client.mjs"
if [ ! -d "$at/node_modules/@modelcontextprotocol/sdk" ]; then
  (cd "$at" && timeout 120 npm install --no-audit --no-fund --prefix "$at" @modelcontextprotocol/sdk@1 >npm.log 2>&1) || { echo "SKIP: mcp-client: the client could not be installed: $(tail -1 "$at/npm.log")"; exit 0; }
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/home" "$scratch/r"
cd "$scratch/r"
export HOME="$scratch/home"
git init -q . && echo a >a && git add a && git -c user.name=t -c user.email=t@example.org commit -qm first
node "$at/client.mjs" "$build/out/bin/h5i" "$scratch/r" "$HOME"
