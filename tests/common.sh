# What tests/run.sh and examples/run.sh share: the packages a build needs, and the build folder. Sourced, with $root set.

say()
{
    printf '%s\n' "$*"
}

die() # STATUS, words: 2 is a wrong call or a missing package, 1 anything else
{
    status=$1
    shift
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit "$status"
}

# ---- packages --------------------------------------------------------------------------------------------------------

# Asked by command and by header, not by dpkg: a compiler that somebody put elsewhere is as good, and one without headers is none.
have_c()
{
    echo '#include <stdio.h>' | ${CC:-cc} -x c -fsyntax-only -
}

have_cpp()
{
    echo '#include <vector>' | ${CXX:-c++} -x c++ -fsyntax-only -
}

have_ninja()
{
    command -v ninja || command -v ninja-build || command -v samu
}

want() # PACKAGES, command...: note the Debian packages if the command fails
{
    packages=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $packages"
}

find_missing() # build|tests
{
    missing=
    want 'gcc libc6-dev' have_c
    want g++ have_cpp
    want python3 command -v python3
    want meson meson --version
    want ninja-build have_ninja
    want pkg-config pkg-config --version
    if [ "$1" = tests ]; then
        want check pkg-config --exists check
        want doxygen doxygen --version
        want binutils nm --version
        want cmake cmake --version
        want abigail-tools abidiff --version
    fi
    missing=${missing# }
}

# Install what is missing, or say how. Nothing missing: neither apt nor the network is touched.
install_missing() # build|tests
{
    find_missing "$1"
    [ -n "$missing" ] || return 0

    install="apt-get install -y --no-install-recommends $missing"
    if ! command -v apt-get >/dev/null 2>&1; then
        die 2 "not found, and there is no apt-get to install it with: $missing (names of Debian packages)"
    elif [ "$(id -u)" -ne 0 ]; then
        say "Packages are missing. An administrator must run:" >&2
        say "    apt-get update && $install" >&2
        exit 2
    fi

    say "Installing $missing"
    log=$(mktemp)
    if ! { DEBIAN_FRONTEND=noninteractive apt-get update && DEBIAN_FRONTEND=noninteractive $install; } >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        die 2 "apt-get could not install: $missing"
    fi
    rm -f "$log"

    find_missing "$1"
    [ -z "$missing" ] || die 2 "installed, and still not found: $missing"
}

# ---- the build folder ------------------------------------------------------------------------------------------------

# Make FOLDER a build of this tree in which the options hold. Leaves a fitting one alone, sets options that differ, and starts afresh
# where it cannot be repaired: an interrupted setup, another Meson, a tree that was moved.
configure() # FOLDER, -Doption=value...
{
    folder=$1
    shift
    state=$(python3 "$root/tests/configured.py" "$root" "$folder" "$(meson --version)" "$@") || exit 1
    case $state in
    fits)
        return 0
        ;;
    foreign)
        die 2 "$folder is in the way: it is no build folder. Move it and try again."
        ;;
    options)
        meson setup --reconfigure "$@" "$folder" "$root" && return 0
        say "That did not work: starting $folder afresh."
        rm -rf "$folder"
        ;;
    broken)
        say "$folder is not usable as it is: starting it afresh."
        rm -rf "$folder"
        ;;
    none) ;;
    esac
    meson setup "$@" "$folder" "$root" || die 1 "meson setup failed, see above"
}

build() # FOLDER
{
    "$(have_ninja)" -C "$1" || die 1 "the build failed, see above"
}
