#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plants one fault after the other (tests/property/faults/*.patch) into a copy of the tree and says who notices:
# how many of RUNS random workloads, how many conformance tests. Fails when a fault goes unnoticed.
#
#   tools/fault-seed.sh                 all faults, 2,000 workloads each; some minutes
#   RUNS=500 tools/fault-seed.sh tie-order boundary-never-in-flight
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
export LC_ALL=C
runs=${RUNS:-2000}
jobs=${JOBS:-2}
time_limit=300  # seconds for one test program; a fault may make a run endless
export SERVECAST_DATA="${SERVECAST_DATA:-$root/../shared/data}"

if [ $# -eq 0 ]; then
  for file in "$root"/tests/property/faults/*.patch; do
    set -- "$@" "$(basename "$file" .patch)"
  done
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
(cd "$root" && git ls-files -z | xargs -0 cp --parents -t "$work")
cd "$work"

build() {
  cmake --build build/ci --target test_property test_conformance -j "$jobs" >build.log 2>&1
}

# What a test program says of the tree as it stands: 0, a number of failures, or "stopped".
seeds_that_notice() {
  status=0
  SERVECAST_PROPERTY_RUNS=$runs timeout "$time_limit" build/ci/bin/test_property >seeds.log 2>&1 || status=$?
  if [ "$status" -gt 1 ]; then
    echo stopped
  else
    awk '/ seeds notice$/ { sum += $1 } END { print sum + 0 }' seeds.log
  fi
}
cases_that_notice() {
  status=0
  timeout "$time_limit" build/ci/bin/test_conformance --gtest_filter="$1" >cases.log 2>&1 || status=$?
  if [ "$status" -gt 1 ]; then
    echo stopped
  else
    grep -c '^\[  FAILED  \] .*ms)$' cases.log || true
  fi
}

if ! cmake --preset ci -DSERVECAST_WERROR=OFF >build.log 2>&1 || ! build; then
  tail -n 20 build.log >&2
  exit 1
fi
if [ "$(seeds_that_notice) $(cases_that_notice '*')" != "0 0" ]; then
  echo "tools/fault-seed.sh: the tests fail without any fault" >&2
  exit 1
fi

printf '%-40s %14s %13s %11s\n' fault "of $runs seeds" "shared cases" "text cases"
unnoticed=0
for name in "$@"; do
  patch_file=tests/property/faults/$name.patch
  if ! patch -p1 --dry-run <"$patch_file" >patch.log 2>&1; then
    printf '%-40s does not apply\n' "$name"
    unnoticed=$((unnoticed + 1))
    continue
  fi
  patch -p1 --no-backup-if-mismatch <"$patch_file" >patch.log
  if ! build; then
    printf '%-40s does not build\n' "$name"
    unnoticed=$((unnoticed + 1))
  else
    seeds=$(seeds_that_notice)
    shared=$(cases_that_notice 'SharedVllm.*:SharedSglang.*')
    text=$(cases_that_notice '-SharedVllm.*:SharedSglang.*')
    printf '%-40s %14s %13s %11s\n' "$name" "$seeds" "$shared" "$text"
    if [ "$seeds $shared $text" = "0 0 0" ]; then unnoticed=$((unnoticed + 1)); fi
  fi
  patch -R -p1 --no-backup-if-mismatch <"$patch_file" >patch.log
done
if [ "$unnoticed" -gt 0 ]; then
  echo "$unnoticed faults go unnoticed" >&2
  exit 1
fi
