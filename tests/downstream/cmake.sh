#!/bin/sh
# Install the build into a folder of its own and use it from a CMake project, through pkg-config:
#
#     sh cmake.sh SOURCE BUILD VERSION [CUSIM KERNELS]
set -eu
source=$1 build=$2 version=$3 cusim=${4:-} kernels=${5:-}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

meson install -C "$build" --no-rebuild --quiet --destdir "$tmp/root"
pc=$(find "$tmp/root" -name stepgraph.pc)
export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$tmp/root"
{ cmake -G Ninja -S "$source/cmake" -B "$tmp/build" -DCLIENTS="$source" && cmake --build "$tmp/build"; } >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }

LD_LIBRARY_PATH="${pc%/pkgconfig/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH
unset STEPGRAPH_DRIVER
for client in client_c client_cpp; do
    "$tmp/build/$client" "$version" "$tmp/no-such-driver.so"
    [ -z "$cusim" ] || CUSIM_KERNELS=$kernels "$tmp/build/$client" "$version" "$tmp/no-such-driver.so" "$cusim"
done
