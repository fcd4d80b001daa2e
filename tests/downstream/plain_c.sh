#!/bin/sh
# Configure the source where there is no C++ compiler, and without a word about it: what needs one is left out, the library is not.
#
#     sh plain_c.sh ROOT
set -eu
root=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

CXX="$tmp/no-such-compiler" meson setup "$tmp/build" "$root" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
meson introspect --targets "$tmp/build" >"$tmp/targets"
grep -q '"name": "stepgraph"' "$tmp/targets" || { echo "downstream: without C++ there is no library"; exit 1; }
if grep -q '"name": "cusim"' "$tmp/targets"; then
    echo "downstream: cusim is built without C++"
    exit 1
fi
