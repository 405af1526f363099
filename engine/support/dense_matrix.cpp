#include "engine/support/dense_matrix.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cutaway {
namespace {

double realOf(double x) { return x; }
double realOf(std::complex<double> x) { return x.real(); }
/// How LAPACK compares pivots.
double pivotSize(double x) { return std::fabs(x); }
double pivotSize(std::complex<double> x) { return std::fabs(x.real()) + std::fabs(x.imag()); }

template <class T>
void exchangeRows(Dense<T>& a, int64_t i, int64_t k) {
    if (i == k) return;
    for (int64_t j = 0; j < a.columns; ++j) std::swap(a(i, j), a(k, j));
}
/// Columns p and q become (cos p - conj(s) q, s p + cos q).
template <class T>
void rotateColumns(Dense<T>& a, int64_t p, int64_t q, double cos, T sin) {
    for (int64_t i = 0; i < a.rows; ++i) {
        const T x = a(i, p), y = a(i, q);
        a(i, p) = cos * x - conjugate(sin) * y;
        a(i, q) = sin * x + cos * y;
    }
}
/// The rotation that makes columns with these inner products orthogonal: cosine and sine.
template <class T>
std::pair<double, T> rotationFor(double pp, double qq, T pq) {
    const double size = std::abs(pq), ratio = (qq - pp) / (2 * size);
    const double tangent = (ratio >= 0 ? 1.0 : -1.0) / (std::fabs(ratio) + std::sqrt(1 + ratio * ratio));
    const double cos = 1 / std::sqrt(1 + tangent * tangent);
    return {cos, pq / size * (cos * tangent)};
}
constexpr int kSweeps = 60;

}  // namespace

template <class T>
Dense<T> product(const Dense<T>& a, const Dense<T>& b) {
    Dense<T> out(a.rows, b.columns);
    for (int64_t i = 0; i < a.rows; ++i)
        for (int64_t k = 0; k < a.columns; ++k)
            for (int64_t j = 0; j < b.columns; ++j) out(i, j) += a(i, k) * b(k, j);
    return out;
}
template <class T>
Dense<T> adjoint(const Dense<T>& a) {
    Dense<T> out(a.columns, a.rows);
    for (int64_t i = 0; i < a.rows; ++i)
        for (int64_t k = 0; k < a.columns; ++k) out(k, i) = conjugate(a(i, k));
    return out;
}

template <class T>
int64_t factorLu(Dense<T>& a, std::vector<int64_t>& pivots, bool pivoting) {
    const int64_t steps = std::min(a.rows, a.columns);
    int64_t singular = 0;
    pivots.assign(static_cast<size_t>(steps), 0);
    for (int64_t k = 0; k < steps; ++k) {
        int64_t best = k;
        for (int64_t i = k + 1; pivoting && i < a.rows; ++i)
            if (pivotSize(a(i, k)) > pivotSize(a(best, k))) best = i;
        pivots[static_cast<size_t>(k)] = best;
        exchangeRows(a, k, best);
        if (a(k, k) == T(0)) {
            if (singular == 0) singular = k + 1;
            continue;
        }
        for (int64_t i = k + 1; i < a.rows; ++i) {
            a(i, k) /= a(k, k);
            for (int64_t j = k + 1; j < a.columns; ++j) a(i, j) -= a(i, k) * a(k, j);
        }
    }
    return singular;
}
template <class T>
void solveTriangle(const Dense<T>& a, Dense<T>& b, bool upper, bool unit) {
    const int64_t n = a.rows;
    for (int64_t step = 0; step < n; ++step) {
        const int64_t i = upper ? n - 1 - step : step;
        for (int64_t j = 0; j < b.columns; ++j) {
            T value = b(i, j);
            for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); ++k) value -= a(i, k) * b(k, j);
            b(i, j) = unit ? value : value / a(i, i);
        }
    }
}
template <class T>
void solveLu(const Dense<T>& lu, const std::vector<int64_t>& pivots, Dense<T>& b, bool ofAdjoint) {
    const auto count = static_cast<int64_t>(pivots.size());
    if (!ofAdjoint) {
        for (int64_t i = 0; i < count; ++i) exchangeRows(b, i, pivots[static_cast<size_t>(i)]);
        solveTriangle(lu, b, false, true);
        solveTriangle(lu, b, true, false);
        return;
    }
    const Dense<T> turned = adjoint(lu);
    solveTriangle(turned, b, false, false);
    solveTriangle(turned, b, true, true);
    for (int64_t i = count - 1; i >= 0; --i) exchangeRows(b, i, pivots[static_cast<size_t>(i)]);
}
template <class T>
int64_t factorCholesky(Dense<T>& a) {
    for (int64_t j = 0; j < a.rows; ++j) {
        double diagonal = realOf(a(j, j));
        for (int64_t k = 0; k < j; ++k) diagonal -= std::norm(a(j, k));
        if (!(diagonal > 0)) return j + 1;
        a(j, j) = std::sqrt(diagonal);
        for (int64_t i = j + 1; i < a.rows; ++i) {
            for (int64_t k = 0; k < j; ++k) a(i, j) -= a(i, k) * conjugate(a(j, k));
            a(i, j) /= a(j, j);
            a(j, i) = T(0);
        }
    }
    return 0;
}

