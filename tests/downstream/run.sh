#!/bin/sh
# Install the build into a folder of its own and use it as a stranger would:
#
#     sh run.sh SOURCE BUILD VERSION [CUSIM KERNELS]
#
# CUSIM and KERNELS, of the build, say that cusim is there: what is used is what was installed.
set -eu
source=$1 build=$2 version=$3 cusim=${4:-}
cc=${CC:-cc} cxx=${CXX:-c++}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
warnings='-Wall -Wextra -Wpedantic -Werror'

fail()
{
    echo "downstream: $*"
    exit 1
}

meson install -C "$build" --no-rebuild --quiet --destdir "$tmp"

pc=$(find "$tmp" -name stepgraph.pc)
[ -n "$pc" ] || fail "stepgraph.pc is not installed"
# The prefix as installed, seen from here.
prefix=$tmp$(sed -n 's/^prefix=//p' "$pc")
export PKG_CONFIG_PATH="${pc%/*}"
ask()
{
    pkg-config --define-variable=prefix="$prefix" "$@" stepgraph
}
[ "$(ask --modversion)" = "$version" ] || fail "stepgraph.pc names version $(ask --modversion), the project is $version"
case $(ask --cflags --libs) in
*cuda*) fail "a user should not need CUDA: $(ask --cflags --libs)" ;;
esac
libdir=$(ask --variable=libdir)

# Every public header stands alone, in C and in C++.
for header in "$prefix"/include/stepgraph/*.h; do
    echo "#include <stepgraph/${header##*/}>" >"$tmp/alone.c"
    cp "$tmp/alone.c" "$tmp/alone.cpp"
    $cc -std=c11 $warnings $(ask --cflags) -fsyntax-only "$tmp/alone.c" || fail "${header##*/} does not stand alone in C11"
    $cxx -std=c++11 $warnings $(ask --cflags) -fsyntax-only "$tmp/alone.cpp" || fail "${header##*/} does not stand alone in C++11"
done

$cc -std=c11 $warnings "$source/client.c" -o "$tmp/client" $(ask --cflags --libs)
$cxx -std=c++11 $warnings "$source/client.cpp" -o "$tmp/client++" $(ask --cflags --libs)

# The soname is what a program asks for: it must be what is installed.
soname=$(objdump -p "$tmp/client" | sed -n 's/.*NEEDED *\(libstepgraph.*\)/\1/p')
[ -e "$libdir/$soname" ] || fail "the program asks for '$soname', and $libdir has none"

export LD_LIBRARY_PATH="$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
unset STEPGRAPH_DRIVER
for client in client client++; do
    "$tmp/$client" "$version" "$tmp/no-such-driver.so" || fail "$client"
done
if [ -n "$cusim" ]; then
    unset CUSIM_KERNELS
    for client in client client++; do
        "$tmp/$client" "$version" "$tmp/no-such-driver.so" "$libdir/cusim/libcusim.so" || fail "$client on the installed cusim"
    done
fi
