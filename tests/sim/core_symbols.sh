#!/bin/sh
# The core stands alone: compiled without instrumentation, its objects together call nothing but
# what a compiler may insert by itself, and keep no data that can be written.
# usage: core_symbols.sh COMPILER INCLUDE_FOLDER SOURCE...
set -eu

compiler=$1
include=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

number=0
for source in "$@"; do
    number=$((number + 1))
    "$compiler" -std=c11 -D_GNU_SOURCE -O2 -ffreestanding -fno-pie -fstack-protector-strong \
        -I "$include" -c "$source" -o "$folder/$number.o"
done
if [ "$number" -lt 5 ]; then
    echo "only $number sources: this cannot be the core" >&2
    exit 1
fi

nm -u "$folder"/*.o | awk '$1 == "U" { print $2 }' | sort -u >"$folder/needed"
nm --defined-only "$folder"/*.o | awk 'NF == 3 { print $3 }' | sort -u >"$folder/own"
printf '%s\n' memcpy memmove memset memcmp __stack_chk_fail | sort >"$folder/allowed"

outside=$(comm -23 "$folder/needed" "$folder/own" | comm -23 - "$folder/allowed")
if [ -n "$outside" ]; then
    echo "the core calls what it must not: $outside" >&2
    exit 1
fi
writable=$(nm --defined-only "$folder"/*.o | awk 'NF == 3 && $2 ~ /[bBdDCsSgG]/ { print $3 }')
if [ -n "$writable" ]; then
    echo "the core keeps data of its own: $writable" >&2
    exit 1
fi
