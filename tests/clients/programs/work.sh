# shellcheck shell=sh disable=SC1091,SC2016,SC2154
# What program.sh runs: says when it begins, when it has to stop, and when it does.
say() {
    read -r up _ </proc/uptime
    echo "$1" "$GAVEL_TOKEN" "${up%.*}${up#*.}0000000"
}
trap 'say cancelled' TERM
say started
while [ -d "${finish%/*}" ] && [ ! -e "$finish" ] && [ ! -e "$finish.all" ]; do
    sleep 0.02
done
rm -f "$finish"
say stopped
