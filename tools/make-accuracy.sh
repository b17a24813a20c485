#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes docs/accuracy.md from measurements, or compares it with what they give now.
#
#   tools/make-accuracy.sh build/release/bin/servecast DATA          writes; takes about three minutes
#   tools/make-accuracy.sh --check build/ci/bin/servecast DATA       compares the part that takes seconds
set -eu

check=false
if [ "${1:-}" = --check ]; then
  check=true
  shift
fi
program=$1
truth=$2/groundtruth
page=$(cd "$(dirname "$0")/.." && pwd)/docs/accuracy.md
served=$truth/silicon_served.csv
if [ ! -f "$served" ]; then
  echo "skipped: there are no measurements at $truth"
  exit 0
fi

tables() {
  "$program" backtest "$@" --quiet --format markdown
}

known() {
  echo '## Groups that were measured'
  echo
  echo 'The step model of the program, replayed row by row: `servecast backtest silicon_served.csv`.'
  echo
  tables "$served"
}

if $check; then
  known > "${TMPDIR:-/tmp}/accuracy.$$"
  trap 'rm -f "${TMPDIR:-/tmp}/accuracy.$$"' EXIT
  # The lines of that section as they stand in the page.
  awk '/^## /{inside = 0} /^## Groups that were measured/{inside = 1} inside' "$page" |
    sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' | diff - "${TMPDIR:-/tmp}/accuracy.$$" ||
    { echo "docs/accuracy.md is not what the measurements give: run tools/make-accuracy.sh" >&2; exit 1; }
  echo "docs/accuracy.md: the section of measured groups is what the measurements give"
  exit 0
fi

{
  cat <<'TEXT'
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by tools/make-accuracy.sh. -->
# How accurate is it?

Errors in percent of the measured value: mean of their sizes / median / 90th percentile. TTFT and TPOT are means over the requests of a run; "p50" is
compared with the median where a file has it. Throughput is output tokens per second and GPU. Rows of one group (model, system, engine, number
formats) share their causes, so the honest question is how well a group is predicted that no fit has seen: that is the first table.

What is out of range: runs of separate prefill and decode workers (not simulated yet), engines other than vLLM, SGLang and TensorRT-LLM, and
everything that a file does not say: a speculating run is labelled by a rule (`--format json` shows `speculation: inferred`), and those rows
look better than they are. Systems without served measurements stand on datasheet values and the nearest measured generation; the intervals of
such predictions are the widest (`support: engine` or `none`). "Special" rows are known to be odd in TTFT (compilation during the run, fewer seats
than clients, memory that is full): they teach no TTFT, and they count in "all".

TEXT
  echo '## Groups that no fit has seen'
  echo
  echo 'Five folds by whole groups, each predicted by a fit to the other four: `servecast backtest silicon_served.csv --cv 5`.'
  echo
  tables "$served" --cv 5
  echo
  echo '## The rest of a group of which one curve was measured'
  echo
  echo 'What a user'"'"'s own measurement of one curve buys: `servecast backtest silicon_served.csv --cv 5 --one-curve`.'
  echo
  tables "$served" --cv 5 --one-curve | sed '/^$/,$d'
  echo
  known
  for file in inferencemax_2025_11 inferencex_2026_06_h200 independent_reruns_h200 trtllm_perf_overview mlperf_v41_v51 \
    splitwise_static apex_plus_h100; do
    echo
    echo "## $file.csv"
    echo
    echo "\`servecast backtest $file.csv\`; no row of it was fitted, though many are runs of the same servers."
    echo
    tables "$truth/$file.csv"
  done
} > "$page.new"
mv "$page.new" "$page"
