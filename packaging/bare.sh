#!/usr/bin/env bash
# Runs a command in a bare Debian, so that no package list is right only because a machine happens to have more: a root
# made by debootstrap from this machine's own package sources, with a clone of HEAD (and of ../shared, if it is there) in
# it. Everything is unmounted and removed afterwards, whatever happens.
#
#   packaging/bare.sh [--user] [--keep FOLDER] COMMAND [ARGUMENT...]
#
#   --user         run COMMAND as an ordinary user with sudo, not as root
#   --keep FOLDER  copy what COMMAND left in its folder `kept` to FOLDER
#
# Needs root, debootstrap, unshare (util-linux) and git. The compiler cache of this machine is shared (another user gets a
# copy of it), nothing else.
# Exit status: COMMAND's; 125 when the root could not be made.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
    sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
}
give_up() {
    echo "bare.sh: $*" >&2
    exit 125
}

user=root keep=
while [ $# -gt 0 ]; do
    case $1 in
        --user) user=builder ;;
        --keep) [ $# -ge 2 ] || usage; mkdir -p "$2"; keep=$(cd "$2" && pwd); shift ;;
        -*) usage ;;
        *) break ;;
    esac
    shift
done
[ $# -ge 1 ] || usage
[ "$(id -u)" -eq 0 ] || give_up "only root can make a root; use sudo"
for tool in debootstrap unshare git apt-get; do
    command -v "$tool" >/dev/null || PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || give_up "'$tool' is not installed"
done
export PATH=$PATH:/usr/sbin:/sbin

# The sources that this machine installs Debian's own packages from, in whatever form they are written down.
sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)|$(ORIGIN)' 'Created-By: Packages' |
    sed -n 's/|Debian$//p' | sort -u)
[ -n "$sources" ] || give_up "no package source of Debian is known here; run 'apt-get update' first"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(awk -v suite="$suite" '$3 == suite {print $2; exit}' <<<"$sources")
[ -n "$mirror" ] || give_up "no package source for Debian $suite"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/cutaway-bare-XXXXXX")
root=$work/root
running=
clean() {
    trap '' INT TERM HUP
    [ -z "$running" ] || kill -KILL "$running" 2>/dev/null || true # takes its processes and mounts along
    wait 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

echo "bare.sh: making a bare Debian $suite" >&2
extra=sudo
[ "$user" = root ] && extra=
case $sources in *https:*) extra=${extra:+$extra,}ca-certificates ;; esac
debootstrap --variant=minbase ${extra:+"--include=$extra"} "$suite" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 &
running=$!
wait "$running" || { tail -n 5 "$work/debootstrap.log" >&2; give_up "debootstrap failed"; }
running=

echo "$sources" >"$root/etc/apt/sources.list"
apt-config dump | grep -E '^Acquire::([a-z]+::Proxy|Check-Valid-Until|Check-Date|Retries|Languages)' >"$root/etc/apt/apt.conf.d/90host" || true
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
case $sources in *https:*) cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" ;; esac

mkdir -p "$root/src" "$root/ccache"
# safe.directory: git would refuse a working tree that another user owns; the caller has named this one.
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' git clone --quiet --no-hardlinks "$top" "$root/src/cutaway"
if [ "$user" != root ]; then
    chroot "$root" useradd --create-home --shell /bin/bash "$user"
    echo "$user ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/$user"
fi
shared=
[ ! -d "$top/../shared" ] || { shared=$(cd "$top/../shared" && pwd); mkdir "$root/src/shared"; }
chroot "$root" chown -R "$user:" /src/cutaway
cache=${CCACHE_DIR:-${HOME:-/root}/.cache/ccache}
caching=
if [ -d "$cache" ]; then
    caching=yes
    if [ "$user" != root ]; then # another user may not write to it
        cp -a "$cache/." "$root/ccache/"
        chroot "$root" chown -R "$user:" /ccache
        cache=
    fi
else
    cache=
fi

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
[ -z "$shared" ] || mount --bind -o ro "$shared" "$root/src/shared"
[ -z "$cache" ] || mount --bind "$cache" "$root/ccache"
exec chroot "$root" /usr/bin/env -i "$@"'
environment=(HOME=/root USER="$user" LOGNAME="$user" LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
[ "$user" = root ] || environment+=(HOME="/home/$user")
[ -z "$caching" ] || environment+=(CCACHE_DIR=/ccache CCACHE_BASEDIR=/src CCACHE_NOHASHDIR=1)
[ -z "${CI:-}" ] || environment+=(CI="$CI")
become=()
[ "$user" = root ] || become=(setpriv --reuid "$user" --regid "$user" --init-groups)

echo "bare.sh: running $* as $user" >&2
root=$root shared=$shared cache=$cache unshare --mount --pid --fork --kill-child -- \
    bash -euc "$inside" bash "${environment[@]}" "${become[@]}" sh -c 'cd /src/cutaway && exec "$@"' sh "$@" </dev/null &
running=$!
status=0
wait "$running" || status=$?
running=
[ -z "$keep" ] || [ ! -d "$root/src/cutaway/kept" ] || cp -a "$root/src/cutaway/kept/." "$keep/"
exit "$status"
