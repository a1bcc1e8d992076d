#!/bin/sh
# Checks redlock.pml exhaustively, whole; and with a clause left out, which has to be found.
# usage: redlock_spin.sh MODEL
set -eu
model=$1
if ! command -v spin >/dev/null; then
    echo "spin is missing: sh tests/run.sh installs it" >&2
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$model" "$folder/model.pml"
cd "$folder"

# search EXPECTED-ERRORS DEFINES...
search() {
    expected=$1
    shift
    spin "$@" -a model.pml >spin.log || { cat spin.log; exit 1; }
    cc -w -O1 -DSAFETY -DNOFAIR -DMEMLIM=3000 -o pan pan.c
    ./pan -m1000000 -w22 >pan.log
    cut_short="max search depth too small|out of memory"
    [ "$expected" != 0 ] || cut_short="$cut_short|Search not completed" # the first error ends it
    if grep -Eq "$cut_short" pan.log || ! grep -q "errors: $expected\$" pan.log; then
        echo "$*: expected $expected errors, and a whole search" >&2
        cat pan.log >&2
        exit 1
    fi
    echo "$*: errors: $expected, $(grep 'states, stored' pan.log)"
}

search 0 -DTTL=2 -DFAULTS=1 -DLOSSES=1
search 0 -DTTL=1 -DFAULTS=2 -DLOSSES=1
search 1 -DTTL=2 -DFAULTS=1 -DLOSSES=0 -DNO_WAIT
search 0 -DTTL=1 -DFAULTS=0 -DLOSSES=0 -DTOKEN_MOST=3
search 1 -DTTL=1 -DFAULTS=0 -DLOSSES=0 -DTOKEN_MOST=3 -DNO_WRITE_BACK