template <class T>
void factorQr(Dense<T>& a, std::vector<T>& tau) {
    const int64_t steps = std::min(a.rows, a.columns);
    tau.assign(static_cast<size_t>(steps), T(0));
    for (int64_t k = 0; k < steps; ++k) {
        double below = 0;
        for (int64_t i = k + 1; i < a.rows; ++i) below += std::norm(a(i, k));
        const T alpha = a(k, k);
        if (below == 0 && alpha == conjugate(alpha)) continue;
        const double length = std::sqrt(std::norm(alpha) + below), beta = realOf(alpha) >= 0 ? -length : length;
        const T factor = (T(beta) - alpha) / beta;
        for (int64_t i = k + 1; i < a.rows; ++i) a(i, k) /= alpha - T(beta);
        a(k, k) = T(beta);
        for (int64_t j = k + 1; j < a.columns; ++j) {
            T along = a(k, j);
            for (int64_t i = k + 1; i < a.rows; ++i) along += conjugate(a(i, k)) * a(i, j);
            along *= conjugate(factor);
            a(k, j) -= along;
            for (int64_t i = k + 1; i < a.rows; ++i) a(i, j) -= a(i, k) * along;
        }
        tau[static_cast<size_t>(k)] = factor;
    }
}
template <class T>
Dense<T> multiplyReflections(const Dense<T>& a, const std::vector<T>& tau, int64_t columns) {
    Dense<T> q(a.rows, columns);
    for (int64_t i = 0; i < std::min(a.rows, columns); ++i) q(i, i) = T(1);
    for (auto k = static_cast<int64_t>(tau.size()) - 1; k >= 0; --k)
        for (int64_t j = 0; j < columns; ++j) {
            T along = q(k, j);
            for (int64_t i = k + 1; i < a.rows; ++i) along += conjugate(a(i, k)) * q(i, j);
            along *= tau[static_cast<size_t>(k)];
            q(k, j) -= along;
            for (int64_t i = k + 1; i < a.rows; ++i) q(i, j) -= a(i, k) * along;
        }
    return q;
}

template <class T>
std::vector<double> eigenHermitian(Dense<T> a, Dense<T>& vectors) {
    const int64_t n = a.rows;
    vectors = Dense<T>::identity(n);
    double scale = 0;
    for (const T& x : a.elements) scale += std::norm(x);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
        double apart = 0;
        for (int64_t p = 0; p < n; ++p)
            for (int64_t q = p + 1; q < n; ++q) {
                if (std::norm(a(p, q)) <= 1e-34 * scale) continue;
                apart += std::norm(a(p, q));
                const auto [cos, sin] = rotationFor(realOf(a(p, p)), realOf(a(q, q)), a(p, q));
                rotateColumns(a, p, q, cos, sin);
                a = adjoint(a);
                rotateColumns(a, p, q, cos, sin);
                rotateColumns(vectors, p, q, cos, sin);
            }
        if (!(apart > 0)) break;
    }
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t i, int64_t k) { return realOf(a(i, i)) < realOf(a(k, k)); });
    std::vector<double> values;
    Dense<T> sorted(n, n);
    for (int64_t k = 0; k < n; ++k) {
        const int64_t from = order[static_cast<size_t>(k)];
        values.push_back(realOf(a(from, from)));
        for (int64_t i = 0; i < n; ++i) sorted(i, k) = vectors(i, from);
    }
    vectors = std::move(sorted);
    return values;
}

