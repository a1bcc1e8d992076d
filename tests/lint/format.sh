#!/bin/sh
# All C of ours is formatted by clang-format 14; other versions differ in details.
cd "$(dirname "$0")/../.." || exit 1
program=clang-format-14
command -v $program >/dev/null 2>&1 || { echo "no $program here"; exit 77; }
bad=$(find sidecar health tests \( -name '*.c' -o -name '*.h' \) -print0 |
    xargs -0 $program --dry-run 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:.*warning.*/\1/p' | sort -u)
[ -z "$bad" ] || { printf 'not formatted by %s:\n%s\n' $program "$bad"; exit 1; }
