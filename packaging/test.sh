#!/usr/bin/env bash
# Builds Cutaway and runs all tests. Usage: packaging/test.sh [ctest arguments]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
export QT_QPA_PLATFORM=offscreen
ctest --preset release -j "$(nproc)" "$@"
# A run of everything may skip what is expected, and no more.
[ $# -gt 0 ] || packaging/skipped.sh build/release
