#!/bin/sh
# All C of ours is formatted by clang-format 14; other versions differ in details.
cd "$(dirname "$0")/../.." || exit 1
program=clang-format-14
command -v $program >/dev/null 2>&1 || { echo "no $program here"; exit 77; }
find sidecar health tests \( -name '*.c' -o -name '*.h' \) -print0 |
    xargs -0 $program --dry-run -Werror
