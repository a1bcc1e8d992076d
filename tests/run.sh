#!/bin/sh
# sh tests/run.sh [--long] [all|unit|lint]
#
#   all    (the default) installs what is missing, builds with gcc, once with AddressSanitizer and
#          UndefinedBehaviorSanitizer and once as it is shipped, runs every test, and fuzzes what
#          reads bytes (a build by clang); builds the image without a daemon, where it can
#   unit   builds, and runs the unit tests alone
#   lint   a second compiler's warnings, clang-tidy and the format, where clang is there
#   --long adds what takes long: a million schedules, valgrind, more rounds of what repeats; faults
#          planted in the core, a build with ThreadSanitizer, and how much of the code the tests cover
#
# Root or sudo is needed only while something is missing.
set -eu
cd "$(dirname "$0")/.."
. deploy/packages.sh

what=all
for argument in "$@"; do
    case $argument in
    --long) export GAVEL_LONG=1 ;;
    all | unit | lint) what=$argument ;;
    *) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
    esac
done

logs=build/logs
tools=$PWD/build/tools # what the tests run and no package of ours brings into PATH
PATH=$PATH:$tools
mkdir -p $logs "$tools"
times=$logs/times
: >$times
jobs=$(nproc)

# stage NAME COMMAND...: runs it, and writes down how long it took.
stage() {
    name=$1
    shift
    echo "== $name"
    begun=$(date +%s)
    "$@" || { echo "tests/run.sh: $name failed" >&2; exit 1; }
    took=$(($(date +%s) - begun))
    printf '%-44s %3d min %02d s\n' "$name" $((took / 60)) $((took % 60)) >>$times
}

# Debian's own python, even where another comes first in PATH and has no pytest.
has_pytest() {
    for python in /usr/bin/python3 python3; do
        command -v $python >/dev/null 2>&1 && $python -c 'import pytest' 2>/dev/null && return 0
    done
    return 1
}

# promtool comes in the package of the Prometheus server, which would be started and enabled: only
# the one program is taken out of it, nothing is installed.
fetch_promtool() {
    command -v promtool >/dev/null 2>&1 && return 0
    echo "Will fetch promtool (19 MB, into build/tools)"
    mkdir -p "$tools/fetch"
    (
        cd "$tools/fetch" &&
            { apt-get -qq download prometheus 2>/dev/null ||
                { as_root apt-get -qq update && apt-get -qq download prometheus; }; } &&
            dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xf - ./usr/bin/promtool &&
            mv usr/bin/promtool "$tools/promtool"
    ) || return 1
    rm -rf "$tools/fetch"
}

# libFuzzer comes in a package of its own, which has clang's version in its name.
need_fuzzer() {
    [ -e "$(clang -print-runtime-dir)/libclang_rt.fuzzer-$(uname -m).a" ] ||
        missing="$missing libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
}

# PostgreSQL and PgBouncer for the tests, and no service of them: no cluster is made, nothing starts.
need_postgres() {
    ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || missing="$missing postgresql"
    [ -x /usr/sbin/pgbouncer ] || missing="$missing pgbouncer"
    command -v ip >/dev/null 2>&1 || missing="$missing iproute2"
}

# What the clients are written in.
need_languages() {
    need_command go golang-go
    need_command node nodejs
    need_command javac default-jdk-headless
}

# What builds images and runs pods without a daemon. Only root can, and not on every machine.
need_containers() {
    [ "$(id -u)" = 0 ] || return 0
    for program in buildah podman runc debootstrap catatonit; do
        need_command $program $program
    done
    [ -d /usr/lib/cni ] || missing="$missing containernetworking-plugins"
}

# install_missing, while nothing that comes along may start a service.
install_quietly() {
    policy=/usr/sbin/policy-rc.d clusters=/etc/postgresql-common/createcluster.conf
    case $missing in
    *postgresql* | *pgbouncer* | *podman*) ;;
    *) install_missing; return ;;
    esac
    wanted=$missing had_policy=no
    [ ! -e $policy ] || had_policy=yes
    [ $had_policy = yes ] || as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy"
    case $missing in *postgresql*)
        [ -e $clusters ] || as_root sh -c "mkdir -p ${clusters%/*} && echo 'create_main_cluster = false' >$clusters" ;;
    esac
    installed=yes
    install_missing || installed=no
    [ $had_policy = yes ] || as_root rm -f $policy
    for package in $wanted; do
        case $package in
        postgresql | pgbouncer) as_root systemctl disable "$package" >/dev/null 2>&1 || : ;;
        podman)
            for unit in podman.service podman.socket podman-restart.service \
                podman-auto-update.service podman-auto-update.timer; do
                as_root systemctl disable $unit >/dev/null 2>&1 || :
            done ;;
        esac
    done
    [ $installed = yes ]
}

# PostgreSQL does not run as root, and some tests ask as another user: they have to get anywhere.
open_the_root() {
    if [ "$(id -u)" = 0 ] && [ -z "$(find / -maxdepth 0 -perm -0005)" ]; then
        echo "Other users cannot enter /: chmod 755 /"
        chmod 755 /
    fi
}

