#pragma once
// LAPACK and BLAS as Fortran compiles them, by the type of elements. Matrices lie column by column; `info` is 0, or
// what LAPACK's documentation says of the routine. The lengths of strings are hidden arguments behind all others.
#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace cutaway::lapack {

template <class T>
using Gemm = void(const char* opA, const char* opB, const int* m, const int* n, const int* k, const T* alpha,
                  const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc, size_t,
                  size_t);
template <class T>
using Trsm = void(const char* side, const char* uplo, const char* op, const char* diag, const int* m, const int* n,
                  const T* alpha, const T* a, const int* lda, T* b, const int* ldb, size_t, size_t, size_t, size_t);
template <class T>
using Getrf = void(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);
template <class T>
using Getrs = void(const char* op, const int* n, const int* sides, const T* a, const int* lda, const int* pivots, T* b,
                   const int* ldb, int* info, size_t);
template <class T>
using Potrf = void(const char* uplo, const int* n, T* a, const int* lda, int* info, size_t);
template <class T>
using Geqrf = void(const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork, int* info);
template <class T>
using Orgqr = void(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work,
                   const int* lwork, int* info);
template <class T>
using Ormqr = void(const char* side, const char* op, const int* m, const int* n, const int* k, const T* a,
                   const int* lda, const T* tau, T* c, const int* ldc, T* work, const int* lwork, int* info, size_t,
                   size_t);
template <class T>
using Sytrf = void(const char* uplo, const int* n, T* a, const int* lda, int* pivots, T* work, const int* lwork,
                   int* info, size_t);

template <class R>
using Syevd = void(const char* jobs, const char* uplo, const int* n, R* a, const int* lda, R* values, R* work,
                   const int* lwork, int* iwork, const int* liwork, int* info, size_t, size_t);
template <class R>
using Heevd = void(const char* jobs, const char* uplo, const int* n, std::complex<R>* a, const int* lda, R* values,
                   std::complex<R>* work, const int* lwork, R* rwork, const int* lrwork, int* iwork, const int* liwork,
                   int* info, size_t, size_t);
template <class R>
using Gesdd = void(const char* jobs, const int* m, const int* n, R* a, const int* lda, R* values, R* u, const int* ldu,
                   R* vh, const int* ldvh, R* work, const int* lwork, int* iwork, int* info, size_t);
template <class R>
using ComplexGesdd = void(const char* jobs, const int* m, const int* n, std::complex<R>* a, const int* lda, R* values,
                          std::complex<R>* u, const int* ldu, std::complex<R>* vh, const int* ldvh,
                          std::complex<R>* work, const int* lwork, R* rwork, int* iwork, int* info, size_t);
template <class R>
using Geev = void(const char* left, const char* right, const int* n, R* a, const int* lda, R* real, R* imaginary, R* vl,
                  const int* ldvl, R* vr, const int* ldvr, R* work, const int* lwork, int* info, size_t, size_t);
template <class R>
using ComplexGeev = void(const char* left, const char* right, const int* n, std::complex<R>* a, const int* lda,
                         std::complex<R>* values, std::complex<R>* vl, const int* ldvl, std::complex<R>* vr,
                         const int* ldvr, std::complex<R>* work, const int* lwork, R* rwork, int* info, size_t, size_t);

/// The routines of elements T, by LAPACK's names for real ones; of Hermitian complex ones hetrf and hetrs.
template <class T>
struct Routines;

