#!/bin/sh
# Draw the quick start's step with one layer, as it is recorded and as its memory needs it:   sh docs/draw.sh [QUICKSTART [FOLDER]]
#
# QUICKSTART is the built program, build/examples/quickstart/quickstart if not given; it runs on cusim. Needs Graphviz. The manual's pictures are
# docs/quickstart-step.svg and docs/relaxed-step.svg, which is what is written if no folder is given.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
quickstart=${1:-$root/build/examples/quickstart/quickstart}
folder=${2:-$root/docs}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

run() {
    "$quickstart" --driver cusim --layers 1 --steps 3 --check 3 "$@" >/dev/null
}

run --draw "$tmp/step.dot"
run --relax --lanes 8 --draw "$tmp/needed.dot"

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
cp "$tmp/step.svg" "$folder/quickstart-step.svg"

# Both orders side by side, stages by colour. Edges lead from lower numbers to higher ones, so the longest way is known on the way.
awk '
    function end() {
        if (part)
            printf "    label=\"%s: %d nodes, the longest way has %d\";\n  }\n", title, nodes, longest
    }
    FNR == 1 {
        end()
        part++
        title = part == 1 ? "as recorded" : "as its memory needs it"
        nodes = longest = 0
        split("", way)
        printf "  subgraph cluster_%d {\n    color=white;\n", part
    }
    /subgraph/ { colour = colours[++stage % 7] }
    FNR == 1 { stage = 0 }
    /^ *n[0-9]+ \[label/ {
        name = $1
        sub(/^ *n[0-9]+ \[/, "")
        sub(/\];$/, "")
        printf "    p%d%s [%s, fillcolor=\"%s\"];\n", part, name, $0, colour
        way[name] = 1
        nodes++
        longest = longest > 1 ? longest : 1
    }
    / -> / {
        from = $1
        to = $3
        sub(";", "", to)
        printf "    p%d%s -> p%d%s;\n", part, from, part, to
        if (way[to] < way[from] + 1)
            way[to] = way[from] + 1
        longest = longest > way[to] ? longest : way[to]
    }
    BEGIN {
        split("#d9ead3 #cfe2f3 #fce5cd #d9d2e9 #fff2cc #f4cccc #d0e0e3", list, " ")
        for (i = 1; i <= 7; i++)
            colours[i % 7] = list[i]
        print "digraph relaxed {\n  ranksep=0.2; nodesep=0.15; fontname=\"sans-serif\"; fontsize=12;"
        print "  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\", fontsize=9, height=0.2, margin=\"0.08,0.03\"];"
        print "  edge [color=gray40, arrowsize=0.5];"
    }
    END {
        end()
        print "}"
    }
' "$tmp/step.dot" "$tmp/needed.dot" >"$tmp/relaxed.dot"
dot -Tsvg "$tmp/relaxed.dot" -o "$tmp/relaxed.svg"
cp "$tmp/relaxed.svg" "$folder/relaxed-step.svg"
