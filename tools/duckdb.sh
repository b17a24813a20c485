#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs DuckDB's C library into third_party/node_modules, as third_party/package-lock.json pins it. Only
# `servecast perfdata import` needs it; without npm this says so and changes nothing.
set -eu
cd "$(dirname "$0")/../third_party"

# What npm installed last is noted in a file that is newer than the lock it came from.
if [ -n "$(find node_modules/.package-lock.json -newer package-lock.json 2>/dev/null)" ]; then
  exit 0
fi
if ! command -v npm >/dev/null 2>&1; then
  echo "tools/duckdb.sh: no npm here; 'servecast perfdata import' will not be built (tools/setup.sh perfdata)" >&2
  exit 0
fi
npm ci --ignore-scripts --no-audit --no-fund >&2
