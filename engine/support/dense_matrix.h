#pragma once
// Factorisations of one dense matrix of floats, doubles or complex ones of these, stored column by column as LAPACK and
// BLAS, which compute them, want it. What the kernels of linalg.* stand on, in the engine and in exported programs.
#include <complex>
#include <cstdint>
#include <vector>

namespace cutaway {

/// A matrix of `rows` by `columns` elements.
template <class T>
struct Dense {
    int64_t rows = 0, columns = 0;
    std::vector<T> elements;

    Dense() = default;
    Dense(int64_t r, int64_t c) : rows(r), columns(c), elements(static_cast<size_t>(r * c), T(0)) {}
    static Dense identity(int64_t n) {
        Dense out(n, n);
        for (int64_t i = 0; i < n; ++i) out(i, i) = T(1);
        return out;
    }
    T& operator()(int64_t i, int64_t k) { return elements[static_cast<size_t>(k * rows + i)]; }
    const T& operator()(int64_t i, int64_t k) const { return elements[static_cast<size_t>(k * rows + i)]; }
};

inline float conjugate(float x) { return x; }
inline double conjugate(double x) { return x; }
template <class R>
std::complex<R> conjugate(std::complex<R> x) {
    return std::conj(x);
}
/// The complex numbers of T's precision; T itself if it is complex.
template <class T>
struct ComplexOfElement {
    using Type = std::complex<T>;
};
template <class R>
struct ComplexOfElement<std::complex<R>> {
    using Type = std::complex<R>;
};
template <class T>
using ComplexOf = typename ComplexOfElement<T>::Type;

template <class T>
Dense<T> product(const Dense<T>& a, const Dense<T>& b);
/// The conjugate transpose.
template <class T>
Dense<T> adjoint(const Dense<T>& a);

/// P A = L U in place, P the row exchanges `pivots` (row i with pivots[i], counted from 0). Gives the number (from 1)
/// of the first pivot that is 0, or 0. getrf.
template <class T>
int64_t factorLu(Dense<T>& a, std::vector<int64_t>& pivots);
/// A X = B (or A^H X = B) from the factors of A; B becomes X. getrs.
template <class T>
void solveLu(const Dense<T>& lu, const std::vector<int64_t>& pivots, Dense<T>& b, bool ofAdjoint = false);
/// The triangle of A that `upper` names, or its adjoint, solved for B in place. A unit triangle has ones on the
/// diagonal; a zero there gives infinities. trsm.
template <class T>
void solveTriangle(const Dense<T>& a, Dense<T>& b, bool upper, bool unit, bool ofAdjoint = false);
/// The lower L with A = L L^H, from A's lower triangle, in place; what is above it stays. Gives the order of the first
/// leading minor that is not positive definite, or 0. potrf.
template <class T>
int64_t factorCholesky(Dense<T>& a);
/// Householder reflections: R in the upper triangle, the reflections' vectors below, their factors in `tau`. geqrf.
template <class T>
void factorQr(Dense<T>& a, std::vector<T>& tau);
/// The first `columns` columns of the product of those reflections. orgqr.
template <class T>
Dense<T> multiplyReflections(const Dense<T>& a, const std::vector<T>& tau, int64_t columns);
/// That product, or its adjoint, times B from the left or the right, in place. ormqr.
template <class T>
void applyReflections(const Dense<T>& a, const std::vector<T>& tau, Dense<T>& b, bool left, bool ofAdjoint);
/// L D L^T (of `hermitian` ones L D L^H) of the lower triangle, in place, with blocks of one or two rows in D; zeros
/// above. Pivots as LAPACK counts them: from 1, negative for both rows of a block. Gives the number (from 1) of the
/// first block that is 0, or 0. sytrf, hetrf.
template <class T>
int64_t factorSymmetric(Dense<T>& a, bool hermitian, std::vector<int64_t>& pivots);
/// Whether such pivots are those of a factorisation: rows of the matrix, and both of each block.
bool areSymmetricPivots(const std::vector<int64_t>& pivots);
/// A X = B from those factors, in place. sytrs, hetrs.
template <class T>
void solveSymmetric(const Dense<T>& a, const std::vector<int64_t>& pivots, bool hermitian, Dense<T>& b);

/// What of a matrix that holds NaN or infinity, or whose iteration does not end, is not found; as a sentence.
constexpr const char* kNotFinite = "a matrix holds NaN or infinity, which has no eigenvalues or singular values";
constexpr const char* kNoConvergence =
    "the eigenvalues or singular values of a matrix do not converge: it is ill-conditioned";
/// Eigenvalues of the Hermitian matrix that has the upper or lower triangle of A, rising; A becomes its eigenvectors,
/// in columns, if they are wanted. Null, or why there are none. syevd, heevd.
template <class T>
const char* eigenHermitian(Dense<T>& a, bool upper, bool vectors, std::vector<double>& values);
enum class SingularVectors { None, Thin, Full };
/// Singular values, falling. With k of them, u has rows x k columns and vh k x columns; `Full` ones are square. Null,
/// or why there are none. gesdd.
template <class T>
const char* singularValues(Dense<T> a, SingularVectors wanted, std::vector<double>& values, Dense<T>& u, Dense<T>& vh);
/// Eigenvalues and eigenvectors (columns, of length 1) of any square matrix. Null, or why there are none. geev.
template <class T>
const char* eigenGeneral(Dense<T> a, std::vector<ComplexOf<T>>& values, Dense<ComplexOf<T>>& vectors);
/// exp(A) by scaling, a Taylor polynomial and squaring.
template <class T>
Dense<T> exponential(const Dense<T>& a);

/// L and U apart; L has ones on the diagonal.
template <class T>
void splitFactors(const Dense<T>& lu, Dense<T>& lower, Dense<T>& upper);
/// The matrix P with A = P L U.
template <class T>
Dense<T> permutationOf(const std::vector<int64_t>& pivots, int64_t rows);
/// The determinant of the matrix with these LU factors, also as a direction (of size 1, or 0) and log |determinant|.
template <class T>
struct Determinant {
    T value = 1, direction = 1;
    double logarithm = 0;
};
template <class T>
Determinant<T> determinantOf(const Dense<T>& lu, const std::vector<int64_t>& pivots);
/// A X = B from the triangle L (or L^H, `upper`) of A = L L^H.
template <class T>
void solveCholesky(const Dense<T>& triangle, bool upper, Dense<T>& b);
/// The Hermitian matrix that has this triangle.
template <class T>
void mirrorTriangle(Dense<T>& a, bool upper);
/// Moore and Penrose's inverse in place of A; singular values up to max(absolute, relative * largest) count as 0. Null,
/// or why there is none.
template <class T>
const char* pseudoInverse(Dense<T>& a, double absolute, double relative);

}  // namespace cutaway