extern "C" {
Gemm<float> sgemm_;
Trsm<float> strsm_;
Getrf<float> sgetrf_;
Getrs<float> sgetrs_, ssytrs_;
Potrf<float> spotrf_;
Geqrf<float> sgeqrf_;
Orgqr<float> sorgqr_;
Ormqr<float> sormqr_;
Sytrf<float> ssytrf_;
Syevd<float> ssyevd_;
Gesdd<float> sgesdd_;
Geev<float> sgeev_;
}
template <>
struct Routines<float> {
    static constexpr auto gemm = sgemm_;
    static constexpr auto trsm = strsm_;
    static constexpr auto getrf = sgetrf_;
    static constexpr auto getrs = sgetrs_;
    static constexpr auto potrf = spotrf_;
    static constexpr auto geqrf = sgeqrf_;
    static constexpr auto orgqr = sorgqr_;
    static constexpr auto ormqr = sormqr_;
    static constexpr auto sytrf = ssytrf_, hetrf = ssytrf_;
    static constexpr auto sytrs = ssytrs_, hetrs = ssytrs_;
    static constexpr auto syevd = ssyevd_;
    static constexpr auto gesdd = sgesdd_;
    static constexpr auto geev = sgeev_;
};
extern "C" {
Gemm<double> dgemm_;
Trsm<double> dtrsm_;
Getrf<double> dgetrf_;
Getrs<double> dgetrs_, dsytrs_;
Potrf<double> dpotrf_;
Geqrf<double> dgeqrf_;
Orgqr<double> dorgqr_;
Ormqr<double> dormqr_;
Sytrf<double> dsytrf_;
Syevd<double> dsyevd_;
Gesdd<double> dgesdd_;
Geev<double> dgeev_;
}
template <>
struct Routines<double> {
    static constexpr auto gemm = dgemm_;
    static constexpr auto trsm = dtrsm_;
    static constexpr auto getrf = dgetrf_;
    static constexpr auto getrs = dgetrs_;
    static constexpr auto potrf = dpotrf_;
    static constexpr auto geqrf = dgeqrf_;
    static constexpr auto orgqr = dorgqr_;
    static constexpr auto ormqr = dormqr_;
    static constexpr auto sytrf = dsytrf_, hetrf = dsytrf_;
    static constexpr auto sytrs = dsytrs_, hetrs = dsytrs_;
    static constexpr auto syevd = dsyevd_;
    static constexpr auto gesdd = dgesdd_;
    static constexpr auto geev = dgeev_;
};
extern "C" {
Gemm<std::complex<float>> cgemm_;
Trsm<std::complex<float>> ctrsm_;
Getrf<std::complex<float>> cgetrf_;
Getrs<std::complex<float>> cgetrs_, csytrs_, chetrs_;
Potrf<std::complex<float>> cpotrf_;
Geqrf<std::complex<float>> cgeqrf_;
Orgqr<std::complex<float>> cungqr_;
Ormqr<std::complex<float>> cunmqr_;
Sytrf<std::complex<float>> csytrf_, chetrf_;
Heevd<float> cheevd_;
ComplexGesdd<float> cgesdd_;
ComplexGeev<float> cgeev_;
}
template <>
struct Routines<std::complex<float>> {
    static constexpr auto gemm = cgemm_;
    static constexpr auto trsm = ctrsm_;
    static constexpr auto getrf = cgetrf_;
    static constexpr auto getrs = cgetrs_;
    static constexpr auto potrf = cpotrf_;
    static constexpr auto geqrf = cgeqrf_;
    static constexpr auto orgqr = cungqr_;
    static constexpr auto ormqr = cunmqr_;
    static constexpr auto sytrf = csytrf_, hetrf = chetrf_;
    static constexpr auto sytrs = csytrs_, hetrs = chetrs_;
    static constexpr auto syevd = cheevd_;
    static constexpr auto gesdd = cgesdd_;
    static constexpr auto geev = cgeev_;
};
extern "C" {
Gemm<std::complex<double>> zgemm_;
Trsm<std::complex<double>> ztrsm_;
Getrf<std::complex<double>> zgetrf_;
Getrs<std::complex<double>> zgetrs_, zsytrs_, zhetrs_;
Potrf<std::complex<double>> zpotrf_;
Geqrf<std::complex<double>> zgeqrf_;
Orgqr<std::complex<double>> zungqr_;
Ormqr<std::complex<double>> zunmqr_;
Sytrf<std::complex<double>> zsytrf_, zhetrf_;
Heevd<double> zheevd_;
ComplexGesdd<double> zgesdd_;
ComplexGeev<double> zgeev_;
}
template <>
struct Routines<std::complex<double>> {
    static constexpr auto gemm = zgemm_;
    static constexpr auto trsm = ztrsm_;
    static constexpr auto getrf = zgetrf_;
    static constexpr auto getrs = zgetrs_;
    static constexpr auto potrf = zpotrf_;
    static constexpr auto geqrf = zgeqrf_;
    static constexpr auto orgqr = zungqr_;
    static constexpr auto ormqr = zunmqr_;
    static constexpr auto sytrf = zsytrf_, hetrf = zhetrf_;
    static constexpr auto sytrs = zsytrs_, hetrs = zhetrs_;
    static constexpr auto syevd = zheevd_;
    static constexpr auto gesdd = zgesdd_;
    static constexpr auto geev = zgeev_;
};

/// Whoever calls a routine holds one: OpenBLAS without threads, as Debian builds it, keeps buffers that two callers at
/// once would share.
class Turn {
    std::lock_guard<std::mutex> m_lock{mutex()};
    static std::mutex& mutex() {
        static std::mutex one;
        return one;
    }
};

/// A leading dimension is at least 1.
inline int leading(int64_t rows) { return static_cast<int>(std::max<int64_t>(rows, 1)); }
/// A length of working memory as LAPACK tells it. Single precision may have rounded it down.
inline int sizeOf(float wanted) { return static_cast<int>(static_cast<double>(wanted) * (1 + 0x1p-23)) + 1; }
inline int sizeOf(double wanted) { return static_cast<int>(wanted); }
template <class R>
int sizeOf(std::complex<R> wanted) {
    return sizeOf(wanted.real());
}
/// call(memory, its length, info) with a length of -1, which asks for the best one, and then with that.
template <class T, class Call>
int withWork(Call&& call) {
    int info = 0;
    T wanted{};
    call(&wanted, -1, &info);
    std::vector<T> work(static_cast<size_t>(std::max(sizeOf(wanted), 1)));
    call(work.data(), static_cast<int>(work.size()), &info);
    return info;
}

}  // namespace cutaway::lapack
