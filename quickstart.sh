#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a clean clone of a Debian 12 machine to a first prediction: installs what is missing, builds, runs an example.
set -eu
cd "$(dirname "$0")"

tools/setup.sh build
cmake --preset release >&2
cmake --build build/release --target servecast servecast_pages >&2

output=build/quickstart
echo
echo "$ build/release/bin/servecast predict -c examples/trace.yaml --output-dir $output --overwrite"
build/release/bin/servecast predict -c examples/trace.yaml --output-dir "$output" --overwrite
echo
echo "The report is $PWD/$output/prediction.json; docs/tutorial.md explains it."
