#!/bin/sh
# sh docker/rootfs.sh BUILD FOLDER: installs the programs of a build into FOLDER and brings what they
# need to run along: shared libraries with their licences, the authorities that TLS is verified by,
# and the few files that libc reads. Runs in the image's build stage.
set -eu
build=$1 root=$2

DESTDIR=$root cmake --install "$build" --component gavel --strip >/dev/null

# The same paths as in Debian, where /lib is a link to /usr/lib, and so is /lib64 on some machines.
for link in lib lib64; do
    [ ! -L /$link ] || cp -P /$link "$root/$link"
done

# bring FILE: under its own name, the file that it links to.
bring() {
    install -D "$(readlink -f "$1")" "$root/$1"
    package=$(dpkg-query -S "$(readlink -f "$1")" 2>/dev/null || dpkg-query -S "${1#/usr}")
    package=${package%%:*}
    [ -e "$root/usr/share/doc/$package/copyright" ] && return
    install -D -m 0644 "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
    mkdir -p "$root/var/lib/dpkg/status.d" # where scanners for known faults look
    dpkg-query -s "$package" >"$root/var/lib/dpkg/status.d/$package"
}

ldd "$root/usr/bin/gavel" | sed -n -e 's/.*=> \(\/[^ ]*\).*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p' |
    while read -r library; do
        case $library in
        /lib*) library=/usr$library ;;
        esac
        bring "$library"
    done

install -D -m 0644 /etc/ssl/openssl.cnf "$root/etc/ssl/openssl.cnf"
install -D -m 0644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
mkdir -p "$root/usr/lib/ssl"
ln -s /etc/ssl/certs "$root/usr/lib/ssl/certs"
ln -s /etc/ssl/certs/ca-certificates.crt "$root/usr/lib/ssl/cert.pem"
ln -s /etc/ssl/openssl.cnf "$root/usr/lib/ssl/openssl.cnf"

cat >"$root/etc/passwd" <<END
root:x:0:0:root:/:/sbin/nologin
gavel:x:65532:65532:gavel:/:/sbin/nologin
END
printf 'root:x:0:\ngavel:x:65532:\n' >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"

# Where socket and pages are: mount a tmpfs, or a volume shared with the application. A tmpfs is root's
# and takes the mode of what it is mounted over, so everybody may write here.
install -d -m 1777 -o 65532 -g 65532 "$root/run/gavel"
install -d -m 1777 "$root/tmp"
