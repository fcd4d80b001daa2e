#!/bin/sh
# Build the manual, and fail on any warning:   sh manual.sh DOXYGEN DOXYFILE WARNINGS SOURCE
set -eu
doxygen=$1 doxyfile=$2 warnings=$3 source=$4

# Doxygen does not follow links between pages where a path has a space: it is given one without.
case $source in
*' '*)
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    ln -s "$source" "$tmp/source"
    sed "s|$source|$tmp/source|g" "$doxyfile" >"$tmp/Doxyfile"
    doxyfile=$tmp/Doxyfile
    ;;
esac

rm -f "$warnings"
"$doxygen" "$doxyfile" 2>"$warnings.console" || { cat "$warnings.console"; exit 1; }
if [ -s "$warnings" ] || grep -q '[^[:space:]]' "$warnings.console"; then
    cat "$warnings" "$warnings.console" 2>/dev/null
    exit 1
fi
echo "${warnings%/*}/html/index.html"
