#!/bin/sh
# sh deploy/try.sh [--once] [redis://HOST:PORT | postgres://USER@HOST:PORT/DB]
#
# Installs what is missing to build gavel, builds it, starts three sidecars, shows who leads, kills
# the leader, and shows who takes over with which token. Stays in the foreground until Ctrl-C; with
# --once it ends after that, and its exit status tells whether all went as it should.
set -eu
cd "$(dirname "$0")/.."
. deploy/packages.sh

once=no store=
for argument in "$@"; do
    case $argument in
    --once) once=yes ;;
    -*) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
    *) [ -z "$store" ] || { echo "One store, please." >&2; exit 64; }; store=$argument ;;
    esac
done

work=$(mktemp -d /var/tmp/gavel-try.XXXXXX)
pids=
cleanup() {
    trap - EXIT
    trap '' INT TERM
    for pid in $pids; do kill -TERM "$pid" 2>/dev/null || :; done
    for pid in $pids; do wait "$pid" 2>/dev/null || :; done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

need_to_build
install_missing
tests=
command -v pkg-config >/dev/null && pkg-config --exists cmocka || tests=-DGAVEL_TESTS=OFF
echo "Building (build/release)..."
# shellcheck disable=SC2086
configure_and_build release build/logs/release.log $tests -- gavel gavelctl
gavel=build/release/gavel

[ -n "$store" ] || store=local:$work/state
election=try
ids="pod-1 pod-2 pod-3"

now_ms() {
    echo $(($(date +%s%N) / 1000000))
}

# The answer of one sidecar: "leader TOKEN VALID_MS DEADLINE_NS" or "follower HOLDER".
ask() {
    $gavel check --socket "$work/$1.sock" $election 2>/dev/null || :
}

# Waits until one leads, sets `leader` and `token`.
wait_for_leader() {
    until_ms=$(($(now_ms) + 15000))
    while [ "$(now_ms)" -lt $until_ms ]; do
        for id in $ids; do
            # shellcheck disable=SC2046
            set -- $(ask "$id")
            if [ "${1:-}" = leader ]; then
                leader=$id token=$2
                return 0
            fi
        done
        sleep 0.02
    done
    echo "Nobody leads after 15 seconds. What the sidecars say:" >&2
    tail -n 5 "$work"/*.log >&2
    return 1
}

show() {
    for id in $ids; do
        [ -e "$work/$id.gone" ] && { echo "  $id  (killed)"; continue; }
        echo "  $id  $(ask "$id" | cut -d ' ' -f 1-2)"
    done
}

mkdir -p "$work/state"
started=$(now_ms)
echo "Starting three sidecars on $store, ttl 2 s..."
for id in $ids; do
    $gavel run --store "$store" --namespace try --election $election --identity "$id" --ttl 2s \
        --http localhost:0 --health off --socket "$work/$id.sock" --page-dir off \
        2>"$work/$id.log" </dev/null >/dev/null &
    pids="$pids $!"
    eval "pid_$(echo "$id" | tr - _)=$!"
done

wait_for_leader
first=$leader first_token=$token
echo "$first leads after $(($(now_ms) - started)) ms:"
show

echo "Killing it (kill -9)..."
eval "pid=\$pid_$(echo "$first" | tr - _)"
kill -9 "$pid"
wait "$pid" 2>/dev/null || :
killed=$(now_ms)
: >"$work/$first.gone"
ids=$(echo "$ids" | sed "s/$first//")
wait_for_leader
took=$(($(now_ms) - killed))
ids="pod-1 pod-2 pod-3"
echo "$leader took over after $took ms:"
show
if [ "$token" -le "$first_token" ]; then
    echo "The token should have grown: it was $first_token, now $token." >&2
    exit 1
fi
echo "The token grew from $first_token to $token: whoever sees it can refuse the old leader."
[ $once = no ] || exit 0

port=$(sed -n 's/.*"listener":"http".*"port":\([0-9]*\).*/\1/p' "$work/$leader.log" | head -n 1)
cat <<END

They go on running. Ask them from another terminal:
  curl -s http://localhost:$port/v1/leader
  $gavel check --socket $work/$leader.sock
  $gavel status --socket $work/$leader.sock
Hand over to the other one:
  $gavel resign --socket $work/$leader.sock
Ctrl-C ends all of it.
END
wait
