#include "engine/support/dense_matrix.h"

#include <algorithm>
#include <cmath>

#include "engine/support/lapack.h"

namespace cutaway {
namespace {

using lapack::leading;
using lapack::Routines;
using lapack::Turn;
using lapack::withWork;

std::vector<int> countedFromOne(const std::vector<int64_t>& pivots) {
    std::vector<int> counted;
    for (const int64_t row : pivots) counted.push_back(static_cast<int>(row) + 1);
    return counted;
}
template <class T>
constexpr bool kIsComplex = std::is_same_v<T, ComplexOf<T>>;

}  // namespace

template <class T>
Dense<T> product(const Dense<T>& a, const Dense<T>& b) {
    Dense<T> out(a.rows, b.columns);
    if (out.elements.empty() || a.columns == 0) return out;
    const int m = leading(a.rows), n = leading(b.columns), k = leading(a.columns);
    const T one = 1, zero = 0;
    const Turn turn;
    Routines<T>::gemm("N", "N", &m, &n, &k, &one, a.elements.data(), &m, b.elements.data(), &k, &zero,
                      out.elements.data(), &m, 1, 1);
    return out;
}
template <class T>
Dense<T> adjoint(const Dense<T>& a) {
    Dense<T> out(a.columns, a.rows);
    for (int64_t k = 0; k < a.columns; ++k)
        for (int64_t i = 0; i < a.rows; ++i) out(k, i) = conjugate(a(i, k));
    return out;
}

template <class T>
int64_t factorLu(Dense<T>& a, std::vector<int64_t>& pivots) {
    const int rows = static_cast<int>(a.rows), columns = static_cast<int>(a.columns), ld = leading(a.rows);
    std::vector<int> counted(static_cast<size_t>(std::min(rows, columns)));
    int info = 0;
    const Turn turn;
    if (!counted.empty()) Routines<T>::getrf(&rows, &columns, a.elements.data(), &ld, counted.data(), &info);
    pivots.assign(counted.begin(), counted.end());
    for (int64_t& row : pivots) --row;
    return info;
}
template <class T>
void solveTriangle(const Dense<T>& a, Dense<T>& b, bool upper, bool unit, bool ofAdjoint) {
    if (b.elements.empty()) return;
    const int rows = leading(b.rows), columns = leading(b.columns), ld = leading(a.rows);
    const T one = 1;
    const Turn turn;
    Routines<T>::trsm("L", upper ? "U" : "L", ofAdjoint ? "C" : "N", unit ? "U" : "N", &rows, &columns, &one,
                      a.elements.data(), &ld, b.elements.data(), &rows, 1, 1, 1, 1);
}
template <class T>
void solveLu(const Dense<T>& lu, const std::vector<int64_t>& pivots, Dense<T>& b, bool ofAdjoint) {
    if (b.elements.empty()) return;
    const int n = leading(b.rows), sides = leading(b.columns);
    const std::vector<int> counted = countedFromOne(pivots);
    int info = 0;
    const Turn turn;
    Routines<T>::getrs(ofAdjoint ? "C" : "N", &n, &sides, lu.elements.data(), &n, counted.data(), b.elements.data(), &n,
                       &info, 1);
}
template <class T>
int64_t factorCholesky(Dense<T>& a) {
    const int n = static_cast<int>(a.rows), ld = leading(a.rows);
    int info = 0;
    const Turn turn;
    if (n > 0) Routines<T>::potrf("L", &n, a.elements.data(), &ld, &info, 1);
    return info;
}

template <class T>
void factorQr(Dense<T>& a, std::vector<T>& tau) {
    const int rows = static_cast<int>(a.rows), columns = static_cast<int>(a.columns), ld = leading(a.rows);
    tau.assign(static_cast<size_t>(std::min(rows, columns)), T(0));
    if (tau.empty()) return;
    const Turn turn;
    withWork<T>([&](T* work, int length, int* info) {
        Routines<T>::geqrf(&rows, &columns, a.elements.data(), &ld, tau.data(), work, &length, info);
    });
}
template <class T>
Dense<T> multiplyReflections(const Dense<T>& a, const std::vector<T>& tau, int64_t columns) {
    Dense<T> q(a.rows, columns);
    if (q.elements.empty()) return q;
    std::copy_n(a.elements.begin(), a.rows * std::min(a.columns, columns), q.elements.begin());
    const int m = leading(a.rows), n = leading(columns), k = static_cast<int>(tau.size());
    const Turn turn;
    withWork<T>([&](T* work, int length, int* info) {
        Routines<T>::orgqr(&m, &n, &k, q.elements.data(), &m, tau.data(), work, &length, info);
    });
    return q;
}
template <class T>
void applyReflections(const Dense<T>& a, const std::vector<T>& tau, Dense<T>& b, bool left, bool ofAdjoint) {
    if (b.elements.empty()) return;
    const int m = leading(b.rows), n = leading(b.columns), k = static_cast<int>(tau.size()), ld = leading(a.rows);
    const Turn turn;
    withWork<T>([&](T* work, int length, int* info) {
        Routines<T>::ormqr(left ? "L" : "R", ofAdjoint ? (kIsComplex<T> ? "C" : "T") : "N", &m, &n, &k,
                           a.elements.data(), &ld, tau.data(), b.elements.data(), &m, work, &length, info, 1, 1);
    });
}

template <class T>
int64_t factorSymmetric(Dense<T>& a, bool hermitian, std::vector<int64_t>& pivots) {
    const int n = static_cast<int>(a.rows), ld = leading(a.rows);
    std::vector<int> counted(static_cast<size_t>(n));
    const auto routine = hermitian ? Routines<T>::hetrf : Routines<T>::sytrf;
    int info = 0;
    const Turn turn;
    if (n > 0)
        info = withWork<T>([&](T* work, int length, int* failed) {
            routine("L", &n, a.elements.data(), &ld, counted.data(), work, &length, failed, 1);
        });
    pivots.assign(counted.begin(), counted.end());
    for (int64_t k = 0; k < a.columns; ++k)
        for (int64_t i = 0; i < k; ++i) a(i, k) = 0;
    return info;
}
bool areSymmetricPivots(const std::vector<int64_t>& pivots) {
    const auto n = static_cast<int64_t>(pivots.size());
    for (size_t i = 0; i < pivots.size(); ++i) {
        const int64_t pivot = pivots[i];
        const bool paired = pivot > 0 || (i + 1 < pivots.size() && pivots[i + 1] < 0);
        if (pivot == 0 || std::abs(pivot) > n || !paired) return false;
        if (pivot < 0 && -pivots[++i] > n) return false;
    }
    return true;
}
template <class T>
void solveSymmetric(const Dense<T>& a, const std::vector<int64_t>& pivots, bool hermitian, Dense<T>& b) {
    if (b.elements.empty()) return;
    const int n = leading(b.rows), sides = leading(b.columns);
    const std::vector<int> counted(pivots.begin(), pivots.end());
    int info = 0;
    const Turn turn;
    (hermitian ? Routines<T>::hetrs : Routines<T>::sytrs)("L", &n, &sides, a.elements.data(), &n, counted.data(),
                                                          b.elements.data(), &n, &info, 1);
}

template <class T>
Dense<T> exponential(const Dense<T>& a) {
    using Real = decltype(std::abs(T()));
    double size = 0;
    for (int64_t i = 0; i < a.rows; ++i) {
        double row = 0;
        for (int64_t k = 0; k < a.columns; ++k) row += std::abs(a(i, k));
        size = std::max(size, row);
    }
    const int halvings = size > 0.5 && std::isfinite(size) ? static_cast<int>(std::ceil(std::log2(size / 0.5))) : 0;
    Dense<T> small = a, term = Dense<T>::identity(a.rows), total = term;
    for (T& x : small.elements) x *= Real(std::ldexp(1.0, -halvings));
    for (int order = 1; order <= 18; ++order) {
        term = product(term, small);
        for (T& x : term.elements) x /= Real(order);
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
    solveTriangle(triangle, b, upper, false, upper);
    solveTriangle(triangle, b, upper, false, !upper);
}
template <class T>
void mirrorTriangle(Dense<T>& a, bool upper) {
    for (int64_t i = 0; i < a.rows; ++i) {
        a(i, i) = (a(i, i) + conjugate(a(i, i))) / T(2);
        for (int64_t k = 0; k < i; ++k) upper ? a(i, k) = conjugate(a(k, i)) : a(k, i) = conjugate(a(i, k));
    }
}
template <class T>
const char* pseudoInverse(Dense<T>& a, double absolute, double relative) {
    Dense<T> u, vh;
    std::vector<double> values;
    if (const char* const why = singularValues(a, SingularVectors::Thin, values, u, vh)) return why;
    const double least = values.empty() ? 0 : std::max(absolute, relative * values[0]);
    for (int64_t k = 0; k < u.columns; ++k)
        for (int64_t i = 0; i < u.rows; ++i)
            u(i, k) = values[static_cast<size_t>(k)] > least
                          ? u(i, k) / static_cast<decltype(std::abs(T()))>(values[static_cast<size_t>(k)])
                          : T(0);
    a = product(adjoint(vh), adjoint(u));
    return nullptr;
}

#define CUTAWAY_MATRIX(T)                                                                          \
    template Dense<T> product(const Dense<T>&, const Dense<T>&);                                   \
    template Dense<T> adjoint(const Dense<T>&);                                                    \
    template int64_t factorLu(Dense<T>&, std::vector<int64_t>&);                                   \
    template void solveLu(const Dense<T>&, const std::vector<int64_t>&, Dense<T>&, bool);          \
    template void solveTriangle(const Dense<T>&, Dense<T>&, bool, bool, bool);                     \
    template int64_t factorCholesky(Dense<T>&);                                                    \
    template void factorQr(Dense<T>&, std::vector<T>&);                                            \
    template Dense<T> multiplyReflections(const Dense<T>&, const std::vector<T>&, int64_t);        \
    template void applyReflections(const Dense<T>&, const std::vector<T>&, Dense<T>&, bool, bool); \
    template int64_t factorSymmetric(Dense<T>&, bool, std::vector<int64_t>&);                      \
    template void solveSymmetric(const Dense<T>&, const std::vector<int64_t>&, bool, Dense<T>&);   \
    template Dense<T> exponential(const Dense<T>&);                                                \
    template void splitFactors(const Dense<T>&, Dense<T>&, Dense<T>&);                             \
    template Dense<T> permutationOf(const std::vector<int64_t>&, int64_t);                         \
    template Determinant<T> determinantOf(const Dense<T>&, const std::vector<int64_t>&);           \
    template void solveCholesky(const Dense<T>&, bool, Dense<T>&);                                 \
    template void mirrorTriangle(Dense<T>&, bool);                                                 \
    template const char* pseudoInverse(Dense<T>&, double, double);
CUTAWAY_MATRIX(float)
CUTAWAY_MATRIX(double)
CUTAWAY_MATRIX(std::complex<float>)
CUTAWAY_MATRIX(std::complex<double>)
#undef CUTAWAY_MATRIX

}  // namespace cutaway
