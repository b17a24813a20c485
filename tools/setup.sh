#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of the given sections of tools/apt-packages.txt that are missing, as root or with sudo.
#
#   tools/setup.sh build test
#   tools/setup.sh --list build     prints the names and installs nothing
set -eu

here=$(cd "$(dirname "$0")" && pwd)
list_only=false
if [ "${1:-}" = --list ]; then
  list_only=true
  shift
fi
if [ $# -eq 0 ]; then
  echo "usage: tools/setup.sh [--list] SECTION..." >&2
  exit 2
fi

packages_of() {
  awk -v wanted="$1" '
    { sub(/#.*/, ""); gsub(/[ \t\r]+/, "") }
    /^\[.*\]$/ { section = substr($0, 2, length($0) - 2); seen = seen || section == wanted; next }
    $0 != "" && section == wanted { print }
    END { if (!seen) exit 1 }' "$here/apt-packages.txt" ||
    { echo "tools/setup.sh: no section [$1] in tools/apt-packages.txt" >&2; return 1; }
}

packages=
for section in "$@"; do
  names=$(packages_of "$section") || exit 2
  packages="$packages $names"
done
if $list_only; then
  # shellcheck disable=SC2086  # one name a word
  printf "%s\n" $packages
  exit 0
fi

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
  # shellcheck disable=SC2086  # one name a word
  echo "tools/setup.sh: no apt here; install the equivalents of:" $packages >&2
  exit 0  # the configure step names what is really missing
fi

missing=
for package in $packages; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "tools/setup.sh: run this as root, or install sudo; missing packages:$missing" >&2
    exit 1
  fi
  as_root=sudo
fi
apt_get() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" >&2
}
echo "installing:$missing" >&2
apt_get update
# shellcheck disable=SC2086  # one name a word
apt_get install --no-install-recommends $missing
