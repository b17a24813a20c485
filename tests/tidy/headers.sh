#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# headers.sh COMPILER ROOT STAMP: each header under ROOT/src compiles by itself. A header that is the first include of
# the source beside it has been compiled so by the build; the others are compiled here. STAMP remembers the last good
# state, so that a rerun without changes costs nothing.
set -eu
compiler=$1
root=$2
stamp=$3
cd "$root"
headers=$(find src -name '*.hpp' -type f | LC_ALL=C sort)
[ -n "$headers" ] || { echo "no header found under $root/src"; exit 1; }
state=$(echo "$headers" | xargs cksum | cksum)" $compiler"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$state" ]; then exit 0; fi

alone() {  # the headers that no source includes first
  for header in $headers; do
    for source in "${header%.hpp}.cpp" "${header%.hpp}_test.cpp"; do
      first=$(grep -m1 '^#include' "$source" 2>/dev/null || true)
      [ "$first" != "#include \"${header#src/}\"" ] || continue 2
    done
    echo "$header"
  done
}
alone | xargs -r -n1 -P2 "$compiler" -std=c++20 -fsyntax-only -w -I src \
  -DSERVECAST_SOURCE_DIR='""' -DSERVECAST_BINARY_DIR='""' -x c++
printf '%s' "$state" >"$stamp"
