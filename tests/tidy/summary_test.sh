#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# summary_test.sh SUMMARY: tools/test-summary.sh counts as it should and fails when it should.
set -u
summary=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

run() { printf '\t<testcase name="%s" classname="x" time="0" status="%s">\n%s\t</testcase>\n' "$1" "$2" "$3"; }
out() { printf '\t\t<system-out>%s\n</system-out>\n' "$1"; }
good() { run good run "$(out 'all is &lt;well&gt;: Skipped')"; }
skipped() { run Suite.NeedsData notrun '		<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
		<system-out>[ RUN ]
a_test.cpp:7: Skipped
no data: set SERVECAST_DATA
</system-out>
'; }
script_skip() { run lint notrun '		<skipped message="SKIP_RETURN_CODE=77"/>
		<system-out>skipped: no clang
</system-out>
'; }
missing() { run gone notrun '		<skipped message="Unable to find executable"/>
'; }
bad() { run wrong fail '		<failure message=""/>
'; }

check() {  # WHAT EXPECTED_EXIT EXPECTED_LAST_LINE FAILED_RUNS FILES...
  what=$1 code=$2 last=$3
  shift 3
  text=$("$summary" "$@" 2>&1)
  got=$?
  if [ "$got" != "$code" ] || [ "$(printf '%s\n' "$text" | tail -n1)" != "$last" ]; then
    printf '%s: exit %s, output:\n%s\n' "$what" "$got" "$text"
    exit 1
  fi
}

{ good; skipped; script_skip; } >"$dir/a.xml"
{ good; bad; missing; } >"$dir/b.xml"
: >"$dir/empty.xml"
check "passed and skipped" 0 "1 passed, 0 failed, 2 skipped" 0 "$dir/a.xml"
printf '%s\n' "$text" | grep -q 'skipped 1 test (Suite.NeedsData): no data: set SERVECAST_DATA' || exit 1
printf '%s\n' "$text" | grep -q 'skipped 1 test (lint): no clang' || exit 1
check "a missing program failed" 1 "1 passed, 2 failed, 0 skipped" 1 "$dir/b.xml"
check "two runs add up" 1 "2 passed, 2 failed, 2 skipped" 1 "$dir/a.xml" "$dir/b.xml"
check "ctest failed by itself" 1 "1 passed, 1 failed, 2 skipped" 1 "$dir/a.xml"
check "nothing ran" 1 "0 passed, 1 failed, 0 skipped" 0 "$dir/empty.xml"
check "no report" 1 "0 passed, 1 failed, 0 skipped" 0 "$dir/none.xml"
