#!/usr/bin/env bash
# Runs a command in a bare Debian, so that no package list is right only because a machine happens to have more: a root
# made by debootstrap from this machine's own package sources (root.sh), with a clone of HEAD (and of ../shared, if it is
# there) in it. Everything is unmounted and removed afterwards, whatever happens.
#
#   packaging/bare.sh [--user] [--keep FOLDER] COMMAND [ARGUMENT...]
#
#   --user         run COMMAND as an ordinary user with sudo, not as root
#   --keep FOLDER  copy what COMMAND left in its folder `kept` to FOLDER
#
# Needs root, debootstrap, unshare (util-linux) and git. The compiler cache of this machine is shared (another user gets a
# copy of it), nothing else.
# Exit status: COMMAND's; 125 when the root could not be made.
me=bare.sh
source "$(dirname "${BASH_SOURCE[0]}")/root.sh"
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
    sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

keep=
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
command -v git >/dev/null || give_up "'git' is not installed"
extra=(sudo)
[ "$user" = root ] && extra=()
make_root '' "${extra[@]}"

mkdir -p "$root/src" "$root/ccache"
# safe.directory: git would refuse a working tree that another user owns; the caller has named this one.
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' git clone --quiet --no-hardlinks "$top" "$root/src/cutaway"
if [ "$user" != root ]; then
    chroot "$root" useradd --create-home --shell /bin/bash "$user"
    echo "$user ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/$user"
fi
if [ -d "$top/../shared" ]; then
    mkdir "$root/src/shared"
    mounts+=("$(cd "$top/../shared" && pwd):/src/shared:ro")
fi
chroot "$root" chown -R "$user:" /src/cutaway
cache=${CCACHE_DIR:-${HOME:-/root}/.cache/ccache}
if [ -d "$cache" ]; then
    environment+=(CCACHE_DIR=/ccache CCACHE_BASEDIR=/src CCACHE_NOHASHDIR=1)
    if [ "$user" != root ]; then # another user may not write to it
        cp -a "$cache/." "$root/ccache/"
        chroot "$root" chown -R "$user:" /ccache
    else
        mounts+=("$cache:/ccache")
    fi
fi
[ -z "${CI:-}" ] || environment+=(CI="$CI")

echo "bare.sh: running $* as $user" >&2
status=0
in_root sh -c 'cd /src/cutaway && exec "$@"' sh "$@" || status=$?
[ -z "$keep" ] || [ ! -d "$root/src/cutaway/kept" ] || cp -a "$root/src/cutaway/kept/." "$keep/"
exit "$status"
