#!/bin/sh
# Hold the library to the interface that is on record:
#
#     sh tests/abi/abi.sh check|proof|renew LIBRARY BUILD [COMPILER...]
#
# check: what tests/abi/stepgraph.abi knows is still there and as it was. New functions break nobody.
# proof: libraries changed on purpose, of which those that break somebody must be rejected for the right reason, and the others accepted.
# renew: write the record anew, in the commit that changes the interface.
# Needs abigail-tools, and a library with debug information; the record is of x86-64.
set -eu
mode=$1 library=$2 build=$3
shift 3
compiler=${*:-cc}
root=$(cd "$(dirname "$0")/../.." && pwd)
abi=$root/tests/abi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if [ "$(uname -m)" != x86_64 ]; then
    echo "skipped: the record is of x86-64"
    exit 77
fi
if ! readelf -S "$library" | grep -q '\.debug_info'; then
    echo "skipped: $library has no debug information"
    exit 77
fi

compare() # LIBRARY
{
    abidiff --exported-interfaces-only --no-added-syms "$abi/stepgraph.abi" "$1"
}

# The whole library, with one thing changed by sed in one file: $tmp/changed.so, and in $tmp/said what the comparison says of it.
change() # WHAT, FILE, SCRIPT
{
    rm -rf "$tmp/tree"
    mkdir "$tmp/tree"
    cp -r "$root/include" "$root/lib" "$tmp/tree"
    sed "$3" "$root/$2" >"$tmp/tree/$2"
    if cmp -s "$root/$2" "$tmp/tree/$2"; then
        echo "nothing was changed: $1"
        exit 1
    fi
    cd "$tmp/tree"
    $compiler -std=c11 -D_GNU_SOURCE -g -O0 -w -fPIC -fvisibility=hidden -Iinclude -Ilib -I"$build/lib/kernels" -shared -o "$tmp/changed.so" \
        -Wl,-soname,libstepgraph.so.0 -Wl,--version-script=lib/stepgraph.map lib/*.c lib/driver/*.c lib/graph/*.c lib/kernels/*.c -lm -ldl -lpthread
}

rejected() # WHAT, FILE, SCRIPT, WORDS
{
    change "$1" "$2" "$3"
    if compare "$tmp/changed.so" >"$tmp/said" 2>&1 || ! grep -q "$4" "$tmp/said"; then
        echo "should have been rejected with '$4': $1"
        cat "$tmp/said"
        exit 1
    fi
    echo "rejected: $1"
}

accepted() # WHAT, FILE, SCRIPT
{
    change "$1" "$2" "$3"
    if ! compare "$tmp/changed.so" >"$tmp/said" 2>&1; then
        echo "should have been accepted: $1"
        cat "$tmp/said"
        exit 1
    fi
    echo "accepted: $1"
}

case $mode in
check)
    if ! compare "$library"; then
        echo "If that is meant (a field at the end of a struct breaks nobody): sh tests/abi/abi.sh renew $library $build"
        exit 1
    fi
    ;;
proof)
    config='/^typedef struct stepgraph_pin_config/,/^}/s'
    rejected 'a function that is gone' lib/stepgraph.map '/^ *stepgraph_pin_feed;/d' 'stepgraph_pin_feed'
    rejected 'a field that grew' include/stepgraph/pin.h "$config/uint32_t flags;/uint64_t flags;/" 'offset changed'
    accepted 'a field in a struct that nobody sees' lib/step_p.h '/^struct stepgraph_step {/a uint64_t more;'
    ;;
renew)
    abidw --exported-interfaces-only --headers-dir "$root/include" --drop-private-types --no-corpus-path --no-comp-dir-path --no-show-locs \
        --no-elf-needed --type-id-style hash --out-file "$abi/stepgraph.abi" "$library"
    echo "$abi/stepgraph.abi"
    ;;
*)
    sed -n '2,9p' "$0" >&2
    exit 2
    ;;
esac
