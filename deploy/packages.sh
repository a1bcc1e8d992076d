# shellcheck shell=sh
# Sourced by deploy/try.sh and tests/run.sh: finds out what is missing, and installs that on Debian
# and its relatives. Nothing in these packages is a service.

missing=

# need_command COMMAND PACKAGE
need_command() {
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

# need_library MODULE PACKAGE: a C library with its headers, as pkg-config knows it.
need_library() {
    command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "$1" || missing="$missing $2"
}

need_to_build() {
    need_command gcc gcc
    need_command make make
    need_command cmake cmake
    need_command pkg-config pkg-config
    [ -e /usr/include/stdio.h ] || missing="$missing libc6-dev"
    need_library libuv libuv1-dev
    need_library hiredis libhiredis-dev
    need_library openssl libssl-dev
    need_library libpq libpq-dev
    need_library libmicrohttpd libmicrohttpd-dev
    need_library jansson libjansson-dev
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# Says what it is going to install and how large that is, then does it. No questions.
install_missing() {
    [ -n "$missing" ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "Missing here:$missing (names of Debian packages), and there is no apt-get." >&2
        return 1
    fi
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null 2>&1; then
        echo "Missing here:$missing. Install them as root, or run this as root." >&2
        return 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get -qq update || return 1
    echo "Will install:$missing"
    # shellcheck disable=SC2086
    as_root apt-get -s --no-install-recommends install $missing </dev/null |
        sed -n 's/^\([0-9]* upgraded, [0-9]* newly installed\).*/  packages with what they need: \1/p'
    # shellcheck disable=SC2086
    as_root apt-get --assume-no --no-install-recommends install $missing </dev/null 2>/dev/null |
        sed -n -e 's/^Need to get \(.*\) of archives.*/  to download: \1/p' \
            -e 's/^After this operation, \(.*\) of additional.*/  disk space: \1/p'
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
        -o Dpkg::Use-Pty=0 install $missing </dev/null >/dev/null || return 1
    missing=
}

# configure_and_build PRESET LOG [CMAKE OPTIONS... [-- TARGETS...]]
configure_and_build() {
    preset=$1 log=$2
    shift 2
    options='' targets=''
    while [ $# -gt 0 ]; do
        [ "$1" = -- ] && { shift; targets="--target $*"; break; }
        options="$options $1"
        shift
    done
    mkdir -p "$(dirname "$log")"
    # Looking through all targets takes make ten times as long as find takes to see that nothing
    # has changed since the last whole build.
    stamp=build/$preset/complete
    if [ -z "$targets" ] && [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$options" ] &&
        [ -z "$(find CMakeLists.txt CMakePresets.json sidecar health tests -newer "$stamp" \
            ! -name __pycache__ ! -name '*.py' ! -name '*.pyc' | head -n 1)" ]; then
        return 0
    fi
    # A part built with the same options leaves the whole as it was.
    if [ -z "$targets" ] || [ -n "$options" ]; then
        rm -f "$stamp"
    fi
    mkdir -p "build/$preset"
    echo "$options" >"$stamp.new" # what changes from now on is newer
    # shellcheck disable=SC2086
    if cmake --preset "$preset" $options >"$log" 2>&1 </dev/null &&
        cmake --build "build/$preset" -j "$(nproc)" $targets >>"$log" 2>&1 </dev/null; then
        [ -n "$targets" ] || mv "$stamp.new" "$stamp"
        return 0
    fi
    grep -E 'error|Error' "$log" | head -n 20 >&2
    tail -n 30 "$log" >&2
    echo "Building $preset failed; all of it is in $log" >&2
    return 1
}
