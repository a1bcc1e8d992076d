#!/bin/sh
# sh tests/chaos/run.sh --store redis|sentinel|redlock|postgres|local [--seconds N | --hours H]
#                       [--seed S] [--out DIR] [--mode correctness|efficiency]
#                       [--renew SECONDS]
#
# Three real sidecars with their applications on a real store, a write-fenced resource, and faults
# drawn from a seed: partitions, loss, delay, half-open connections, stopped and throttled processes,
# kill -9, restarts, failovers, steps of clocks, full disks, resignations, drains. Every answer that
# an application was given and every write is judged: never two leaders, tokens rise, no stale write
# is accepted, and one leads after each round of faults. What it found is told, and written to DIR
# (else to a folder that is named at the end): report.txt, report.json, timeline.svg, history.jsonl.
# Exit status 1: a promise was broken; what happened around it is printed, and how to repeat it. 2: it
# proves nothing (the harness failed, nobody led, nothing was struck or judged). --mode efficiency
# does not promise one leader at a time, and is there to see that two are found.
#
# Settings are drawn anew each --renew seconds (300): ttls, equal or not, validity, drain, who attaches.
# As root the sidecars have networks of their own, the servers small disks. Installs what is missing,
# and builds the sidecar as it is shipped; GAVEL_BIN names a folder with another one.
set -eu
cd "$(dirname "$0")/../.."
. deploy/packages.sh
case ${1-} in '' | -h | --help) sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 64 ;; esac

tools=$PWD/build/tools
PATH=$PATH:$tools

# Nothing that comes along may start a service: a package's postinst asks this file.
quietly() {
    [ -n "$missing" ] || return 0
    policy=/usr/sbin/policy-rc.d clusters=/etc/postgresql-common/createcluster.conf made=no
    wanted=$missing installed=yes
    [ -e $policy ] || made=yes
    [ $made = no ] || as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy"
    [ -e $clusters ] ||
        as_root sh -c "mkdir -p ${clusters%/*} && echo 'create_main_cluster = false' >$clusters"
    install_missing || installed=no
    [ $made = no ] || as_root rm -f $policy
    case $wanted in *postgresql*) as_root systemctl disable postgresql >/dev/null 2>&1 || : ;; esac
    [ $installed = yes ]
}

[ -n "${GAVEL_BIN-}" ] || need_to_build
need_command cc gcc
need_command python3 python3
command -v redis-server >/dev/null 2>&1 || need_command redis-check-rdb redis-tools
case " $* " in *postgres*) ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 ||
    missing="$missing postgresql" ;; esac
[ "$(id -u)" != 0 ] || need_command ip iproute2
if [ -z "${GAVEL_BIN-}" ]; then
    pkg-config --exists cmocka 2>/dev/null || missing="$missing libcmocka-dev"
    python3 -c 'import pytest' 2>/dev/null || /usr/bin/python3 -c 'import pytest' 2>/dev/null ||
        missing="$missing python3-pytest" # the tests are configured with it
fi
quietly
if ! command -v redis-server >/dev/null 2>&1; then
    mkdir -p "$tools"
    ln -sf "$(command -v redis-check-rdb)" "$tools/redis-server"
fi
# PostgreSQL does not run as root, and has to get to its folder.
if [ "$(id -u)" = 0 ] && [ -z "$(find / -maxdepth 0 -perm -0005)" ]; then
    chmod 755 /
fi

if [ -z "${GAVEL_BIN-}" ]; then
    configure_and_build release build/logs/chaos.log -DGAVEL_TESTS=ON -- gavel page_reader
    GAVEL_BIN=$PWD/build/release
fi
python=python3
[ ! -x /usr/bin/python3 ] || python=/usr/bin/python3
PYTHONDONTWRITEBYTECODE=1
export GAVEL_BIN PYTHONDONTWRITEBYTECODE
cd tests
exec $python -m chaos "$@"
