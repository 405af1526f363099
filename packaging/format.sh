#!/usr/bin/env bash
# Formats all C++ as .clang-format says, with the clang-format of Debian 12 (other versions differ in details).
# Usage: packaging/format.sh [--check] [FILE...]   --check changes nothing, lists what differs and fails if anything does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=-i
if [ "${1:-}" = --check ]; then
    mode="--dry-run --Werror"
    shift
fi
formatter=$(command -v clang-format-14) || { echo "format: install clang-format-14" >&2; exit 1; }
{ if [ $# -gt 0 ]; then printf '%s\n' "$@"; else git ls-files '*.cpp' '*.h' '*.cu'; fi; } | grep -v '^tests/data/' |
    xargs -r -P "$(nproc)" -n 40 "$formatter" $mode
