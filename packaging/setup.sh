#!/usr/bin/env bash
# Installs what a bare Debian 12 lacks, and the packages of the array `tools`, and builds the release preset: everything, or
# what the array `targets` names. Sourced by run.sh, test.sh and package.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What the build and the tests need; the comments say for what.
packages=(
    g++ cmake ninja-build ccache            # the build; g++ also compiles generated kernels
    qt6-base-dev qt6-svg-dev libgl1-mesa-dev  # windows, icons, QtTest
    libgraphviz-dev pkg-config              # graph layout, and how CMake finds it
    libdnnl-dev                             # matrix products and convolutions on the CPU
    libboost-dev coinor-libcbc-dev           # minimum cuts and exact knapsacks of the partitioner
    libsqlite3-dev                          # measured values that are kept from run to run
    libsimdjson-dev zlib1g-dev              # reading .pt2
    nlohmann-json3-dev libcli11-dev         # the command line
    libmimalloc-dev                         # faster allocation on large graphs
    fonts-dejavu-core                       # a font for pictures made without a desktop
)

missing=()
for package in "${packages[@]}" "${tools[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    echo "Installing: ${missing[*]}"
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { echo "These packages are missing and need root to install: ${missing[*]}" >&2; exit 1; }
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

export CCACHE_SLOPPINESS=pch_defines,time_macros  # lets ccache serve files that use the precompiled header
cmake --preset release >/dev/null
cmake --build --preset release ${targets:+--target "${targets[@]}"}
