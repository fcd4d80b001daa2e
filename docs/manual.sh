#!/bin/sh
# Build the manual, and fail on any warning:   sh manual.sh DOXYGEN DOXYFILE WARNINGS SOURCE
set -eu
doxygen=$1 doxyfile=$(cd "$(dirname "$2")" && pwd)/$(basename "$2") warnings=$3 source=$4

# Doxygen does not find linked pages where the path has a space: it is given a copy at one without.
case $source in
*' '*)
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    (cd "$source" && cp -R docs examples include ./*.md "$tmp")
    sed -e '/^OUTPUT_DIRECTORY/b' -e '/^WARN_LOGFILE/b' -e "s|$source|$tmp|g" "$doxyfile" >"$tmp/Doxyfile"
    doxyfile=$tmp/Doxyfile
    source=$tmp
    ;;
esac
cd "$source/docs" # where it starts to look for linked files

rm -f "$warnings"
"$doxygen" "$doxyfile" 2>"$warnings.console" || { cat "$warnings.console"; exit 1; }
if [ -s "$warnings" ] || grep -q '[^[:space:]]' "$warnings.console"; then
    cat "$warnings" "$warnings.console" 2>/dev/null
    exit 1
fi
echo "${warnings%/*}/html/index.html"
