#!/usr/bin/env bash
# Counts the rows that tests have skipped, suite by suite, and holds them to tests/skipped.txt: a row that skips without
# being expected to fails. Usage: packaging/skipped.sh BUILD_FOLDER   after ctest ran everything there.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
log=$1/Testing/Temporary/LastTest.log
[ -f "$log" ] || { echo "skipped: no $log" >&2; exit 1; }
shared=${CUTAWAY_SHARED:-$top/../shared}
[ -d "$shared/reference" ] && with=1 || with=0
awk -v with="$with" '
    FNR == NR { if ($0 !~ /^#/ && NF >= 3) { most[$1] = with ? $2 : $3 } next }
    /Start testing of/ { suite = $5 }
    /^Totals:/ { count[suite] += $6 }
    END {
        for (suite in count) {
            total += count[suite]
            if (count[suite] > most[suite] + 0) {
                printf "skipped: %s skips %d rows, expected %d (tests/skipped.txt)\n", suite, count[suite], most[suite] > "/dev/stderr"
                bad = 1
            }
        }
        printf "%d rows skipped, each with its reason in the log\n", total
        exit bad
    }' "$top/tests/skipped.txt" "$log"
