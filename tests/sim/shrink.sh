#!/bin/sh
# shrink.sh SIM: a schedule that goes wrong under a planted fault is shrunk to a few faults, and goes
# wrong again, as its last moment, when it is played from the printed options.
set -eu
sim=$1
fault=end-always-trusted
if text=$("$sim" --mutant $fault --seeds 1 100); then
    echo "the planted fault was not found" >&2
    exit 1
fi
last=$(printf '%s\n' "$text" | tail -1)
left=${last#* hosts, }
left=${left%% *}
options=${last##*; again: sim }
echo "$last"
[ "$left" -le 5 ] || { echo "more than 5 faults are left" >&2; exit 1; }
# shellcheck disable=SC2086 # the options are words
if again=$("$sim" --mutant $fault --whole $options); then
    echo "played again, nothing goes wrong" >&2
    exit 1
fi
printf '%s\n' "$text" | grep ' ms  VIOLATION' >/dev/null
[ "$(printf '%s\n' "$text" | grep ' ms  VIOLATION' | tail -1)" = "$(printf '%s\n' "$again" | grep ' ms  VIOLATION')" ] ||
    { echo "played again, something else goes wrong" >&2; exit 1; }
# Without the fault, the same schedule is right.
# shellcheck disable=SC2086
"$sim" $options >/dev/null
