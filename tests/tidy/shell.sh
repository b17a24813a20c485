#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shell.sh ROOT: shellcheck over every script under ROOT. Exit 77 = skipped.
set -eu
root=$1
if ! command -v shellcheck >/dev/null 2>&1; then
  echo "skipped: shellcheck is not installed (tools/setup.sh on-demand)"
  exit 77
fi
cd "$root"
scripts=$(find . \( -name build -o -name node_modules -o -name .git -o -name .cache \) -prune -o \
  \( -name '*.sh' -o -path ./.ci/run \) -type f -print)
[ -n "$scripts" ] || { echo "no script found under $root"; exit 1; }
echo "$scripts" | xargs shellcheck -S warning
