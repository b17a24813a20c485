#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# format.sh ROOT: every C++ file under ROOT is formatted as .clang-format says. Exit 77 = skipped.
set -eu
root=$1
if ! command -v clang-format-19 >/dev/null 2>&1; then
  echo "skipped: clang-format-19 is not installed (tools/setup.sh on-demand)"
  exit 77
fi
cd "$root"
find . \( -name build -o -name node_modules -o -name .git -o -name .cache \) -prune -o \
  \( -name '*.cpp' -o -name '*.hpp' \) -type f -print0 |
  xargs -0 -r clang-format-19 --dry-run -Werror
