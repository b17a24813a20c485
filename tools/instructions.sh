#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Instructions per output token of a bench case, counted by callgrind: the same number on a busy and on a quiet machine.
# The case runs in two sizes; the difference cancels what start-up, reading and writing cost.
#
#   tools/instructions.sh PROGRAM CASE SMALL LARGE
#   tools/instructions.sh build/release/bin/servecast bench/cases/dense-vllm.yaml 2048 6144
#
# SMALL and LARGE replace the number in the case's traffic.stop. Prints one number. Exit 77 = no valgrind.
set -eu

[ $# -eq 4 ] || { sed -n '6,7s/^# *//p' "$0" >&2; exit 2; }
program=$1
case_file=$2
if ! command -v valgrind >/dev/null 2>&1; then
  echo "skipped: valgrind is not installed (tools/setup.sh test)"
  exit 77
fi
unit=$(sed -n 's/^ *stop: *{ *\([a-z]*\): *[0-9]* *} *$/\1/p' "$case_file")
[ -n "$unit" ] || { echo "$case_file has no line 'stop: {requests: N}' or 'stop: {sessions: N}'" >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

measure() {  # SIZE -> "instructions output_tokens"
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" predict -c "$case_file" \
    --set "traffic.stop.$unit=$1" --output-dir "$dir/$1" >"$dir/out" 2>"$dir/log" ||
    { cat "$dir/out" "$dir/log" >&2; return 1; }
  instructions=$(sed -n 's/^==[0-9]*== Collected *: *\([0-9]*\).*/\1/p' "$dir/log")
  tokens=$(sed -n 's/^ *"total_output_tokens": *\([0-9]*\).*/\1/p' "$dir/$1/prediction.json")
  if [ -z "$instructions" ] || [ -z "$tokens" ]; then
    echo "no count for size $1" >&2; return 1
  fi
  echo "$instructions $tokens"
}
small=$(measure "$3")
large=$(measure "$4")
echo "$small $large" | awk '$4 <= $2 { exit 1 } { printf "%.2f\n", ($3 - $1) / ($4 - $2) }' ||
  { echo "the large run has no more output tokens than the small one" >&2; exit 1; }
