#!/bin/sh
# Build in build-card/ and run suites, quick start and benchmarks on a card:   OUT=folder sh tests/card.sh [folder with .deb files]
#
# For a machine without a network: nothing is installed. Where libcheck is missing, the .deb files (check, libsubunit) are unpacked beside
# the build and used from there. Results go to $OUT, build-card/results if unset; short tables are printed last. A step that fails or runs
# into its time limit does not stop the rest; the exit status is 0 only if nothing failed. SECONDS_IN_ALL (540) bounds the whole run. WITHOUT names
# what is not run, with commas between: suites, programs, or programs of one suite, such as "native,pytorch compare,bench/verify"; it counts as skipped.
#
# STEPGRAPH_DRIVER names another driver than libcuda.so.1, to try this script where there is no card.
set -eu
started=$(date +%s)
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/common.sh"
folder=$root/build-card
deps=$root/build-card-deps
debs=${1:-}

find_missing build
[ -z "$missing" ] || die 2 "not found, and this script installs nothing: $missing (names of Debian packages)"

if [ -n "$debs" ]; then
    rm -rf "$deps"
    mkdir -p "$deps"
    for deb in "$debs"/*.deb; do
        [ -e "$deb" ] || die 2 "no .deb files in $debs"
        dpkg -x "$deb" "$deps"
    done
    # Unpacked, not installed: what says /usr means here.
    find "$deps" -name '*.pc' -exec sed -i "s|^prefix=/usr\$|prefix=$deps/usr|" {} +
    for lib in "$deps"/usr/lib "$deps"/usr/lib/*-linux-gnu; do
        [ -d "$lib" ] || continue
        PKG_CONFIG_PATH=$lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
        LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    done
    export PKG_CONFIG_PATH LD_LIBRARY_PATH
fi
pkg-config --exists check || say "libcheck is not there: the unit programs are left out."

configure "$folder" -Dcusim=enabled -Dexamples=enabled -Dtests=auto -Ddocs=disabled
build "$folder"

left=$((${SECONDS_IN_ALL:-540} - $(date +%s) + started))
exec python3 "$root/tests/card.py" "$folder" "${OUT:-$folder/results}" "${STEPGRAPH_DRIVER:-libcuda.so.1}" "$left"
