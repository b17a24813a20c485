#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sums up ctest runs: the failed tests, the skipped ones with their reasons, and as the last line
# "N passed, M failed, K skipped". Exits with 1 when a test failed, when ctest itself failed or when nothing ran.
#
#   tools/test-summary.sh FAILED_RUNS JUNIT_FILE...
#
# FAILED_RUNS is the number of ctest calls that did not exit with 0.
set -eu

failed_runs=$1
shift
for report in "$@"; do
  shift
  if [ -f "$report" ]; then set -- "$@" "$report"; else failed_runs=$((failed_runs + 1)); fi
done
[ $# -gt 0 ] || set -- /dev/null

exec awk -v failed_runs="$failed_runs" '
  function attribute(line, name,   text) {
    if (!match(line, " " name "=\"[^\"]*\"")) return ""
    text = substr(line, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
    gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text); gsub(/&amp;/, "\\&", text)
    return text
  }
  function preset(file) { sub(/\/junit\.xml$/, "", file); sub(/.*\//, "", file); return file }
  function end_case() {
    if (!in_case) return
    in_case = 0
    if (status == "run") { ++passed; return }
    # ctest calls a test "skipped" here too when its program is missing or a fixture failed: that is a failure.
    if (status == "notrun" && skip_message ~ /^SKIP_/) {
      ++skipped
      if (reason == "") reason = "no reason given"
      if (!(reason in by_reason)) reasons[++reason_count] = reason
      ++by_reason[reason]
      first[reason] = first[reason] == "" ? name : first[reason]
      return
    }
    if (status == "disabled") { ++skipped; reasons[++reason_count] = name " is disabled"; by_reason[name " is disabled"] = 1; return }
    ++failed
    failures[failed] = preset(FILENAME) ": " name
  }
  FNR == 1 { end_case() }
  /^[ \t]*<testcase / {
    end_case()
    in_case = 1; after_skip = 0; reason = ""; skip_message = ""
    name = attribute($0, "name"); status = attribute($0, "status")
    next
  }
  /^[ \t]*<skipped / { skip_message = attribute($0, "message"); next }
  in_case && status == "notrun" {
    line = $0
    sub(/^[ \t]*<system-out>/, "", line); sub(/<\/system-out>.*/, "", line)
    gsub(/&lt;/, "<", line); gsub(/&gt;/, ">", line); gsub(/&quot;/, "\"", line); gsub(/&amp;/, "\\&", line)
    if (after_skip && reason == "" && line != "") reason = line           # the line after gtest says where it skipped
    if (line ~ /: Skipped$/) after_skip = 1
    if (sub(/^skipped: /, "", line) && reason == "") reason = line        # our scripts say "skipped: why"
  }
  END {
    end_case()
    print ""
    for (i = 1; i <= failed; ++i) print "FAILED  " failures[i]
    for (i = 1; i <= reason_count; ++i) {
      r = reasons[i]
      print "skipped " by_reason[r] (by_reason[r] == 1 ? " test" : " tests") (first[r] == "" ? "" : " (" first[r] (by_reason[r] > 1 ? ", ..." : "") ")") ": " r
    }
    if (failed_runs > 0 && failed == 0) { ++failed; print "FAILED  ctest itself (its output stands above)" }
    if (passed + failed == 0) { ++failed; print "FAILED  no test ran" }
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0
  }' "$@"
