#!/bin/sh
# Draw the quick start's step, recorded with one layer:   sh docs/draw.sh [QUICKSTART [FILE.svg]]
#
# QUICKSTART is the built program, build/examples/quickstart/quickstart if not given; it runs on cusim. Needs Graphviz. The picture in the
# manual is docs/quickstart-step.svg, which is what is written if no file is given.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
quickstart=${1:-$root/build/examples/quickstart/quickstart}
svg=${2:-$root/docs/quickstart-step.svg}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

"$quickstart" --driver cusim --layers 1 --steps 3 --check 3 --draw "$tmp/step.dot" >/dev/null

# Stages side by side, each from top to bottom: an edge from one stage to the next does not push it down.
awk '
    /subgraph/ { stage++ }
    /^ *n[0-9]+ \[label/ { of[$1] = stage }
    /->/ {
        to = $3
        sub(";", "", to)
        if (of[$1] != of[to])
            sub(/( \[|;)/, " [constraint=false] &")
    }
    { print }
' "$tmp/step.dot" | dot -Tsvg -o "$tmp/step.svg"
cp "$tmp/step.svg" "$svg"
