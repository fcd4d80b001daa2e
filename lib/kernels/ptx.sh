#!/bin/sh
# Make FILE.ptx from FILE.cu:   sh lib/kernels/ptx.sh FILE.cu FILE.ptx
#
# For compute capability 7.5 and newer. nvcc stamps its own PTX version; these kernels use nothing newer than PTX 8.0, the version of
# the oldest driver we support (12.0), so that one is written, and ptxas is asked whether it agrees. The first line names the compilers:
# another release of either may order the same instructions otherwise (nvcc reads the host compiler's headers), so the test that compares
# looks at that line first.
set -eu
cu=$1 ptx=$2
nvcc=${NVCC:-nvcc}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
release=$($nvcc --version | sed -n 's/.*release \([0-9.]*\), V\(.*\)/\2/p')
gcc=$(gcc -dumpversion | cut -d. -f1)
$nvcc -ptx -arch=compute_75 -O3 --fmad=false -o "$tmp/raw.ptx" "$cu"
{
    echo "// $(basename "$cu"), nvcc $release with gcc $gcc: sh lib/kernels/ptx.sh"
    sed -e '/^\/\//d' -e 's/^\.version .*/.version 8.0/' "$tmp/raw.ptx"
} >"$tmp/out.ptx"
"$(dirname "$(command -v "$nvcc")")/ptxas" --gpu-name sm_75 -o /dev/null "$tmp/out.ptx"
cp "$tmp/out.ptx" "$ptx"