template <class T>
std::vector<double> singularValues(const Dense<T>& a, Dense<T>& u, Dense<T>& vh) {
    if (a.rows < a.columns) {
        Dense<T> left, right;
        std::vector<double> values = singularValues(adjoint(a), left, right);
        u = adjoint(right);
        vh = adjoint(left);
        return values;
    }
    const int64_t n = a.columns;
    Dense<T> work = a, v = Dense<T>::identity(n);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
        bool rotated = false;
        for (int64_t p = 0; p < n; ++p)
            for (int64_t q = p + 1; q < n; ++q) {
                double pp = 0, qq = 0;
                T pq = 0;
                for (int64_t i = 0; i < a.rows; ++i) {
                    pp += std::norm(work(i, p));
                    qq += std::norm(work(i, q));
                    pq += conjugate(work(i, p)) * work(i, q);
                }
                if (!(std::abs(pq) > 1e-17 * std::sqrt(pp * qq))) continue;
                rotated = true;
                const auto [cos, sin] = rotationFor(pp, qq, pq);
                rotateColumns(work, p, q, cos, sin);
                rotateColumns(v, p, q, cos, sin);
            }
        if (!rotated) break;
    }
    std::vector<double> lengths(static_cast<size_t>(n), 0);
    for (int64_t k = 0; k < n; ++k) {
        for (int64_t i = 0; i < a.rows; ++i) lengths[static_cast<size_t>(k)] += std::norm(work(i, k));
        lengths[static_cast<size_t>(k)] = std::sqrt(lengths[static_cast<size_t>(k)]);
    }
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t k) {
        return lengths[static_cast<size_t>(i)] > lengths[static_cast<size_t>(k)];
    });
    std::vector<double> values;
    Dense<T> kept(a.rows, 0);
    vh = Dense<T>(n, n);
    std::vector<std::vector<T>> columns;
    for (int64_t k = 0; k < n; ++k) {
        const int64_t from = order[static_cast<size_t>(k)];
        const double length = lengths[static_cast<size_t>(from)];
        values.push_back(length);
        for (int64_t i = 0; i < n; ++i) vh(k, i) = conjugate(v(i, from));
        if (length > 1e-300) {
            columns.emplace_back();
            for (int64_t i = 0; i < a.rows; ++i) columns.back().push_back(work(i, from) / length);
        }
    }
    // Columns of singular value 0 are any that complete the basis.
    u = Dense<T>(a.rows, static_cast<int64_t>(columns.size()));
    for (size_t k = 0; k < columns.size(); ++k)
        for (int64_t i = 0; i < a.rows; ++i) u(i, static_cast<int64_t>(k)) = columns[k][static_cast<size_t>(i)];
    if (u.columns < n) {
        completeBasis(u);
        Dense<T> first(a.rows, n);
        for (int64_t i = 0; i < a.rows; ++i)
            for (int64_t k = 0; k < n; ++k) first(i, k) = u(i, k);
        u = std::move(first);
    }
    return values;
}
template <class T>
void completeBasis(Dense<T>& u) {
    Dense<T> whole(u.rows, u.rows);
    for (int64_t i = 0; i < u.rows; ++i)
        for (int64_t k = 0; k < u.columns; ++k) whole(i, k) = u(i, k);
    int64_t have = u.columns;
    for (int64_t axis = 0; axis < u.rows && have < u.rows; ++axis) {
        std::vector<T> candidate(static_cast<size_t>(u.rows), T(0));
        candidate[static_cast<size_t>(axis)] = T(1);
        for (int pass = 0; pass < 2; ++pass)
            for (int64_t k = 0; k < have; ++k) {
                T along = 0;
                for (int64_t i = 0; i < u.rows; ++i)
                    along += conjugate(whole(i, k)) * candidate[static_cast<size_t>(i)];
                for (int64_t i = 0; i < u.rows; ++i) candidate[static_cast<size_t>(i)] -= along * whole(i, k);
            }
        double length = 0;
        for (const T& x : candidate) length += std::norm(x);
        // Axes that lie in the span of those chosen before are passed over; enough others remain.
        if (length < 0.25 / static_cast<double>(u.rows)) continue;
        for (int64_t i = 0; i < u.rows; ++i) whole(i, have) = candidate[static_cast<size_t>(i)] / std::sqrt(length);
        ++have;
    }
    u = std::move(whole);
}

template <class T>
Dense<T> exponential(const Dense<T>& a) {
    double size = 0;
    for (int64_t i = 0; i < a.rows; ++i) {
        double row = 0;
        for (int64_t k = 0; k < a.columns; ++k) row += std::abs(a(i, k));
        size = std::max(size, row);
    }
    const int halvings = size > 0.5 && std::isfinite(size) ? static_cast<int>(std::ceil(std::log2(size / 0.5))) : 0;
    Dense<T> small = a, term = Dense<T>::identity(a.rows), total = term;
    for (T& x : small.elements) x *= std::ldexp(1.0, -halvings);
    for (int order = 1; order <= 18; ++order) {
        term = product(term, small);
        for (T& x : term.elements) x /= static_cast<double>(order);
        for (size_t i = 0; i < total.elements.size(); ++i) total.elements[i] += term.elements[i];
    }
    for (int i = 0; i < halvings; ++i) total = product(total, total);
    return total;
}

