#!/bin/sh
# Build a stranger's Meson project that has this source tree as a subproject, and run it:
#
#     sh subproject.sh SOURCE ROOT VERSION [CUSIM KERNELS]
set -eu
source=$1 root=$2 version=$3 cusim=${4:-} kernels=${5:-}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

mkdir -p "$tmp/project/subprojects"
cp "$source/meson/meson.build" "$source/client.c" "$tmp/project"
ln -s "$root" "$tmp/project/subprojects/stepgraph"

meson setup --wrap-mode forcefallback "$tmp/build" "$tmp/project" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
# What a user does not ask for is not built: tests, examples, cusim, the manual.
meson introspect --targets "$tmp/build" >"$tmp/targets"
for unwanted in cusim test_pin minimal quickstart; do
    if grep -q "\"name\": \"$unwanted\"" "$tmp/targets"; then
        echo "downstream: a subproject builds '$unwanted'"
        exit 1
    fi
done
meson compile -C "$tmp/build" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }

unset STEPGRAPH_DRIVER
"$tmp/build/client" "$version" "$tmp/no-such-driver.so"
if [ -n "$cusim" ]; then
    CUSIM_KERNELS=$kernels "$tmp/build/client" "$version" "$tmp/no-such-driver.so" "$cusim"
fi
