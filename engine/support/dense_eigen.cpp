// Eigenvalues and singular values, by LAPACK's drivers, those that PyTorch calls.
#include <algorithm>
#include <cmath>

#include "engine/support/dense_matrix.h"
#include "engine/support/lapack.h"

namespace cutaway {
namespace {

using lapack::leading;
using lapack::Routines;
using lapack::Turn;
using lapack::withWork;

bool isFinite(double x) { return std::isfinite(x); }
template <class R>
bool isFinite(std::complex<R> x) {
    return std::isfinite(x.real()) && std::isfinite(x.imag());
}
template <class T>
bool allFinite(const Dense<T>& a) {
    return std::all_of(a.elements.begin(), a.elements.end(), [](const T& x) { return isFinite(x); });
}
const char* problemOf(int info) { return info == 0 ? nullptr : kNoConvergence; }
template <class T>
std::vector<T> memory(int64_t length) {
    return std::vector<T>(static_cast<size_t>(std::max<int64_t>(length, 1)));
}

template <class R>
int callEigenHermitian(const char* jobs, const char* triangle, Dense<R>& a, R* values) {
    const int n = leading(a.rows), ask = -1;
    int info = 0, fixed = 0;
    R wanted = 0;
    const auto call = [&](R* work, int length, int* integers, int count) {
        Routines<R>::syevd(jobs, triangle, &n, a.elements.data(), &n, values, work, &length, integers, &count, &info, 1,
                           1);
    };
    call(&wanted, ask, &fixed, ask);
    auto work = memory<R>(lapack::sizeOf(wanted));
    auto integers = memory<int>(fixed);
    call(work.data(), static_cast<int>(work.size()), integers.data(), static_cast<int>(integers.size()));
    return info;
}
template <class R>
int callEigenHermitian(const char* jobs, const char* triangle, Dense<std::complex<R>>& a, R* values) {
    const int n = leading(a.rows), ask = -1;
    int info = 0, fixed = 0;
    std::complex<R> wanted = 0;
    R realWanted = 0;
    const auto call = [&](std::complex<R>* work, int length, R* reals, int realLength, int* integers, int count) {
        Routines<std::complex<R>>::syevd(jobs, triangle, &n, a.elements.data(), &n, values, work, &length, reals,
                                         &realLength, integers, &count, &info, 1, 1);
    };
    call(&wanted, ask, &realWanted, ask, &fixed, ask);
    auto work = memory<std::complex<R>>(lapack::sizeOf(wanted));
    auto reals = memory<R>(lapack::sizeOf(realWanted));
    auto integers = memory<int>(fixed);
    call(work.data(), static_cast<int>(work.size()), reals.data(), static_cast<int>(reals.size()), integers.data(),
         static_cast<int>(integers.size()));
    return info;
}
template <class R>
int callSingular(const char* jobs, Dense<R>& a, R* values, Dense<R>& u, Dense<R>& vh) {
    const int rows = leading(a.rows), columns = leading(a.columns), ldu = leading(u.rows), ldvh = leading(vh.rows);
    auto integers = memory<int>(8 * std::min(rows, columns));
    return withWork<R>([&](R* work, int length, int* info) {
        Routines<R>::gesdd(jobs, &rows, &columns, a.elements.data(), &rows, values, u.elements.data(), &ldu,
                           vh.elements.data(), &ldvh, work, &length, integers.data(), info, 1);
    });
}
template <class R>
int callSingular(const char* jobs, Dense<std::complex<R>>& a, R* values, Dense<std::complex<R>>& u,
                 Dense<std::complex<R>>& vh) {
    const int rows = leading(a.rows), columns = leading(a.columns), ldu = leading(u.rows), ldvh = leading(vh.rows);
    const int64_t least = std::min(rows, columns), most = std::max(rows, columns);
    auto integers = memory<int>(8 * least);
    auto reals = memory<R>(std::max(5 * least * least + 7 * least, 2 * most * least + 2 * least * least + least));
    return withWork<std::complex<R>>([&](std::complex<R>* work, int length, int* info) {
        Routines<std::complex<R>>::gesdd(jobs, &rows, &columns, a.elements.data(), &rows, values, u.elements.data(),
                                         &ldu, vh.elements.data(), &ldvh, work, &length, reals.data(), integers.data(),
                                         info, 1);
    });
}
template <class R>
int callEigen(Dense<R>& a, std::vector<std::complex<R>>& values, Dense<std::complex<R>>& vectors) {
    const int n = leading(a.rows), one = 1;
    auto real = memory<R>(n), imaginary = memory<R>(n);
    Dense<R> columns(n, n);
    const int info = withWork<R>([&](R* work, int length, int* failed) {
        Routines<R>::geev("N", "V", &n, a.elements.data(), &n, real.data(), imaginary.data(), nullptr, &one,
                          columns.elements.data(), &n, work, &length, failed, 1, 1);
    });
    for (size_t k = 0; k < values.size(); ++k) values[k] = {real[k], imaginary[k]};
    // Of a conjugate pair one column holds the real parts, the next the imaginary ones of the first's vector.
    for (int64_t k = 0; k < n; ++k) {
        const bool paired = imaginary[static_cast<size_t>(k)] != 0 && k + 1 < n;
        for (int64_t i = 0; i < n; ++i) {
            vectors(i, k) = {columns(i, k), paired ? columns(i, k + 1) : R(0)};
            if (paired) vectors(i, k + 1) = std::conj(vectors(i, k));
        }
        if (paired) ++k;
    }
    return info;
}
template <class R>
int callEigen(Dense<std::complex<R>>& a, std::vector<std::complex<R>>& values, Dense<std::complex<R>>& vectors) {
    const int n = leading(a.rows), one = 1;
    auto reals = memory<R>(2 * int64_t{n});
    return withWork<std::complex<R>>([&](std::complex<R>* work, int length, int* info) {
        Routines<std::complex<R>>::geev("N", "V", &n, a.elements.data(), &n, values.data(), nullptr, &one,
                                        vectors.elements.data(), &n, work, &length, reals.data(), info, 1, 1);
    });
}

}  // namespace

template <class T>
const char* eigenHermitian(Dense<T>& a, bool upper, bool vectors, std::vector<double>& values) {
    values.assign(static_cast<size_t>(a.rows), 0);
    if (a.elements.empty()) return nullptr;
    for (int64_t k = 0; k < a.columns; ++k)
        for (int64_t i = upper ? 0 : k; i < (upper ? k + 1 : a.rows); ++i)
            if (!isFinite(a(i, k))) return kNotFinite;
    auto found = memory<decltype(std::abs(T()))>(a.rows);
    const Turn turn;
    const int info = callEigenHermitian(vectors ? "V" : "N", upper ? "U" : "L", a, found.data());
    values.assign(found.begin(), found.end());
    return problemOf(info);
}
template <class T>
const char* singularValues(Dense<T> a, SingularVectors wanted, std::vector<double>& values, Dense<T>& u, Dense<T>& vh) {
    const int64_t least = std::min(a.rows, a.columns);
    const bool full = wanted == SingularVectors::Full, none = wanted == SingularVectors::None;
    values.assign(static_cast<size_t>(least), 0);
    u = vh = Dense<T>();
    if (full) {
        u = Dense<T>::identity(a.rows);
        vh = Dense<T>::identity(a.columns);
    } else if (!none) {
        u = Dense<T>(a.rows, least);
        vh = Dense<T>(least, a.columns);
    }
    if (least == 0) return nullptr;
    if (!allFinite(a)) return kNotFinite;
    auto found = memory<decltype(std::abs(T()))>(least);
    const Turn turn;
    const int info = callSingular(none ? "N" : full ? "A" : "S", a, found.data(), u, vh);
    values.assign(found.begin(), found.end());
    return problemOf(info);
}
template <class T>
const char* eigenGeneral(Dense<T> a, std::vector<ComplexOf<T>>& values, Dense<ComplexOf<T>>& vectors) {
    values.assign(static_cast<size_t>(a.rows), 0);
    vectors = Dense<ComplexOf<T>>(a.rows, a.rows);
    if (a.elements.empty()) return nullptr;
    if (!allFinite(a)) return kNotFinite;
    const Turn turn;
    return problemOf(callEigen(a, values, vectors));
}

#define CUTAWAY_EIGEN(T)                                                                                        \
    template const char* eigenHermitian(Dense<T>&, bool, bool, std::vector<double>&);                           \
    template const char* singularValues(Dense<T>, SingularVectors, std::vector<double>&, Dense<T>&, Dense<T>&); \
    template const char* eigenGeneral(Dense<T>, std::vector<ComplexOf<T>>&, Dense<ComplexOf<T>>&);
CUTAWAY_EIGEN(float)
CUTAWAY_EIGEN(double)
CUTAWAY_EIGEN(std::complex<float>)
CUTAWAY_EIGEN(std::complex<double>)
#undef CUTAWAY_EIGEN

}  // namespace cutaway