template <class T>
void splitFactors(const Dense<T>& lu, Dense<T>& lower, Dense<T>& upper) {
    const int64_t least = std::min(lu.rows, lu.columns);
    lower = Dense<T>(lu.rows, least);
    upper = Dense<T>(least, lu.columns);
    for (int64_t i = 0; i < lu.rows; ++i)
        for (int64_t k = 0; k < lu.columns; ++k) {
            if (i > k && k < least) lower(i, k) = lu(i, k);
            if (i <= k) upper(i, k) = lu(i, k);
            if (i == k) lower(i, k) = T(1);
        }
}
template <class T>
Dense<T> permutationOf(const std::vector<int64_t>& pivots, int64_t rows) {
    Dense<T> p = Dense<T>::identity(rows);
    for (size_t i = pivots.size(); i-- > 0;)
        for (int64_t j = 0; j < rows; ++j) std::swap(p(static_cast<int64_t>(i), j), p(pivots[i], j));
    return p;
}
template <class T>
Determinant<T> determinantOf(const Dense<T>& lu, const std::vector<int64_t>& pivots) {
    Determinant<T> found;
    for (int64_t i = 0; i < lu.rows; ++i) {
        const T pivot = pivots[static_cast<size_t>(i)] == i ? lu(i, i) : -lu(i, i);
        found.logarithm += std::log(std::abs(pivot));
        found.value *= pivot;
        found.direction *= std::abs(pivot) == 0 ? T(0) : pivot / std::abs(pivot);
    }
    return found;
}
template <class T>
void solveCholesky(const Dense<T>& triangle, bool upper, Dense<T>& b) {
    const Dense<T> turned = adjoint(triangle);
    solveTriangle(upper ? turned : triangle, b, false, false);
    solveTriangle(upper ? triangle : turned, b, true, false);
}
template <class T>
void mirrorTriangle(Dense<T>& a, bool upper) {
    for (int64_t i = 0; i < a.rows; ++i) {
        a(i, i) = (a(i, i) + conjugate(a(i, i))) * 0.5;
        for (int64_t k = 0; k < i; ++k) upper ? a(i, k) = conjugate(a(k, i)) : a(k, i) = conjugate(a(i, k));
    }
}
template <class T>
Dense<T> pseudoInverse(const Dense<T>& a, double absolute, double relative) {
    Dense<T> u, vh;
    const auto values = singularValues(a, u, vh);
    const double least = values.empty() ? 0 : std::max(absolute, relative * values[0]);
    for (int64_t k = 0; k < u.columns; ++k)
        for (int64_t i = 0; i < u.rows; ++i)
            u(i, k) = values[static_cast<size_t>(k)] > least ? u(i, k) / values[static_cast<size_t>(k)] : T(0);
    return product(adjoint(vh), adjoint(u));
}

#define CUTAWAY_MATRIX(T)                                                                   \
    template Dense<T> product(const Dense<T>&, const Dense<T>&);                            \
    template Dense<T> adjoint(const Dense<T>&);                                             \
    template int64_t factorLu(Dense<T>&, std::vector<int64_t>&, bool);                      \
    template void solveLu(const Dense<T>&, const std::vector<int64_t>&, Dense<T>&, bool);   \
    template void solveTriangle(const Dense<T>&, Dense<T>&, bool, bool);                    \
    template int64_t factorCholesky(Dense<T>&);                                             \
    template void factorQr(Dense<T>&, std::vector<T>&);                                     \
    template Dense<T> multiplyReflections(const Dense<T>&, const std::vector<T>&, int64_t); \
    template std::vector<double> eigenHermitian(Dense<T>, Dense<T>&);                       \
    template std::vector<double> singularValues(const Dense<T>&, Dense<T>&, Dense<T>&);     \
    template void completeBasis(Dense<T>&);                                                 \
    template Dense<T> exponential(const Dense<T>&);                                         \
    template void splitFactors(const Dense<T>&, Dense<T>&, Dense<T>&);                      \
    template Dense<T> permutationOf(const std::vector<int64_t>&, int64_t);                  \
    template Determinant<T> determinantOf(const Dense<T>&, const std::vector<int64_t>&);    \
    template void solveCholesky(const Dense<T>&, bool, Dense<T>&);                          \
    template void mirrorTriangle(Dense<T>&, bool);                                          \
    template Dense<T> pseudoInverse(const Dense<T>&, double, double);
CUTAWAY_MATRIX(double)
CUTAWAY_MATRIX(std::complex<double>)
#undef CUTAWAY_MATRIX

}  // namespace cutaway
