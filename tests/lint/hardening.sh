#!/bin/sh
# hardening.sh GAVEL GAVELCTL: what is shipped is hardened, by what is in the files themselves.
set -eu
export LC_ALL=C
failed=0
# wants FILE WHAT PATTERN READELF-OPTIONS...
wants() {
    file=$1 what=$2 pattern=$3
    shift 3
    readelf "$@" -W "$file" | grep -Eq "$pattern" || { echo "$file: no $what"; failed=1; }
}
for file in "$@"; do
    wants "$file" "read-only relocations" ' GNU_RELRO ' -l
    wants "$file" "stack that cannot be executed" ' GNU_STACK .* RW +0x' -l
done
wants "$1" "position-independent code" 'Type: +DYN' -h
wants "$1" "mark that it is a program at any address" 'FLAGS_1.* PIE' -d
wants "$1" "binding at the start" 'FLAGS.*(BIND_NOW|NOW)' -d
wants "$1" "stack protector" '__stack_chk_fail' --dyn-syms
wants "$1" "fortified functions" '__(sn|vsn|f|v)?printf_chk|__memcpy_chk' --dyn-syms
! readelf -lW "$1" | grep -q ' LOAD .* RWE ' || { echo "$1: a segment is written and executed"; failed=1; }
exit $failed
