#!/usr/bin/env bash
# Tries kernels for NVIDIA GPUs on a machine that has one and need not have what a build needs.
#
#   packaging/gpu_test.sh pack FOLDER   after a build (build/release): what the other machine needs, some 30 MiB
#   FOLDER/gpu_test.sh                  there: each graph on the GPU against the interpreter, inference and training
#
# There it needs the driver, NVRTC and cuBLASLt of CUDA 12 or 13 (found by the loader, CUDA_HOME or LD_LIBRARY_PATH) and xz.
# Exit status: 1 where a result differs or a run fails.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

pack() {
    local top=$here/.. made=$1 one
    mkdir -p "$made/graphs"
    made=$(cd "$made" && pwd)
    local work
    work=$(mktemp -d)
    mkdir -p "$work/bin" "$work/lib"
    for one in cutaway-cli cutaway-worker; do strip -o "$work/bin/$one" "$top/build/release/bin/$one"; done
    # The C library and the loader are the other machine's.
    for one in "$work"/bin/*; do ldd "$one" | awk '$3 ~ /^\// {print $3}'; done | sort -u |
        grep -vE '/(libc|libm|libpthread|libdl|librt)\.so' | while read -r one; do cp -L "$one" "$work/lib/"; done
    tar -C "$work" -cf - bin lib | xz -6 -T0 >"$made/programs.tar.xz"
    rm -rf "$work"
    cp "$top"/resources/models/*.pt2 "$made/graphs/"
    for one in "$top"/tests/data/exports/*/model.pt2; do cp "$one" "$made/graphs/$(basename "$(dirname "$one")").pt2"; done
    cp "${BASH_SOURCE[0]}" "$made/gpu_test.sh"
    du -sh "$made"
}

try() {
    local work failed=0 tried=0 graph
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    tar -C "$work" -xJf "$here/programs.tar.xz"
    export PATH=$work/bin:$PATH LD_LIBRARY_PATH=$work/lib:${LD_LIBRARY_PATH:-} CUTAWAY_WORKER=$work/bin/cutaway-worker
    for graph in "$here"/graphs/*; do
        tried=$((tried + 1))
        if ! timeout 300 cutaway-cli checked-run "$graph" --backend cuda >"$work/said" 2>&1; then
            failed=$((failed + 1))
            echo "FAIL  $(basename "$graph")"
            tail -n 4 "$work/said" | sed 's/^/      /'
        fi
        # A graph that has gradients: the interpreter's are what the GPU's are compared with.
        timeout 300 cutaway-cli run "$graph" --mode training --device cuda --gradients "$work/expected" >/dev/null 2>&1 || continue
        tried=$((tried + 1))
        if ! timeout 300 cutaway-cli run "$graph" --mode training --backend cuda --expect-gradients "$work/expected" \
            >"$work/said" 2>&1; then
            failed=$((failed + 1))
            echo "FAIL  $(basename "$graph"), trained"
            tail -n 4 "$work/said" | sed 's/^/      /'
        fi
    done
    echo "$tried runs, $failed failed"
    [ "$failed" -eq 0 ]
}

case ${1:-} in
    pack) pack "${2:?packaging/gpu_test.sh pack FOLDER}" ;;
    '') try ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
