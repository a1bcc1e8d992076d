# shellcheck shell=sh disable=SC1091,SC2016
# Speaks the line protocol of ../languages.py with the functions for the shell:
# program.sh SOCKET ELECTION
export GAVEL_SOCKET="$1" GAVEL_ELECTION="$2"
. "$GAVEL_CLIENTS/sh/gavel.sh"

here=${0%/*}
finish=$1.finish.$$ # in the folder of the test, which goes with it
export finish here
running=

changed() {
    echo change "$@"
}

finish() {
    : >"$finish"
}

while read -r verb; do
    case $verb in
    is_leader) if gavel_is_leader; then echo is_leader true; else echo is_leader false; fi ;;
    token) echo token "$(gavel_token || echo -)" ;;
    require) echo require "$( (gavel_require_leader && echo "$GAVEL_TOKEN") 2>/dev/null || echo not-leader)" ;;
    watch) gavel_on_change changed & running="$running $!" ;;
    run)
        # A group of its own, to be ended as a whole.
        setsid sh -c '. "$GAVEL_CLIENTS/sh/gavel.sh"
            gavel_run sh "$here/work.sh" && echo returned' &
        running="$running -$!" ;;
    attach) # the script itself
        setsid sh -c '. "$GAVEL_CLIENTS/sh/gavel.sh"
            gavel_attach sh "$here/work.sh"' &
        running="$running -$!" ;;
    finish) finish ;;
    esac
done
touch "$finish.all" 2>/dev/null || : # stays, whoever works now or is started yet
for process in $running; do
    kill -s TERM -- "$process" 2>/dev/null
done
wait 2>/dev/null || :
