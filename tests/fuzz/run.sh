#!/bin/sh
# run.sh PROGRAM FOUND CORPUS [SECONDS]: lets libFuzzer go on from a corpus. What it finds stays in
# FOUND.
set -eu
seconds=2
[ -z "${GAVEL_LONG:-}" ] || seconds=600
seconds=${4:-$seconds}
mkdir -p "$2"
exec "$1" -max_total_time=$seconds -timeout=60 -rss_limit_mb=1024 -max_len=8192 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="$2/" "$2" "$3"
