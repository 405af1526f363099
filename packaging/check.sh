#!/usr/bin/env bash
# Everything that must hold before a part is called done; CI runs what fits into its time (.ci/run).
#
#   packaging/check.sh [--base COMMIT] [STEP...]
#
#   format   all C++ is as .clang-format says
#   words    what is written keeps to the rules of packaging/words.py; COMMIT's numbers may only fall
#   tidy     clang-tidy on what changed since COMMIT (default: the commit before the last)
#   release  builds with warnings as errors, all tests, more generated code than usual under sanitizers
#   asan     address and undefined-behaviour sanitizers over the engine's tests
#   changed  the same, over the tests that changed since COMMIT and a few that touch everything
#   tsan     thread sanitizer over session, jobs and runtime
#   clang    builds everything with clang, and kernels and exported libraries of the release build
#   fuzz     builds the readers' fuzzers and replays their corpora
#   no-ui, no-cuda   builds without, all tests that are left
#
# Without STEP all of them but `changed`, one after the other; the exit status is 0 only if each passes. Needs clang,
# clang-tidy-14 and clang-format-14 beside what packaging/setup.sh installs.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export QT_QPA_PLATFORM=offscreen CCACHE_SLOPPINESS=pch_defines,time_macros
export TSAN_OPTIONS=${TSAN_OPTIONS:-suppressions=$PWD/tests/tsan.supp}
# What is freed is kept for a while, but not for half of the run.
export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=8:quarantine_size_mb=64:max_malloc_fill_size=0}
jobs=$(nproc)
base=HEAD~1
steps=()
while [ $# -gt 0 ]; do
    case $1 in
        --base) base=$2; shift ;;
        -*) sed -n '2,21s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
        *) steps+=("$1") ;;
    esac
    shift
done
[ ${#steps[@]} -gt 0 ] || steps=(format words tidy release asan tsan clang fuzz no-ui no-cuda)

# Files that changed and are still there.
changed() { git diff --name-only --diff-filter=d "$base" -- "$@"; }
build() { cmake --preset "$1" "${@:2}" >/dev/null && cmake --build "build/$1" -j "$jobs"; }
run() { ctest --test-dir "build/$1" --output-on-failure -j "$jobs" "${@:2}"; }

check_format() {
    packaging/format.sh --check || return 1
    # A reader follows two conditionals in a line, not three.
    if git ls-files '*.cpp' '*.h' | xargs grep -nP '^[^"/]*\s\?\s[^"]*\s\?\s[^"]*\s\?\s'; then
        echo "check: three conditionals in one line" >&2
        return 1
    fi
}
check_words() { python3 packaging/words.py --base "$base"; }
check_tidy() {
    local files
    # Of the preset dev, which compiles each file by itself. It reads no header that GCC has precompiled, and does not know all
    # of GCC's warnings.
    cmake --preset dev >/dev/null || return 1
    mapfile -t files < <(changed 'engine/*.cpp' 'app/*.cpp')
    mkdir -p build/tidy
    sed -E 's/-Winvalid-pch -include [^ ]+//' build/dev/compile_commands.json >build/tidy/compile_commands.json
    [ ${#files[@]} -eq 0 ] || printf '%s\n' "${files[@]}" |
        xargs -P "$jobs" -n 4 clang-tidy-14 --quiet --extra-arg=-Wno-unknown-warning-option -p build/tidy
}
check_release() { build release && CUTAWAY_SANITIZED=2 run release; }
check_asan() { build asan -DCUTAWAY_UI=OFF && run asan; }
check_changed() {
    local tests=(cases_test engine_session_test reproducer_test) file
    while read -r file; do tests+=("$(basename "$file" .cpp)"); done < <(changed 'tests/engine/*_test.cpp')
    cmake --preset asan -DCUTAWAY_UI=OFF >/dev/null || return 1
    # Suites are named like their files; targets of these names make what each needs. Some are not in this build.
    mapfile -t tests < <(printf '%s\n' "${tests[@]}" | sort -u | grep -Fx -f <(ctest --test-dir build/asan -N | sed -n 's/.*: //p'))
    cmake --build build/asan -j "$jobs" --target "${tests[@]}" &&
        run asan -R "^($(IFS='|'; echo "${tests[*]}"))$"
}
check_tsan() {
    local tests=(engine_session_test threads_test job_queue_test thread_pool_test worker_test)
    cmake --preset tsan >/dev/null && cmake --build build/tsan -j "$jobs" --target "${tests[@]}" &&
        run tsan -R "^($(IFS='|'; echo "${tests[*]}"))$"
}
# -Wcomma: no comma operator as control flow.
check_clang() {
    cmake --preset dev -B build/clang -DCUTAWAY_UNITY=ON -DCUTAWAY_SHARED_ENGINE=ON -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_CXX_FLAGS=-Wcomma >/dev/null || return 1
    cmake --build build/clang -j "$jobs" && build release &&
        CXX=clang++ ctest --preset release -j "$jobs" -R '^(lowering|codegen|cpu_backend|cpu_limits|fusion|random_kernels|export)_test$'
}
check_fuzz() {
    build fuzz || return 1
    local corpus
    for corpus in tests/fuzz/corpus/*/; do
        corpus=$(basename "$corpus")
        [ "$corpus" = arguments ] || build/fuzz/fuzz/fuzz_readers --format="$corpus" -runs=0 "tests/fuzz/corpus/$corpus" || return 1
    done
}
check_no-ui() { build no-ui && run no-ui; }
check_no-cuda() { build no-cuda && run no-cuda; }

failed=()
for step in "${steps[@]}"; do
    declare -F "check_$step" >/dev/null || { echo "check: no step named '$step'" >&2; exit 2; }
    echo "== $step"
    start=$SECONDS
    if "check_$step"; then echo "== $step passes ($((SECONDS - start)) s)"; else echo "== $step FAILS"; failed+=("$step"); fi
done
[ ${#failed[@]} -eq 0 ] || { echo "check: failed: ${failed[*]}" >&2; exit 1; }
