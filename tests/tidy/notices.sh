#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# notices.sh ROOT: THIRD_PARTY_NOTICES.md names every package that the build and the tests use.
set -eu
root=$1
wrong=0
packages=$("$root/tools/setup.sh" --list build test)
for package in $packages; do
  grep -qw -e "$package" "$root/THIRD_PARTY_NOTICES.md" ||
    { echo "THIRD_PARTY_NOTICES.md does not name $package"; wrong=1; }
done
exit $wrong
