#!/bin/sh
# Build in build/ and run the quick start:   sh examples/run.sh [options]; --help lists them
#
# Works from any folder and may be repeated. Installs what is missing through apt as root, or says what an administrator must run.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/common.sh"

install_missing build

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! (configure "$root/build" -Dcusim=enabled -Dexamples=enabled && build "$root/build") >"$log" 2>&1; then
    cat "$log" >&2
    die 1 "the build failed, see above"
fi

quickstart=$root/build/examples/quickstart/quickstart
[ -x "$quickstart" ] || die 1 "the build has made no examples/quickstart/quickstart"

status=0
"$quickstart" "$@" || status=$?
exit "$status"
