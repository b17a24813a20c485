#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh CMAKE BUILD_FOLDER: what cmake --install puts in place works by itself.
set -eu
cmake=$1
build=$2
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
"$cmake" --install "$build" --prefix "$prefix" >"$prefix/log" || { cat "$prefix/log"; exit 1; }

need() { [ -s "$prefix/$1" ] || { echo "missing or empty: $1"; exit 1; }; }
need share/man/man1/servecast.1
need share/bash-completion/completions/servecast
need share/zsh/site-functions/_servecast
need share/fish/vendor_completions.d/servecast.fish
need share/doc/servecast/LICENSE
need share/doc/servecast/THIRD_PARTY_NOTICES.md
grep -q '^\.TH ' "$prefix/share/man/man1/servecast.1" || { echo "servecast.1 is no manual page"; exit 1; }
sh -n "$prefix/share/bash-completion/completions/servecast" 2>/dev/null ||
  bash -n "$prefix/share/bash-completion/completions/servecast"

cd "$prefix/share/doc/servecast"
"$prefix/bin/servecast" predict -c examples/synthetic.yaml --output-dir "$prefix/out" >/dev/null
need out/prediction.json
