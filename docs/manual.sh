#!/bin/sh
# Build the manual, and fail on any warning:   sh manual.sh DOXYGEN DOXYFILE WARNINGS
set -eu
rm -f "$3"
"$1" "$2" 2>"$3.console" || { cat "$3.console"; exit 1; }
if [ -s "$3" ] || grep -q '[^[:space:]]' "$3.console"; then
    cat "$3" "$3.console" 2>/dev/null
    exit 1
fi
echo "${3%/*}/html/index.html"
