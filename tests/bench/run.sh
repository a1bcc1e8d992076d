#!/bin/sh
# sh tests/bench/run.sh [--quick] [GROUP...]
#
# Measures gavel beside its limits and its peers, in turn, on this machine; needs two processors and
# less than 20 minutes without anything else running. Installs what is missing to build it, and the
# peers where they can be had; a row whose peer cannot is skipped and says so. The table and the plot
# are build/bench/results/bench.md and bench.svg.
#
#   --quick    few rounds, to see that it works: no figures to be quoted
#   GROUP      only the groups whose name contains one of these words
set -eu
cd "$(dirname "$0")/../.."
. deploy/packages.sh
case ${1-} in -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;; esac

build=build/bench peers=$PWD/build/bench-peers results=$PWD/build/bench/results
tools=$PWD/build/tools
mkdir -p "$results" "$peers" "$tools"
PATH=$PATH:$tools

# Nothing that comes along may start a service: a package's postinst asks this file.
quietly() {
    [ -n "$missing" ] || return 0
    policy=/usr/sbin/policy-rc.d clusters=/etc/postgresql-common/createcluster.conf
    made=no
    [ -e $policy ] || made=yes
    [ $made = no ] || as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy"
    [ -e $clusters ] ||
        as_root sh -c "mkdir -p ${clusters%/*} && echo 'create_main_cluster = false' >$clusters"
    wanted=$missing installed=yes
    install_missing || installed=no
    [ $made = no ] || as_root rm -f $policy
    for package in $wanted; do
        case $package in etcd-server | postgresql)
            as_root systemctl disable "${package%-server}" >/dev/null 2>&1 || : ;;
        esac
    done
    missing=
    [ $installed = yes ]
}

need_to_build
need_command ninja ninja-build
need_command python3 python3
command -v redis-server >/dev/null 2>&1 || need_command redis-check-rdb redis-tools
quietly
command -v redis-server >/dev/null 2>&1 ||
    ln -sf "$(command -v redis-check-rdb)" "$tools/redis-server"

# The peers, each by itself: one that cannot be had leaves the others.
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || missing=postgresql
quietly || echo "SKIPPED: PostgreSQL cannot be installed"
need_command strace strace
quietly || echo "SKIPPED: strace cannot be installed"
need_command etcd etcd-server
need_command etcdctl etcd-client
quietly || echo "SKIPPED: etcd cannot be installed"
need_command node nodejs
command -v npm >/dev/null 2>&1 || missing="$missing npm"
quietly || echo "SKIPPED: node and npm cannot be installed"
if [ ! -d "$peers/node_modules/redlock" ]; then
    cp tests/bench/peers/package.json "$peers/"
    (cd "$peers" && timeout 120 npm install --no-audit --no-fund --loglevel=error >npm.log 2>&1) ||
        echo "SKIPPED: npm cannot install redlock, see $peers/npm.log"
fi

# PostgreSQL does not run as root, and has to get to its folder.
if [ "$(id -u)" = 0 ] && [ -z "$(find / -maxdepth 0 -perm -0005)" ]; then
    chmod 755 /
fi

build() {
    cmake --preset release -B $build -G Ninja -DGAVEL_TESTS=OFF -DGAVEL_BENCH=ON && cmake --build $build
}
build >"$results/build.log" 2>&1 || { tail -n 30 "$results/build.log" >&2; exit 1; }

python=python3
[ ! -x /usr/bin/python3 ] || python=/usr/bin/python3
GAVEL_BIN=$PWD/$build GAVEL_BENCH_PEERS=$peers
export GAVEL_BIN GAVEL_BENCH_PEERS PYTHONDONTWRITEBYTECODE=1
cd tests
exec $python -m bench --out "$results" "$@"
