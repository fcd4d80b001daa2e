#!/bin/sh
# Build in build/ and run the tests:   sh tests/run.sh [suite]
#
# Works from any folder and may be repeated. Installs what is missing through apt as root, or says what an administrator must run.
# The last line is `N passed, N failed, N skipped`. Exit status: 0 all passed, 1 something failed, 2 wrong call or missing package.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/common.sh"

suites='unit conformance examples downstream docs abi cusim bench hostile'

usage()
{
    say "usage: sh tests/run.sh [suite]"
    say "suites: $suites: one of them; none: all"
    say "        sanitize: unit, hostile and examples under the address and undefined behaviour sanitizers, in build-asan/"
}

[ $# -le 1 ] || { usage >&2; exit 2; }
suite=${1:-all}
case " $suites all sanitize " in
*" $suite "*) ;;
*)
    case $suite in
    -h | --help)
        usage
        exit 0
        ;;
    esac
    say "$(basename "$0"): there is no suite '$suite'" >&2
    usage >&2
    exit 2
    ;;
esac

install_missing tests

werror=-Dwerror=false
[ -z "${CI:-}" ] || werror=-Dwerror=true

if [ "$suite" = sanitize ]; then
    folder=$root/build-asan
    configure "$folder" -Dcusim=enabled -Dexamples=enabled -Dtests=enabled -Ddocs=disabled "$werror" \
        -Db_sanitize=address,undefined -Db_lundef=false
    export ASAN_OPTIONS="${ASAN_OPTIONS:-abort_on_error=1:detect_leaks=1}"
    export UBSAN_OPTIONS="${UBSAN_OPTIONS:-halt_on_error=1:abort_on_error=1:print_stacktrace=1}"
else
    folder=$root/build
    configure "$folder" -Dcusim=enabled -Dexamples=enabled -Dtests=enabled -Ddocs=enabled "$werror"
fi
build "$folder"

# Suites are named with the project, since a subproject may have one of the same name; 'cusim' is all of that subproject.
case $suite in
all) set -- ;;
sanitize) set -- --suite stepgraph:unit --suite stepgraph:hostile --suite stepgraph:examples --timeout-multiplier 4 ;;
cusim) set -- --suite cusim ;;
*) set -- --suite "stepgraph:$suite" ;;
esac

rm -f "$folder/meson-logs/testlog.json"
status=0
meson test -C "$folder" --no-rebuild --print-errorlogs "$@" || status=$?
python3 "$root/tests/results.py" "$folder/meson-logs/testlog.json" "$status"
