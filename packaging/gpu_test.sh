#!/usr/bin/env bash
# Tries kernels for NVIDIA GPUs on a machine that has one and need not have what a build needs.
#
#   packaging/gpu_test.sh pack FOLDER   after a build (build/release): what the other machine needs, some 35 MiB
#   FOLDER/gpu_test.sh                  there: each graph on the GPU against the interpreter, as it is, frozen and trained,
#                                       and the suites of gpu_tests (samples of operators, graphs, random graphs, numbers)
#   FOLDER/gpu_test.sh sanitize         the sample models under compute-sanitizer: memory, races, barriers
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
    for one in bin/cutaway-cli bin/cutaway-worker tests/gpu_tests; do
        strip -o "$work/bin/$(basename "$one")" "$top/build/release/$one"
    done
    mkdir -p "$work/tests/data"
    cp -r "$top/tests/data/ops" "$work/tests/data/"
    # The C library and the loader are the other machine's.
    for one in "$work"/bin/*; do ldd "$one" | awk '$3 ~ /^\// {print $3}'; done | sort -u |
        grep -vE '/(libc|libm|libpthread|libdl|librt)\.so' | while read -r one; do cp -L "$one" "$work/lib/"; done
    tar -C "$work" -cf - bin lib tests | xz --x86 --lzma2=preset=9e -T2 >"$made/programs.tar.xz"
    rm -rf "$work"
    cp "$top"/resources/models/*.pt2 "$made/graphs/"
    for one in "$top"/tests/data/exports/*/model.pt2; do cp "$one" "$made/graphs/$(basename "$(dirname "$one")").pt2"; done
    cp "${BASH_SOURCE[0]}" "$made/gpu_test.sh"
    du -sh "$made"
}

# Leaves `work`, with the programs on PATH.
unpack() {
    work=$(mktemp -d)
    trap "rm -rf '$work'" EXIT
    tar -C "$work" -xJf "$here/programs.tar.xz"
    export PATH=$work/bin:$PATH LD_LIBRARY_PATH=$work/lib:${LD_LIBRARY_PATH:-} CUTAWAY_WORKER=$work/bin/cutaway-worker
    export CUTAWAY_TEST_FILES=$work/tests QT_QPA_PLATFORM=offscreen
}

sanitize() {
    local failed=0 tool graph
    command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not there: it comes with the CUDA Toolkit" >&2; exit 1; }
    unpack
    # The tool writes to files, one a worker: what a worker prints is read by the program that asked it. Asking a module for
    # a name that it may not have is not an error, and a worker is ended before the tool has summed up.
    printf '#!/bin/sh\nexec compute-sanitizer --tool "$TOOL" --report-api-errors no --log-file "%s/logs/$$" --error-exitcode 86 "%s/bin/cutaway-worker" "$@"\n' \
        "$work" "$work" >"$work/sanitized"
    chmod +x "$work/sanitized"
    for tool in memcheck racecheck synccheck; do
        for graph in "$here"/graphs/{mlp,tiny_resnet,tiny_transformer}.pt2; do
            rm -rf "$work/logs" && mkdir "$work/logs"
            if ! TOOL=$tool CUTAWAY_WORKER=$work/sanitized timeout 600 cutaway-cli run "$graph" --backend cuda --device cuda \
                --cache off >"$work/said" 2>&1 || [ -z "$(ls "$work/logs")" ] ||
                cat "$work"/logs/* | grep -qE 'Invalid|out of bounds|Race reported|hazard|[Bb]arrier error'; then
                failed=$((failed + 1))
                echo "FAIL  $(basename "$graph"), $tool"
                tail -n 4 "$work/said" "$work"/logs/* | sed 's/^/      /'
            fi
        done
    done
    echo "compute-sanitizer: $failed failed"
    [ "$failed" -eq 0 ]
}

try() {
    local failed=0 tried=0 graph
    unpack
    for graph in "$here"/graphs/*; do
        tried=$((tried + 1))
        if ! timeout 300 cutaway-cli checked-run "$graph" --backend cuda >"$work/said" 2>&1; then
            failed=$((failed + 1))
            echo "FAIL  $(basename "$graph")"
            tail -n 4 "$work/said" | sed 's/^/      /'
        fi
        tried=$((tried + 1))
        if ! timeout 300 cutaway-cli checked-run "$graph" --backend cuda --freeze >"$work/said" 2>&1; then
            failed=$((failed + 1))
            echo "FAIL  $(basename "$graph"), frozen"
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
    gpu_tests gpu_samples_test >"$work/said" 2>&1 || { failed=$((failed + 1)); grep -A4 '^FAIL' "$work/said"; }
    grep -h 'calls, ' "$work/said" || true
    gpu_tests gpu_numbers_test >"$work/said" 2>&1 || { failed=$((failed + 1)); grep -A4 '^FAIL' "$work/said"; }
    [ "$failed" -eq 0 ]
}

case ${1:-} in
    pack) pack "${2:?packaging/gpu_test.sh pack FOLDER}" ;;
    '') try ;;
    sanitize) sanitize ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
