#!/usr/bin/env bash
# OpenBLAS 0.3.21 as Debian 12's libopenblas0-serial: the build without threads of its own is not safe to call from two threads
# at once. Two dgemm on separate matrices give wrong numbers, without an error; one thread alone never does. A guess from
# memory says that a serial BLAS has no shared state, and that "serial" is the variant to take under a thread pool of one's
# own (its buffers are shared, and their lock is compiled in only with USE_LOCKING=1).
#
# Seen: "one thread: 0 wrong of 4000; two threads: some wrong"
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -q libopenblas0-serial=0.3.21+ds-4 libopenblas-serial-dev=0.3.21+ds-4 >/dev/null
for package in *.deb; do dpkg -x "$package" root; done
cat >two.cpp <<'CPP'
#include <cblas.h>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>
int wrongOf(int rounds, int threads) {
    std::atomic<int> wrong{0};
    const auto body = [&](int number) {
        const int n = 96 + 8 * number;
        std::vector<double> a(n * n), b(n * n), first(n * n), c(n * n);
        for (int i = 0; i < n * n; ++i) a[i] = i % 7 - 3, b[i] = i % 5 - 2;
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j) {
                double sum = 0;
                for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
                first[i * n + j] = sum;  // whole numbers: exact in any order
            }
        for (int round = 0; round < rounds; ++round) {
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n);
            for (int i = 0; i < n * n; ++i)
                if (c[i] != first[i]) { ++wrong; break; }
        }
    };
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) all.emplace_back(body, t);
    for (std::thread& each : all) each.join();
    return wrong;
}
int main() {
    std::printf("one thread: %d wrong of 4000; ", wrongOf(4000, 1));
    int wrong = 0;
    for (int tries = 0; tries < 20 && wrong == 0; ++tries) wrong = wrongOf(4000, 2);
    std::printf("two threads: %s wrong\n", wrong ? "some" : "none");
}
CPP
lib=$(dirname "$(find root -name libopenblas.so.0 | head -1)") include=$(dirname "$(find root -name cblas.h | head -1)")
g++ -std=c++17 -O1 -pthread -I"$include" two.cpp "$lib/libopenblas.so.0" -Wl,-rpath,"$work/$lib" -o two
seen=$(./two)
echo "$seen"
[ "$seen" = "one thread: 0 wrong of 4000; two threads: some wrong" ]
