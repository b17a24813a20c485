#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows that the two commands of the README need nothing that they do not install: makes a minimal Debian 12 in a
# folder, clones the last commit into it and runs ./quickstart.sh and ./test.sh there.
#
#   tools/bare-check.sh DIRECTORY [--keep] [--quick]
#
# DIRECTORY must not exist yet; it is removed at the end unless --keep is given. --quick runs ./test.sh --quick. Needs root, debootstrap and an apt
# mirror; the mirror, proxy and certificates are those of this machine. Exit 77 = cannot be done here.
set -eu

die() { echo "tools/bare-check.sh: $1" >&2; exit "${2:-2}"; }

usage="usage: tools/bare-check.sh DIRECTORY [--keep] [--quick]"
[ $# -ge 1 ] || die "$usage"
root=$1
shift
keep=false
quick=
for option in "$@"; do
  case $option in
    --keep) keep=true ;;
    --quick) quick=--quick ;;
    *) die "$usage" ;;
  esac
done
repository=$(cd "$(dirname "$0")/.." && pwd)
suite=bookworm

[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 77; }
for program in debootstrap chroot git; do
  command -v "$program" >/dev/null 2>&1 ||
    { echo "skipped: $program is not installed (tools/setup.sh on-demand)"; exit 77; }
done
# shellcheck disable=SC2016  # the $(...) are fields for apt-get
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
  awk -v suite=$suite '$2 == suite { print $1; exit }')
[ -n "$mirror" ] || { echo "skipped: apt has no source for $suite here"; exit 77; }
[ ! -e "$root" ] || die "$root exists already"

mounted=
clean_up() {
  code=$?
  trap - EXIT INT TERM
  for place in $mounted; do umount "$place" || { echo "left mounted: $place" >&2; exit 1; }; done
  $keep || rm -rf --one-file-system "$root"
  exit $code
}
trap clean_up EXIT INT TERM

started=$(date +%s)
report() { echo "== $1 ($(($(date +%s) - started)) s)"; }

report "debootstrap $suite"
mkdir -p "$root"
root=$(cd "$root" && pwd)
debootstrap --variant=minbase --include=ca-certificates $suite "$root" "$mirror" >"$root.log" 2>&1 ||
  { tail -n 20 "$root.log"; rm -f "$root.log"; die "debootstrap failed" 1; }
rm -f "$root.log"

# How this machine reaches its mirror: sources, proxy settings, name servers, certificates.
rm -f "$root/etc/apt/sources.list"
# shellcheck disable=SC2016
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
  awk -v suite=$suite '$3 ~ "^" suite { print }' | sort -u >"$root/etc/apt/sources.list"
apt-config dump | grep -E '^Acquire::(http|https|ftp)::' >"$root/etc/apt/apt.conf.d/90machine" || true
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt" 2>/dev/null || true

for place in proc dev; do
  mount --bind "/$place" "$root/$place"
  mounted="$root/$place $mounted"
done

report "clone"
git clone -q --no-hardlinks "$repository" "$root/opt/servecast"
git -C "$root/opt/servecast" log -1 --format='%h %s'

inside() {
  report "$*"
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/opt LC_ALL=C \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    ${no_proxy:+no_proxy="$no_proxy"} \
    chroot "$root" sh -c 'cd /opt/servecast && exec "$@"' sh "$@"
}
inside ./quickstart.sh
inside ./test.sh ${quick:+"$quick"}
report "both commands pass on a bare machine${quick:+ (test.sh $quick)}"
