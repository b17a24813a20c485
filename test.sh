#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds and runs the whole test suite. Everything a submission must pass.
#
#   ./test.sh                the suite in the release build, then unit, conformance and property under ASan and UBSan
#   ./test.sh --no-asan      the release build only
#   ./test.sh --quick        the release build only, without the long property and speed tests
#   ./test.sh --only LABEL   only tests with this ctest label (unit, lint, golden, ...), release build
set -eu
cd "$(dirname "$0")"

with_asan=true
select=
while [ $# -gt 0 ]; do
  case $1 in
    --no-asan) with_asan=false ;;
    --quick)
      with_asan=false
      select='-LE property|bench-smoke|bare' ;;
    --only)
      [ $# -ge 2 ] || { echo "./test.sh: --only needs a label" >&2; exit 2; }
      with_asan=false
      select="-L ^$2\$"
      shift ;;
    -h | --help) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "./test.sh: unknown option $1 (try --help)" >&2; exit 2 ;;
  esac
  shift
done
[ -n "$select" ] || select='-LE bare'

tools/setup.sh build test
command -v npm >/dev/null 2>&1 || tools/setup.sh perfdata
tools/duckdb.sh

# run_suite PRESET LABELS...: builds everything of a preset and runs its tests; the results go to a JUnit file.
failed_runs=0
run_suite() {
  preset=$1
  shift
  echo "== $preset: build"
  cmake --preset "$preset" -Wno-dev
  cmake --build "build/$preset"
  echo "== $preset: test"
  rm -f "build/$preset/junit.xml"
  ctest --test-dir "build/$preset" -j2 --output-on-failure --no-tests=error \
    --output-junit junit.xml "$@" || failed_runs=$((failed_runs + 1))
}

# shellcheck disable=SC2086  # an option and its value
run_suite ci $select
reports=build/ci/junit.xml
if $with_asan; then
  # The whole-machine sanitizers cost a factor of ten: fewer random workloads, same generator.
  SERVECAST_PROPERTY_RUNS=${SERVECAST_PROPERTY_RUNS:-500}
  export SERVECAST_PROPERTY_RUNS
  run_suite asan -L '^(unit|conformance|property)$'
  reports="$reports build/asan/junit.xml"
fi

# shellcheck disable=SC2086  # one file a word
exec tools/test-summary.sh "$failed_runs" $reports
