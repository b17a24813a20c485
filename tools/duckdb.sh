#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs DuckDB's C library into build/third_party, as third_party/package-lock.json pins it. Only
# `servecast perfdata import` needs it; without npm this says so and changes nothing.
set -eu
cd "$(dirname "$0")/.."

pinned=third_party/package-lock.json
installed=build/third_party
if [ -d "$installed/node_modules/duckdb" ] && cmp -s "$pinned" "$installed/package-lock.json"; then
  exit 0
fi
if ! command -v npm >/dev/null 2>&1; then
  echo "tools/duckdb.sh: no npm here; 'servecast perfdata import' will not read Parquet (tools/setup.sh perfdata)" >&2
  exit 0
fi
mkdir -p "$installed"
cp third_party/package.json "$installed"
# The lock comes last, so that an interrupted installation is repeated.
cp "$pinned" "$installed/npm-shrinkwrap.json"
npm ci --prefix "$installed" --ignore-scripts --no-audit --no-fund >&2
cp "$pinned" "$installed"
