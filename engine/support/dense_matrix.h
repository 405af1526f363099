#pragma once
// Factorisations of one small dense matrix, row-major, in double or complex<double>: what the kernels of linalg.*
// compute with. Written for exactness of a reference, not for speed.
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
    T& operator()(int64_t i, int64_t k) { return elements[static_cast<size_t>(i * columns + k)]; }
    const T& operator()(int64_t i, int64_t k) const { return elements[static_cast<size_t>(i * columns + k)]; }
};

inline double conjugate(double x) { return x; }
inline std::complex<double> conjugate(std::complex<double> x) { return std::conj(x); }

template <class T>
Dense<T> product(const Dense<T>& a, const Dense<T>& b);
/// The conjugate transpose.
template <class T>
Dense<T> adjoint(const Dense<T>& a);

/// P A = L U in place, P the row exchanges `pivots` (row i with pivots[i], counted from 0). Gives the number (from 1)
/// of the first pivot that is 0, or 0. Without pivoting no rows are exchanged.
template <class T>
int64_t factorLu(Dense<T>& a, std::vector<int64_t>& pivots, bool pivoting = true);
/// A X = B (or A^H X = B) from the factors of A; B becomes X.
template <class T>
void solveLu(const Dense<T>& lu, const std::vector<int64_t>& pivots, Dense<T>& b, bool ofAdjoint = false);
/// The triangle of A that `upper` names, solved for B in place. A unit triangle has ones on the diagonal.
template <class T>
void solveTriangle(const Dense<T>& a, Dense<T>& b, bool upper, bool unit);
/// The lower L with A = L L^H, from A's lower triangle. Gives the order of the first leading minor that is not positive
/// definite, or 0.
template <class T>
int64_t factorCholesky(Dense<T>& a);
/// Householder reflections as LAPACK stores them: R in the upper triangle, the reflections' vectors below, their
/// factors in `tau`.
template <class T>
void factorQr(Dense<T>& a, std::vector<T>& tau);
/// The first `columns` columns of the product of those reflections.
template <class T>
Dense<T> multiplyReflections(const Dense<T>& a, const std::vector<T>& tau, int64_t columns);
/// Eigenvalues of a Hermitian matrix, rising, and its eigenvectors in the columns of `vectors`. By Jacobi's rotations.
template <class T>
std::vector<double> eigenHermitian(Dense<T> a, Dense<T>& vectors);
/// Singular values, falling; u has rows x k columns and vh k x columns, k the smaller size. By one-sided rotations.
template <class T>
std::vector<double> singularValues(const Dense<T>& a, Dense<T>& u, Dense<T>& vh);
/// Columns are added to those of `u` (orthonormal) until it is square.
template <class T>
void completeBasis(Dense<T>& u);
/// exp(A) by scaling, a Taylor polynomial and squaring.
template <class T>
Dense<T> exponential(const Dense<T>& a);
/// Eigenvalues and eigenvectors (columns, of length 1) of any square matrix.
std::vector<std::complex<double>> eigenGeneral(Dense<std::complex<double>> a, Dense<std::complex<double>>& vectors);

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
/// Moore and Penrose's inverse; singular values up to max(absolute, relative * largest) count as 0.
template <class T>
Dense<T> pseudoInverse(const Dense<T>& a, double absolute, double relative);

}  // namespace cutaway
