#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# must_fail.sh COMMAND...: passes when the command exits with 1 or more; a skip (77) stays a skip.
set -u
code=0
"$@" || code=$?
case $code in
  0) echo "must have failed: $*"; exit 1 ;;
  77) exit 77 ;;
  *) exit 0 ;;
esac
