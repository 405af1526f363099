#!/usr/bin/env bash
# Installs a package in a bare Debian (root.sh), uses all of it there as an ordinary user, removes it, and checks that nothing
# of it is left.
#
#   packaging/try_package.sh DEB [SUITE]     SUITE is by default this machine's Debian
#
# Needs root, debootstrap and unshare (util-linux).
# Exit status: 0 if all of it works; 125 when the root could not be made; else 1.
me=try_package.sh
source "$(dirname "${BASH_SOURCE[0]}")/root.sh"
[ $# -ge 1 ] && [ $# -le 2 ] && [ -f "$1" ] || { sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
package=$1
make_root "${2:-}"
cp "$package" "$root/cutaway.deb"
chroot "$root" useradd --create-home --shell /bin/bash tester

# try_step WHAT COMMAND...: WHAT is a sentence for whoever reads the log.
try_step() {
    echo "$me: $1" >&2
    in_root "${@:2}" || { echo "$me: FAILS: $1" >&2; exit 1; }
}

# Dependencies come first and by themselves, as apt would choose them, so that what the package adds can be told from what
# they do. What they only recommend is left out: the package has to work without.
try_step "its dependencies install" sh -euc '
    apt-get update -qq
    export DEBIAN_FRONTEND=noninteractive
    apt-get satisfy -y -qq --no-install-recommends "$(dpkg-deb --field /cutaway.deb Depends)" >/tmp/log ||
        { cat /tmp/log; exit 1; }'

# Every file with its rights, owner and contents, but for what apt and dpkg write of any package.
files='
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var/tmp -o -path /var/cache -o -path /var/log \
        -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /home/tester \) -prune -o -printf "%p %y %m %u:%g %l\n" \
        \( -type f -exec sha256sum {} + -o -true \) | LC_ALL=C sort'
in_root sh -c "$files" >"$root/../before"

try_step "it installs, and adds no other package" sh -euc '
    apt-get install -y --no-install-recommends /cutaway.deb | tee /tmp/log
    grep -q "^0 upgraded, 1 newly installed" /tmp/log
    dpkg --verify cutaway
    dpkg --listfiles cutaway'

try_step "the menu, file managers and man find it" sh -euc '
    grep "^Exec=cutaway %f" /usr/share/applications/cutaway.desktop
    test -s /usr/share/icons/hicolor/scalable/apps/cutaway.svg
    grep pt2 /usr/share/mime/globs
    grep "<id>" /usr/share/metainfo/cutaway.metainfo.xml
    for page in cutaway cutaway-cli; do gzip -dc /usr/share/man/man1/$page.1.gz | grep "^\.TH"; done
    test -s /usr/share/doc/cutaway/copyright'

user=tester
try_step "it says its version" sh -euc 'cd; cutaway-cli --version; cutaway --version'
try_step "it reads and runs a model" sh -euc '
    cd /usr/share/cutaway/models
    for model in *.pt2; do
        name=${model%.pt2}
        cutaway-cli info "$model" | head -n 5
        for backend in reference cpu; do
            cutaway-cli run "$model" --backend $backend --inputs $name.inputs.safetensors --expect $name.expected.safetensors
        done
    done'
try_step "it exports a program, and that runs" sh -euc '
    cd
    for model in /usr/share/cutaway/models/*.pt2; do
        name=$(basename "$model" .pt2)
        cutaway-cli export "$model" -o "$name" --name "$name" --inputs "${model%.pt2}.inputs.safetensors"
        cc -I "$name" "$name/main.c" -L "$name" -l "$name" -lm -Wl,-rpath,"$PWD/$name" -o "$name-main"
        ./"$name-main" --weights "$name/weights.safetensors" --inputs "$name/inputs.safetensors" \
            --expect "${model%.pt2}.expected.safetensors"
    done'
try_step "it makes a failing graph smaller" sh -euc '
    cd
    export CUTAWAY_FAULT=op@after:aten.relu.default:nan
    cutaway-cli minify /usr/share/cutaway/models/tiny_resnet.pt2 --check numbers -o small
    ls small'
try_step "its window draws a picture" sh -euc '
    cd
    QT_QPA_PLATFORM=offscreen cutaway --compile --screenshot picture.png /usr/share/cutaway/models/tiny_resnet.pt2
    test "$(stat -c %s picture.png)" -gt 10000'

user=root
try_step "it goes" sh -euc '
    apt-get purge -y cutaway
    ! ls /var/lib/dpkg/info | grep "^cutaway"
    ! dpkg-query --status cutaway 2>/dev/null'
in_root sh -c "$files" >"$root/../after"
if ! diff "$root/../before" "$root/../after" >&2; then
    echo "$me: FAILS: removing it does not leave the files as they were; those above differ" >&2
    exit 1
fi
echo "$me: $(basename "$package") installs, works and goes without a trace" >&2
