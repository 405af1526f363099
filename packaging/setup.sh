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
    libopenblas-serial-dev                  # linear algebra: LAPACK, on the fast one of Debian's BLAS libraries
    libboost-dev coinor-libcbc-dev           # minimum cuts and exact knapsacks of the partitioner
    libsqlite3-dev                          # measured values that are kept from run to run
    libsimdjson-dev zlib1g-dev              # reading .pt2
    nlohmann-json3-dev libcli11-dev         # the command line
    libtomlplusplus-dev                     # what a batch is asked for
    libmimalloc-dev                         # faster allocation on large graphs
    python3 python3-numpy                   # plugins in Python, and the example that calls an exported library
    libprotobuf-dev protobuf-compiler       # the sample plugin that reads ONNX
    fonts-dejavu-core                       # a font for pictures made without a desktop
)

# One question for all of them: this runs before every start.
present=" $(dpkg-query -W -f='${Package}:${Status} ' "${packages[@]}" "${tools[@]}" 2>/dev/null || true)"
missing=()
for package in "${packages[@]}" "${tools[@]}"; do
    [[ $present == *" $package:install ok installed "* ]] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    echo "Installing from Debian, a minute or two: ${missing[*]}"
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { echo "These packages are missing and need root to install: ${missing[*]}" >&2; exit 1; }
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

export CCACHE_SLOPPINESS=pch_defines,time_macros  # lets ccache serve files that use the precompiled header
# CMake runs by itself where a CMakeLists.txt has changed, and has to be told of the presets.
if [ ! -f build/release/build.ninja ] || [ CMakePresets.json -nt build/release/CMakeCache.txt ]; then
    cmake --preset release >/dev/null
    touch build/release/CMakeCache.txt
fi
build=(ninja -C build/release "${targets[@]}")
steps=$("${build[@]}" -n | grep -c '^\[' || true)
if [ "$steps" -gt 5 ]; then
    # A step takes some five seconds of a core, some of an old or a shared one more.
    echo "Building Cutaway: $steps steps, about $((1 + steps * 5 / 60 / $(nproc))) to $((1 + steps * 9 / 60 / $(nproc))) minutes with $(nproc) cores."
fi
if [ "$steps" -gt 0 ]; then
    NINJA_STATUS='%f steps done, %u left, %e s: ' "${build[@]}" || exit
fi
