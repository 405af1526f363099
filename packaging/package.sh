#!/usr/bin/env bash
# Builds Cutaway and makes build/release/cutaway_VERSION_ARCHITECTURE.deb, for the Debian that it runs on: names and versions
# of libraries differ from one to the next. Install it by `sudo apt install ./FILE`; packaging/try_package.sh tries it.
# Usage: packaging/package.sh
set -euo pipefail
targets=(cutaway cutaway-layout cutaway-cli cutaway-worker cutaway-man)
tools=(
    dpkg-dev file # which packages hold the libraries that a program is linked with
)
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
# Where there is git, the same commit makes the same file.
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || date +%s)}"
export SOURCE_DATE_EPOCH
log=build/release/package.log
cpack --config build/release/CPackConfig.cmake -B build/release >"$log" 2>&1 || {
    cat "$log" >&2
    echo "package: cpack failed; its log is $log" >&2
    exit 1
}
rm -rf build/release/_CPack_Packages
sed -n "s|^CPack: - package: $PWD/\(.*\) generated.*|\1|p" "$log"
