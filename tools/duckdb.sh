#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs DuckDB's C library into third_party/node_modules, as third_party/package-lock.json pins it. Only
# `servecast perfdata import` needs it; without npm this says so and changes nothing.
set -eu
cd "$(dirname "$0")/../third_party"

if [ -f node_modules/.package-lock.json ] && [ node_modules/.package-lock.json -nt package-lock.json ]; then
  exit 0
fi
if ! command -v npm >/dev/null 2>&1; then
  echo "tools/duckdb.sh: no npm here; 'servecast perfdata import' will not be built (tools/setup.sh perfdata)" >&2
  exit 0
fi
npm ci --ignore-scripts --no-audit --no-fund >&2
