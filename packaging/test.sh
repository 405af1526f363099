#!/usr/bin/env bash
# Builds Cutaway and runs all tests. Usage: packaging/test.sh [ctest arguments]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
export QT_QPA_PLATFORM=offscreen
status=0
ctest --preset release -j "$(nproc)" "$@" || status=$?
log=build/release/Testing/Temporary/LastTest.log
if [ -f "$log" ]; then
    echo "Took longest (seconds; tests/CMakeLists.txt lists those that begin first):"
    awk '/^[0-9]+\/[0-9]+ Testing: / { suite = $3 }
         /^Test time = / { printf "%8.1f %s\n", $4, suite }' "$log" | sort -rn | sed -n 1,10p
fi
[ "$status" -eq 0 ] || exit "$status"
# A run of everything may skip what is expected, and no more.
[ $# -gt 0 ] || packaging/skipped.sh build/release
