# shellcheck shell=sh
# gavel for the shell, to be sourced. It needs gavelctl, which is static and can be copied anywhere.
#
#     . gavel.sh
#     gavel_is_leader && ...             # ask before each effect; any doubt is "no"
#     token=$(gavel_token) || exit       # send the token along with the effect
#     gavel_require_leader               # sets GAVEL_TOKEN, or ends the script with status 1
#     gavel_on_change notify &           # calls: notify true TOKEN, notify false -
#     gavel_run sh work.sh               # attaches; runs it while this replica leads, GAVEL_TOKEN set
#     gavel_attach sh "$0" "$@"          # from here on the script itself runs only while it leads
#
# GAVELCTL       where gavelctl is
# GAVEL_SOCKET   the sidecar's socket
# GAVEL_ELECTION may be left out where the sidecar has one
# A yes is good for the answer's VALID_MS, counted from before gavelctl was started, by /proc/uptime
# (which also counts while the host is suspended), less GAVEL_MARGIN_MS: a shell needs a while for the
# next command.
: "${GAVELCTL:=gavelctl}" "${GAVEL_MARGIN_MS:=50}" "${GAVEL_TIMEOUT:=1s}" "${GAVEL_POLL_S:=0.3}"

# Sets gavel_clock, in hundredths of a second (rounded down). Fails where there is none.
gavel_clock() {
    { IFS=' ' read -r gavel_clock _; } 2>/dev/null </proc/uptime || return 1
    gavel_clock=$((${gavel_clock%.*} * 100 + 1${gavel_clock#*.} - 100)) # "08" would be octal
}

gavel_token() {
    gavel_clock || return 1
    gavel_asked=$gavel_clock
    gavel_said=$("$GAVELCTL" check --timeout "$GAVEL_TIMEOUT" ${GAVEL_ELECTION:+"$GAVEL_ELECTION"} \
        2>/dev/null) || return 1
    # Taken apart without IFS, which is the script's.
    case $gavel_said in leader\ [0-9]*\ [0-9]*) ;; *) return 1 ;; esac
    gavel_said=${gavel_said#leader }
    gavel_valid=${gavel_said#* }
    gavel_said=${gavel_said%% *}
    case $gavel_said$gavel_valid in *[!0-9]*) return 1 ;; esac
    [ "$gavel_valid" -gt "$GAVEL_MARGIN_MS" ] && gavel_clock || return 1
    # Looked at last: whatever has taken its time between the question and here counts.
    [ "$((gavel_valid - (gavel_clock - gavel_asked + 1) * 10))" -gt "$GAVEL_MARGIN_MS" ] &&
        printf '%s\n' "$gavel_said"
}

gavel_is_leader() {
    gavel_token >/dev/null
}

gavel_require_leader() {
    GAVEL_TOKEN=$(gavel_token) || { echo "gavel: this replica does not lead" >&2; exit 1; }
    export GAVEL_TOKEN
}

# Looks every GAVEL_POLL_S; never ends.
gavel_on_change() {
    gavel_told=
    while :; do
        gavel_now=$(gavel_token) || gavel_now=-
        if [ "$gavel_now" != "$gavel_told" ]; then
            gavel_told=$gavel_now
            # `|| :`: an error of the callback does not end it, with `set -e` neither.
            if [ "$gavel_now" = - ]; then "$@" false - || :; else "$@" true "$gavel_now" || :; fi
        fi
        sleep "$GAVEL_POLL_S"
    done
}

# The command is asked to end (SIGTERM) and killed before another replica may lead. What it leaves
# behind is `done`, a lost sidecar is looked for again, leadership is given away at its own end: all
# as gavelctl exec does it.
gavel_run() {
    "$GAVELCTL" exec ${GAVEL_ELECTION:+"$GAVEL_ELECTION"} -- "$@"
}

gavel_attach() {
    # Not by GAVEL_TOKEN alone, which may come from elsewhere (gavel_require_leader exports it).
    gavel_for="${GAVEL_SOCKET:-} ${GAVEL_ELECTION:-}"
    [ -n "${GAVEL_TOKEN:-}" ] && [ "${GAVEL_ATTACHED_FOR:-}" = "$gavel_for" ] && return 0
    export GAVEL_ATTACHED_FOR="$gavel_for"
    exec "$GAVELCTL" exec ${GAVEL_ELECTION:+"$GAVEL_ELECTION"} -- "$@"
}
