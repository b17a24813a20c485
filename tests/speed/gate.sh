#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gate.sh LIMIT INSTRUCTIONS_SCRIPT PROGRAM CASE SMALL LARGE: fails when a token costs more instructions than LIMIT.
set -eu
limit=$1
shift
code=0
count=$("$@") || code=$?
if [ "$code" -ne 0 ]; then
  echo "$count"
  exit "$code"
fi
echo "$count instructions per output token, limit $limit"
awk -v count="$count" -v limit="$limit" 'BEGIN { exit !(count > 0 && count <= limit) }'
