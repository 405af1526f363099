// Eigenvalues of any square matrix, by the shifted QR algorithm on its Hessenberg form.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/support/dense_matrix.h"

namespace cutaway {
namespace {

using Complex = std::complex<double>;
/// An eigenvalue of the lower right 2 x 2 block, the one nearer to its last element.
Complex shiftOf(const Dense<Complex>& h, int64_t last) {
    const Complex a = h(last - 1, last - 1), b = h(last - 1, last), c = h(last, last - 1), d = h(last, last);
    const Complex half = (a + d) / 2.0, root = std::sqrt((a - d) * (a - d) / 4.0 + b * c);
    return std::abs(half + root - d) < std::abs(half - root - d) ? half + root : half - root;
}
/// One step of the QR iteration on rows and columns first..last of T, by Givens' rotations, gathered in Z.
void qrStep(Dense<Complex>& t, Dense<Complex>& z, int64_t first, int64_t last, Complex shift) {
    const int64_t n = t.rows;
    std::vector<std::pair<double, Complex>> rotations;
    for (int64_t i = first; i <= last; ++i) t(i, i) -= shift;
    for (int64_t k = first; k < last; ++k) {
        const double length = std::sqrt(std::norm(t(k, k)) + std::norm(t(k + 1, k)));
        const Complex c = length == 0 ? 1.0 : t(k, k) / length, s = length == 0 ? 0.0 : t(k + 1, k) / length;
        for (int64_t j = k; j < n; ++j) {
            const Complex x = t(k, j), y = t(k + 1, j);
            t(k, j) = std::conj(c) * x + std::conj(s) * y;
            t(k + 1, j) = -s * x + c * y;
        }
        rotations.emplace_back(0.0, c);
        rotations.emplace_back(0.0, s);
    }
    for (int64_t k = first; k < last; ++k) {
        const Complex c = rotations[static_cast<size_t>(2 * (k - first))].second,
                      s = rotations[static_cast<size_t>(2 * (k - first) + 1)].second;
        const auto turn = [&](Complex& x, Complex& y) {
            const Complex a = x, b = y;
            x = c * a + s * b;
            y = -std::conj(s) * a + std::conj(c) * b;
        };
        for (int64_t i = 0; i <= std::min(k + 1, last); ++i) turn(t(i, k), t(i, k + 1));
        for (int64_t i = 0; i < n; ++i) turn(z(i, k), z(i, k + 1));
    }
    for (int64_t i = first; i <= last; ++i) t(i, i) += shift;
}
/// Zeros below the first subdiagonal, by reflections gathered in Z.
void reduceToHessenberg(Dense<Complex>& a, Dense<Complex>& z) {
    const int64_t n = a.rows;
    for (int64_t k = 0; k + 2 < n; ++k) {
        double length = 0;
        for (int64_t i = k + 1; i < n; ++i) length += std::norm(a(i, k));
        length = std::sqrt(length);
        if (length == 0) continue;
        std::vector<Complex> v(static_cast<size_t>(n), 0.0);
        for (int64_t i = k + 1; i < n; ++i) v[static_cast<size_t>(i)] = a(i, k);
        const Complex head = a(k + 1, k);
        v[static_cast<size_t>(k + 1)] += std::abs(head) == 0 ? Complex(length) : head / std::abs(head) * length;
        double square = 0;
        for (const Complex& x : v) square += std::norm(x);
        const auto reflectColumns = [&](Dense<Complex>& m) {
            for (int64_t i = 0; i < n; ++i) {
                Complex along = 0;
                for (int64_t j = k + 1; j < n; ++j) along += m(i, j) * v[static_cast<size_t>(j)];
                for (int64_t j = k + 1; j < n; ++j)
                    m(i, j) -= 2.0 / square * along * std::conj(v[static_cast<size_t>(j)]);
            }
        };
        for (int64_t j = 0; j < n; ++j) {
            Complex along = 0;
            for (int64_t i = k + 1; i < n; ++i) along += std::conj(v[static_cast<size_t>(i)]) * a(i, j);
            for (int64_t i = k + 1; i < n; ++i) a(i, j) -= 2.0 / square * along * v[static_cast<size_t>(i)];
        }
        reflectColumns(a);
        reflectColumns(z);
    }
}
/// Eigenvectors of an upper triangle, in the basis Z.
Dense<Complex> triangleVectors(const Dense<Complex>& t, const Dense<Complex>& z) {
    const int64_t n = t.rows;
    Dense<Complex> vectors(n, n);
    for (int64_t k = 0; k < n; ++k) {
        std::vector<Complex> x(static_cast<size_t>(n), 0.0);
        x[static_cast<size_t>(k)] = 1;
        for (int64_t i = k - 1; i >= 0; --i) {
            Complex sum = 0;
            for (int64_t j = i + 1; j <= k; ++j) sum += t(i, j) * x[static_cast<size_t>(j)];
            Complex apart = t(k, k) - t(i, i);
            if (std::abs(apart) < 1e-15) apart = 1e-15;
            x[static_cast<size_t>(i)] = sum / apart;
        }
        double length = 0;
        for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = 0; j <= k; ++j) vectors(i, k) += z(i, j) * x[static_cast<size_t>(j)];
            length += std::norm(vectors(i, k));
        }
        for (int64_t i = 0; i < n; ++i) vectors(i, k) /= std::sqrt(length);
    }
    return vectors;
}

}  // namespace

std::vector<Complex> eigenGeneral(Dense<Complex> a, Dense<Complex>& vectors) {
    Dense<Complex> z = Dense<Complex>::identity(a.rows);
    reduceToHessenberg(a, z);
    int64_t last = a.rows - 1;
    int steps = 0;
    while (last > 0 && steps < 1000 * static_cast<int>(a.rows)) {
        int64_t first = last;
        while (first > 0 &&
               std::abs(a(first, first - 1)) > 1e-16 * (std::abs(a(first, first)) + std::abs(a(first - 1, first - 1))))
            --first;
        if (first == last) {
            a(last, last - 1) = 0;
            --last;
            continue;
        }
        // Now and then another shift, where the usual one goes round in a circle.
        const Complex shift =
            ++steps % 11 == 10 ? Complex(std::abs(a(last, last - 1)) + std::abs(a(last, last))) : shiftOf(a, last);
        qrStep(a, z, first, last, shift);
    }
    vectors = triangleVectors(a, z);
    std::vector<Complex> values;
    for (int64_t i = 0; i < a.rows; ++i) values.push_back(a(i, i));
    return values;
}

}  // namespace cutaway
