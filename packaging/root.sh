#!/usr/bin/env bash
# Makes a bare root of Debian from this machine's own package sources and runs a command in it. Everything is unmounted and
# removed afterwards, whatever happens. Sourced by bare.sh and try_package.sh, which set `me`, the name that messages begin
# with:
#
#   make_root [SUITE [PACKAGE...]]   sets `root`, its folder; SUITE is by default this machine's
#   in_root COMMAND [ARGUMENT...]    runs COMMAND in it, from / and without standard input, with nothing of this
#                                    machine's environment; returns its status
#
# in_root reads: `user`, who runs COMMAND (root); `environment`, more of `NAME=VALUE`; `mounts`, folders of this machine
# that are seen there, `FOLDER:PLACE` or `FOLDER:PLACE:ro`, where PLACE is a folder below `root`.
set -euo pipefail

user=root
environment=()
mounts=()
root=
running=

# 125 tells a root that could not be made from a command that failed.
give_up() {
    echo "$me: $*" >&2
    exit 125
}

clean_root() {
    trap '' INT TERM HUP
    [ -z "$running" ] || kill -KILL "$running" 2>/dev/null || true # takes its processes and mounts along
    wait 2>/dev/null || true
    [ -z "$root" ] || rm -rf --one-file-system "$(dirname "$root")"
}

make_root() {
    [ "$(id -u)" -eq 0 ] || give_up "only root can make a root; use sudo"
    export PATH=$PATH:/usr/sbin:/sbin
    local tool sources own suite mirror work include
    for tool in debootstrap unshare apt-get; do
        command -v "$tool" >/dev/null || give_up "'$tool' is not installed"
    done

    # The sources that this machine installs Debian's own packages from, in whatever form they are written down. Those of
    # another suite go by its name in place of this one's.
    sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)|$(ORIGIN)' 'Created-By: Packages' |
        sed -n 's/|Debian$//p' | sort -u)
    [ -n "$sources" ] || give_up "no package source of Debian is known here; run 'apt-get update' first"
    own=$(. /etc/os-release && echo "$VERSION_CODENAME")
    suite=${1:-$own}
    sources=$(sed -E "s/^(deb [^ ]+ )$own(-| )/\1$suite\2/" <<<"$sources")
    mirror=$(awk -v suite="$suite" '$3 == suite {print $2; exit}' <<<"$sources")
    [ -n "$mirror" ] || give_up "no package source for Debian $suite"
    shift || true

    work=$(mktemp -d "${TMPDIR:-/var/tmp}/cutaway-root-XXXXXX")
    root=$work/root
    trap clean_root EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP

    echo "$me: making a bare Debian $suite" >&2
    local extra=("$@")
    case $sources in *https:*) extra+=(ca-certificates) ;; esac
    include=$(IFS=,; echo "${extra[*]}")
    debootstrap --variant=minbase ${include:+"--include=$include"} "$suite" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 &
    running=$!
    wait "$running" || { tail -n 5 "$work/debootstrap.log" >&2; give_up "debootstrap failed"; }
    running=

    echo "$sources" >"$root/etc/apt/sources.list"
    apt-config dump | grep -E '^Acquire::([a-z]+::Proxy|Check-Valid-Until|Check-Date|Retries|Languages)' >"$root/etc/apt/apt.conf.d/90host" || true
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    case $sources in *https:*) cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" ;; esac
}

# Mounts are made in a namespace of their own and go with its first process; so do all processes started in it.
inside='
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
for name in null zero full random urandom tty; do : >"$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
ln -s pts/ptmx "$root/dev/ptmx"
for link in fd:/proc/self/fd stdin:/proc/self/fd/0 stdout:/proc/self/fd/1 stderr:/proc/self/fd/2; do
    ln -s "${link#*:}" "$root/dev/${link%%:*}"
done
while IFS=: read -r folder place options; do
    [ -z "$folder" ] || mount --bind -o "${options:-rw}" "$folder" "$root$place"
done <<<"$mounts"
exec chroot "$root" /usr/bin/env -i "$@"'

in_root() {
    local home=/root become=() status=0
    if [ "$user" != root ]; then
        home=/home/$user
        become=(setpriv --reuid "$user" --regid "$user" --init-groups)
    fi
    root=$root mounts=$(printf '%s\n' "${mounts[@]}") unshare --mount --pid --fork --kill-child -- \
        bash -euc "$inside" bash HOME="$home" USER="$user" LOGNAME="$user" LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        "${environment[@]}" "${become[@]}" "$@" </dev/null &
    running=$!
    wait "$running" || status=$?
    running=
    return "$status"
}