install_all() {
    open_the_root
    need_to_build
    need_library cmocka libcmocka-dev
    need_command openssl openssl
    has_pytest || missing="$missing python3-pytest"
    /usr/bin/python3 -c 'import yaml' 2>/dev/null || missing="$missing python3-yaml"
    command -v redis-server >/dev/null 2>&1 || need_command redis-check-rdb redis-tools
    [ "$what" = lint ] || need_postgres
    [ "$what" = lint ] || need_command spin spin
    [ "$what" != all ] || { need_command clang clang; need_languages; }
    [ -z "${GAVEL_LONG:-}" ] || need_command valgrind valgrind
    install_quietly || return 1
    if [ "$what" = all ]; then
        need_fuzzer
        install_missing || return 1
    fi
    # Debian's redis-tools holds the server's program too, under another name and without a service.
    command -v redis-server >/dev/null 2>&1 ||
        ln -sf "$(command -v redis-check-rdb)" "$tools/redis-server"
    [ "$what" != all ] || fetch_promtool || return 1
    if [ "$what" = all ]; then
        need_containers
        install_quietly || { missing=; echo "SKIPPED: image: its tools cannot be installed"; }
    fi
}

build() {
    configure_and_build "$1" $logs/"$1".log -DGAVEL_TESTS=ON
}

lint() {
    if ! command -v clang >/dev/null 2>&1; then
        echo "SKIPPED: no clang here (packages clang, clang-tidy and clang-format)"
        return 0
    fi
    if [ "$1" = quick ]; then
        configure_and_build clang $logs/clang.log -- gavel gavelctl
        return
    fi
    build clang || return 1
    if ! command -v clang-tidy >/dev/null 2>&1; then
        echo "SKIPPED: no clang-tidy here"
        return 0
    fi
    # One file a call: clang-tidy 14 takes the va_lists of a second one for uninitialized.
    find sidecar health -name '*.c' -print0 |
        xargs -0 -P "$jobs" -n 1 clang-tidy --quiet -p build/clang >$logs/tidy.log 2>&1 ||
        { grep -E 'error|warning' $logs/tidy.log >&2; return 1; }
}

if [ "$what" = unit ]; then
    stage "install what is missing" install_all
    stage "build (asan)" build asan
    cat $times
    exec ctest --test-dir build/asan -L '^unit$' -j $((jobs * 2)) --output-on-failure
fi
if [ "$what" = lint ]; then
    stage "install what is missing" install_all
    stage "clang, clang-tidy" lint full
    exit 0
fi

stage "install what is missing" install_all
stage "build (asan)" build asan
stage "build (release)" build release
stage "lint: clang's warnings" lint quick
stage "build (fuzz)" build fuzz

stage "image, Kubernetes' types" sh tests/deploy/prepare.sh

# One ctest over all builds, so that its summary is about all of them.
mkdir -p build/all
printf 'subdirs("%s/build/asan" "%s/build/release" "%s/build/fuzz")\n' "$PWD" "$PWD" "$PWD" \
    >build/all/CTestTestfile.cmake
names() {
    ctest --test-dir build/all -N "$@" | sed -n 's/^ *Test *#[0-9]*: //p' | sort -u
}
# What has its times asserted runs first, and nothing beside it that does more than to wait.
names -L '^timed$' >$logs/timed
names -LE '^timed$' >$logs/others
printf 'set_tests_properties(%s PROPERTIES DEPENDS "%s")\n' "$(tr '\n' ' ' <$logs/others)" \
    "$(paste -sd ';' $logs/timed)" >>build/all/CTestTestfile.cmake
# The summary is held back until the times have been printed.
tests() {
    { ctest --test-dir build/all -j $((jobs + 1)) --output-on-failure --no-tests=error </dev/null 2>&1 ||
        echo failed >$logs/failed; } | tee $logs/ctest.log |
        sed -u '/tests passed, .* failed out of/,$d'
}
rm -f $logs/failed
stage "tests: unit, simulation, contract, end-to-end" tests

# What only --long does. It is quick by its own means: GAVEL_LONG is for the tests above.
planted_faults() {
    tests/sim/score.py >$logs/score.log 2>&1 || { cat $logs/score.log >&2; return 1; }
    tail -n 1 $logs/score.log
}
threads() {
    env -u GAVEL_LONG ctest --preset tsan >$logs/tsan.log 2>&1 || { cat $logs/tsan.log >&2; return 1; }
}
coverage() {
    env -u GAVEL_LONG tests/coverage.py --all >$logs/coverage.log 2>&1 ||
        { tail -n 200 $logs/coverage.log >&2; return 1; }
    tail -n 1 $logs/coverage.log
}
# The others run all the same when one has failed.
also() {
    (stage "$@") || echo failed >$logs/failed
}
if [ -n "${GAVEL_LONG:-}" ]; then
    also "planted faults" planted_faults
    also "build (tsan)" build tsan
    also "ThreadSanitizer" threads
    also "build (coverage)" build coverage
    also "coverage" coverage
fi
echo
echo "What was measured (asan, then release):"
grep -hE '^[a-z]+: RssAnon|taken over after|^(image|pod|systemd): ' build/all/Testing/Temporary/LastTest.log || :
echo
echo "How long it took:"
cat $times
echo
sed -n '/tests passed, .* failed out of/,$p' $logs/ctest.log
[ ! -e $logs/failed ]
