// Linear algebra of batches of matrices: LAPACK by support/dense_matrix.h. Matrices are shared among tasks, each
// computed in its own dtype. A library of its own, since its callers link LAPACK.
#include <vector>

#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/portable/portable.h"
#include "engine/support/dense_matrix.h"

namespace cutaway::portable {
namespace {

/// The last two dims of a tensor as matrices, in the order of the others.
struct Matrices {
    Strided tensor;
    int64_t rows, columns, count;

    explicit Matrices(const Strided& batch)
        : tensor(batch), rows(batch.sizes[batch.rank - 2]), columns(batch.sizes[batch.rank - 1]), count(1) {
        for (int32_t d = 0; d + 2 < batch.rank; ++d) count *= batch.sizes[d];
    }
    template <class T>
    Dense<T> load(int64_t number) const {
        Dense<T> matrix(rows, columns);
        if (!matrix.elements.empty()) loadAll(at(number), matrix.elements.data());
        return matrix;
    }
    template <class T>
    void store(int64_t number, const Dense<T>& matrix) const {
        storeRange(at(number), 0, rows * columns, matrix.elements.data());
    }

  private:
    Strided at(int64_t number) const {
        Strided lead = tensor, one = tensor;
        lead.rank = tensor.rank - 2;
        one.data = tensor.at(lead.offsetOf(number));
        one.rank = 2;
        // Column by column, as matrices are kept.
        std::reverse_copy(tensor.sizes + lead.rank, tensor.sizes + tensor.rank, one.sizes);
        std::reverse_copy(tensor.strides + lead.rank, tensor.strides + tensor.rank, one.strides);
        return one;
    }
};
/// With one more dim of size 1 at the end.
Strided asColumn(const CtTensor& tensor) {
    Strided column(tensor);
    column.rank = tensor.rank + 1;
    column.sizes[tensor.rank] = column.strides[tensor.rank] = 1;
    return column;
}
/// The matrices repeated over the batch of `like`; the `last` dims are their own.
Strided spreadMatrices(const Strided& x, const Strided& like, int32_t last = 2) {
    int64_t sizes[CT_MAX_RANK];
    std::copy_n(like.sizes, like.rank - 2, sizes);
    std::copy_n(x.sizes + (x.rank - last), last, sizes + (like.rank - 2));
    return broadcast(x, sizes, like.rank - 2 + last);
}

/// An operator's arguments by name, and its results.
struct Call {
    const Run& run;
    CallReader reader;

    explicit Call(const Run& call) : run(call), reader(*call.call) {}
    const CtTensor& tensor(std::string_view param) const { return run.operands[reader.find(param)->integer]; }
    Matrices matrices(std::string_view param) const { return Matrices(Strided(tensor(param))); }
    Matrices result(int32_t number = 0) const { return Matrices(run.out(number)); }
    bool flag(std::string_view param) const { return reader.flag(param); }
    /// body(tag of the type that matrices of the dtype are computed in: their own)
    template <class Body>
    void withMatrix(int32_t dtype, Body&& body) const {
        if (dtype == CT_C64) body(std::complex<float>{});
        else if (isComplex(dtype)) body(std::complex<double>{});
        else if (dtype == CT_F64) body(double{});
        else body(float{});
    }
    /// `count` numbers of result `number` from element `first` on, if it is wanted.
    template <class T>
    void store(int32_t number, int64_t first, const std::vector<T>& values) const {
        if (run.wants(number))
            storeRange(run.out(number), first, first + static_cast<int64_t>(values.size()), values.data());
    }
    template <class T>
    void store(int32_t number, int64_t at, const Dense<T>& matrix) const {
        if (run.wants(number) && run.results[number].rank >= 2) result(number).store(at, matrix);
    }
};
/// body(tag, the call, number of a matrix) for all of a parameter's matrices.
template <class Body>
void forMatrices(const Run& run, std::string_view param, Body&& body) {
    const Call call(run);
    const Matrices all = call.matrices(param);
    call.withMatrix(all.tensor.dtype, [&](auto tag) {
        run.share(all.count, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t k = begin; k < end; ++k) body(tag, call, all, k);
        });
    });
}
/// Rows counted from 1, as LAPACK does.
std::vector<int64_t> countedFromOne(std::vector<int64_t> pivots) {
    for (int64_t& row : pivots) ++row;
    return pivots;
}
void checkRegular(const Call& call, int64_t info) {
    if (info != 0 && call.flag("check_errors")) throw Failure("a matrix is singular");
}

// -- LU

void luFactor(const Run& run) {
    if (!Call(run).flag("pivot")) throw Failure("pivot=False has no kernel on the CPU");
    forMatrices(run, "A", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        auto one = a.load<decltype(tag)>(k);
        std::vector<int64_t> pivots;
        const int64_t info = factorLu(one, pivots);
        call.store(0, k, one);
        call.store(1, k * static_cast<int64_t>(pivots.size()), countedFromOne(pivots));
        call.store(2, k, std::vector<int64_t>{info});
    });
}
void lu(const Run& run) {
    forMatrices(run, "A", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        using T = decltype(tag);
        Dense<T> factors = a.load<T>(k), lower, upper;
        std::vector<int64_t> pivots;
        factorLu(factors, pivots);
        splitFactors(factors, lower, upper);
        call.store(0, k, permutationOf<T>(pivots, a.rows));
        call.store(1, k, lower);
        call.store(2, k, upper);
    });
}
/// The row exchanges of matrix `number`, counted from 0.
std::vector<int64_t> pivotsOf(const Strided& all, int64_t number, int64_t rows) {
    std::vector<int64_t> pivots(static_cast<size_t>(all.sizes[all.rank - 1]));
    for (size_t i = 0; i < pivots.size(); ++i) {
        const auto at = number * static_cast<int64_t>(pivots.size()) + static_cast<int64_t>(i);
        pivots[i] = loadOne<int64_t>(all.dtype, all.at(all.offsetOf(at)));
        if (pivots[i] < 1 || pivots[i] > rows) throw Failure("pivot " + std::to_string(pivots[i]) + " is not a row");
        --pivots[i];
    }
    return pivots;
}
void luUnpack(const Run& run) {
    const bool data = Call(run).flag("unpack_data"), permutes = Call(run).flag("unpack_pivots");
    forMatrices(run, "LU_data", [&](auto tag, const Call& call, const Matrices& all, int64_t k) {
        using T = decltype(tag);
        if (permutes) {
            const Strided pivots(call.tensor("LU_pivots"));
            call.store(0, k, permutationOf<T>(pivotsOf(pivots, k, all.rows), all.rows));
        }
        if (!data) return;
        Dense<T> lower, upper;
        splitFactors(all.load<T>(k), lower, upper);
        call.store(1, k, lower);
        call.store(2, k, upper);
    });
}

// -- systems

/// out = solve(matrix, side), the operands repeated over the result's batch. X A = B is A^H X^H = B^H: matrices on the
/// right are solved for as adjoints.
template <class Solve>
void solveAll(const Run& run, const Strided& target, const Strided& matrix, const Strided& side, bool left,
              Solve solve) {
    const Matrices out(target), a(spreadMatrices(matrix, target)), b(spreadMatrices(side, target));
    Call(run).withMatrix(target.dtype, [&](auto tag) {
        using T = decltype(tag);
        run.share(out.count, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t k = begin; k < end; ++k) {
                Dense<T> x = left ? b.load<T>(k) : adjoint(b.load<T>(k));
                solve(a.load<T>(k), x, k);
                out.store(k, left ? x : adjoint(x));
            }
        });
    });
}
void luSolve(const Run& run) {
    const Call call(run);
    const bool left = call.flag("left"), ofAdjoint = call.flag("adjoint");
    const Strided out = run.out(), all = spreadMatrices(Strided(call.tensor("pivots")), out, 1);
    const int64_t rows = out.sizes[out.rank - (left ? 2 : 1)];
    solveAll(run, out, Strided(call.tensor("LU")), Strided(call.tensor("B")), left,
             [&](const auto& factors, auto& x, int64_t k) {
                 solveLu(factors, pivotsOf(all, k, rows), x, left == ofAdjoint);
             });
}
void triangular(const Run& run) {
    const Call call(run);
    const bool left = call.flag("left"), upper = call.flag("upper"), unit = call.flag("unitriangular");
    solveAll(run, run.out(), Strided(call.tensor("self")), Strided(call.tensor("B")), left,
             [&](const auto& triangle, auto& x, int64_t) { solveTriangle(triangle, x, upper, unit, !left); });
}
void choleskySolve(const Run& run) {
    const Call call(run);
    const bool upper = call.flag("upper");
    solveAll(run, run.out(), Strided(call.tensor("input2")), Strided(call.tensor("self")), true,
             [&](const auto& factor, auto& x, int64_t) { solveCholesky(factor, upper, x); });
}
/// (A, B, left, check_errors): the solution, and the factors of A. B holds vectors where it has a dim less than A, or
/// one alone.
void solve(const Run& run) {
    forMatrices(run, "A", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        auto one = a.load<decltype(tag)>(k);
        std::vector<int64_t> pivots;
        const int64_t info = factorLu(one, pivots);
        checkRegular(call, info);
        call.store(1, k, one);
        call.store(2, k * a.rows, countedFromOne(pivots));
        call.store(3, k, std::vector<int64_t>{info});
    });
    if (!run.wants(0)) return;
    const Call call(run);
    const CtTensor &a = call.tensor("A"), &b = call.tensor("B");
    const bool left = call.flag("left"),
               vector = b.rank == 1 || (b.rank + 1 == a.rank && std::equal(b.sizes, b.sizes + b.rank, a.sizes));
    solveAll(run, vector ? asColumn(run.results[0]) : run.out(0), Strided(a), vector ? asColumn(b) : Strided(b), left,
             [&](auto matrix, auto& x, int64_t) {
                 std::vector<int64_t> pivots;
                 factorLu(matrix, pivots);
                 solveLu(matrix, pivots, x, !left);
             });
}
void inverse(const Run& run) {
    forMatrices(run, "A", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        using T = decltype(tag);
        Dense<T> one = a.load<T>(k), x = Dense<T>::identity(a.rows);
        std::vector<int64_t> pivots;
        const int64_t info = factorLu(one, pivots);
        checkRegular(call, info);
        solveLu(one, pivots, x);
        call.store(0, k, x);
        call.store(1, k, std::vector<int64_t>{info});
    });
}
/// Whether the matrices are row-major: PyTorch then spares a copy, and the factors are those of the transposes.
bool isRowByRow(const Strided& tensor) {
    int64_t stride = 1;
    bool rows = true;
    for (int32_t d = tensor.rank; d-- > 0; stride *= tensor.sizes[d])
        rows &= tensor.sizes[d] == 1 || tensor.strides[d] == stride;
    return rows || tensor.elements() == 0;
}
template <bool logarithm>
void determinant(const Run& run) {
    constexpr int32_t kFactors = logarithm ? 2 : 1;
    forMatrices(run, "A", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        using T = decltype(tag);
        Dense<T> one = a.load<T>(k);
        if (!isComplex(a.tensor.dtype) && isRowByRow(a.tensor)) one = adjoint(one);
        std::vector<int64_t> pivots;
        factorLu(one, pivots);
        const Determinant<T> found = determinantOf(one, pivots);
        call.store(0, k, std::vector<T>{logarithm ? found.direction : found.value});
        if (logarithm) call.store(1, k, std::vector<double>{found.logarithm});
        call.store(kFactors, k, one);
        call.store(kFactors + 1, k * a.rows, countedFromOne(pivots));
    });
}

// -- Cholesky

template <bool both>
void cholesky(const Run& run) {
    forMatrices(run, "self", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        auto one = a.load<decltype(tag)>(k);
        const bool upper = call.flag("upper");
        if (upper) one = adjoint(one);
        const int64_t info = factorCholesky(one);
        for (int64_t i = 0; i < one.rows; ++i)
            for (int64_t j = i + 1; j < one.rows; ++j) one(i, j) = 0;
        call.store(0, k, upper ? adjoint(one) : one);
        if (both) call.store(1, k, std::vector<int64_t>{info});
        if (info != 0 && (!both || call.flag("check_errors")))
            throw Failure("a matrix is not positive definite: its leading minor of order " + std::to_string(info));
    });
}
void choleskyInverse(const Run& run) {
    forMatrices(run, "self", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        using T = decltype(tag);
        Dense<T> x = Dense<T>::identity(a.rows);
        solveCholesky(a.load<T>(k), call.flag("upper"), x);
        call.store(0, k, x);
    });
}

// -- orthogonal factors

void qr(const Run& run) {
    forMatrices(run, "A", [](auto tag, const Call& call, const Matrices& a, int64_t number) {
        using T = decltype(tag);
        const std::string_view mode = call.reader.text("mode");
        Dense<T> factors = a.load<T>(number);
        std::vector<T> tau;
        factorQr(factors, tau);
        const int64_t k = mode == "complete" ? a.rows : std::min(a.rows, a.columns);
        Dense<T> upper(k, a.columns);
        for (int64_t i = 0; i < std::min(k, a.rows); ++i)
            for (int64_t j = i; j < a.columns; ++j) upper(i, j) = factors(i, j);
        if (mode != "r") call.store(0, number, multiplyReflections(factors, tau, k));
        call.store(1, number, upper);
    });
}
void reflections(const Run& run) {
    forMatrices(run, "input", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        using T = decltype(tag);
        const Dense<T> tau = Matrices(asColumn(call.tensor("tau"))).load<T>(k);
        call.store(0, k, multiplyReflections(a.load<T>(k), tau.elements, a.columns));
    });
}
void geqrf(const Run& run) {
    forMatrices(run, "self", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        auto one = a.load<decltype(tag)>(k);
        std::vector<decltype(tag)> tau;
        factorQr(one, tau);
        call.store(0, k, one);
        call.store(1, k * static_cast<int64_t>(tau.size()), tau);
    });
}
void ormqr(const Run& run) {
    const Matrices tau(asColumn(Call(run).tensor("input2")));
    forMatrices(run, "self", [&](auto tag, const Call& call, const Matrices& a, int64_t k) {
        auto x = call.matrices("input3").load<decltype(tag)>(k);
        applyReflections(a.load<decltype(tag)>(k), tau.load<decltype(tag)>(k).elements, x, call.flag("left"),
                         call.flag("transpose"));
        call.store(0, k, x);
    });
}

// -- symmetric matrices

void symmetricFactors(const Run& run) {
    forMatrices(run, "self", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        auto one = a.load<decltype(tag)>(k);
        std::vector<int64_t> pivots;
        const int64_t info = factorSymmetric(one, call.flag("hermitian"), pivots);
        checkRegular(call, info);
        call.store(0, k, one);
        call.store(1, k * a.rows, pivots);
        call.store(2, k, std::vector<int64_t>{info});
    });
}
void symmetricSolution(const Run& run) {
    const Call call(run);
    const Strided out = run.out(), all = spreadMatrices(Strided(call.tensor("pivots")), out, 1);
    solveAll(run, out, Strided(call.tensor("LD")), Strided(call.tensor("B")), true,
             [&](const auto& factors, auto& x, int64_t k) {
                 std::vector<int64_t> pivots;
                 for (int64_t i = 0; i < factors.rows; ++i)
                     pivots.push_back(loadOne<int64_t>(all.dtype, all.at(all.offsetOf(k * factors.rows + i))));
                 if (!areSymmetricPivots(pivots)) throw Failure("the pivots are not those of a factorization");
                 solveSymmetric(factors, pivots, call.flag("hermitian"), x);
             });
}

// -- eigenvalues, singular values, exponentials

/// Throws why LAPACK found nothing, if it says so.
void check(const char* why) {
    if (why) throw Failure(why);
}
void eigenvaluesOfHermitian(const Run& run) {
    forMatrices(run, "A", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        auto one = a.load<decltype(tag)>(k);
        const std::string_view triangle = call.reader.text("UPLO");
        std::vector<double> values;
        const bool vectors = call.flag("compute_v") && call.run.wants(1);
        check(eigenHermitian(one, triangle == "U" || triangle == "u", vectors, values));
        call.store(0, k * a.rows, values);
        if (vectors) call.store(1, k, one);
    });
}
void eigenvalues(const Run& run) {
    forMatrices(run, "self", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        std::vector<ComplexOf<decltype(tag)>> values;
        Dense<ComplexOf<decltype(tag)>> vectors;
        check(eigenGeneral(a.load<decltype(tag)>(k), values, vectors));
        call.store(0, k * a.rows, values);
        call.store(1, k, vectors);
    });
}
void singular(const Run& run) {
    forMatrices(run, "A", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        const bool vectors = call.flag("compute_uv") && (call.run.wants(0) || call.run.wants(2));
        const SingularVectors wanted = !vectors                     ? SingularVectors::None
                                       : call.flag("full_matrices") ? SingularVectors::Full
                                                                    : SingularVectors::Thin;
        Dense<decltype(tag)> u, vh;
        std::vector<double> values;
        check(singularValues(a.load<decltype(tag)>(k), wanted, values, u, vh));
        call.store(1, k * static_cast<int64_t>(values.size()), values);
        if (wanted == SingularVectors::None) return;
        call.store(0, k, u);
        call.store(2, k, vh);
    });
}
void pseudoInverse(const Run& run) {
    const Call call(run);
    const auto tolerance = [&](std::string_view param) {
        const Strided tensor(call.tensor(param));
        if (tensor.elements() != 1) throw Failure("takes tolerances of one number only");
        const auto number = loadOne<double>(tensor.dtype, tensor.data);
        return number;
    };
    const Matrices a = call.matrices("self");
    const int32_t dtype = a.tensor.dtype;
    const double epsilon = dtype == CT_F64 || dtype == CT_C128 ? 0x1p-52 : 0x1p-23;
    const double absolute = call.reader.find("atol") ? tolerance("atol") : 0;
    double relative = absolute > 0 ? 0 : epsilon * static_cast<double>(std::max(a.rows, a.columns));
    if (call.reader.find("rtol")) relative = tolerance("rtol");
    forMatrices(run, "self", [=](auto tag, const Call& own, const Matrices& all, int64_t k) {
        auto one = all.load<decltype(tag)>(k);
        if (own.flag("hermitian")) mirrorTriangle(one, false);
        check(cutaway::pseudoInverse(one, absolute, relative));
        own.store(0, k, one);
    });
}
void exponentialOf(const Run& run) {
    forMatrices(run, "self", [](auto tag, const Call& call, const Matrices& a, int64_t k) {
        call.store(0, k, exponential(a.load<decltype(tag)>(k)));
    });
}

constexpr Function kLinearFunctions[] = {
    {"aten.linalg_lu_factor_ex.default", luFactor},
    {"aten.linalg_lu.default", lu},
    {"aten.lu_unpack.default", luUnpack},
    {"aten.geqrf.default", geqrf},
    {"aten.ormqr.default", ormqr},
    {"aten.linalg_ldl_factor_ex.default", symmetricFactors},
    {"aten.linalg_ldl_solve.default", symmetricSolution},
    {"aten.linalg_lu_solve.default", luSolve},
    {"aten.linalg_solve_triangular.default", triangular},
    {"aten._linalg_solve_ex.default", solve},
    {"aten.linalg_inv_ex.default", inverse},
    {"aten._linalg_det.default", determinant<false>},
    {"aten._linalg_slogdet.default", determinant<true>},
    {"aten.linalg_cholesky_ex.default", cholesky<true>},
    {"aten.cholesky.default", cholesky<false>},
    {"aten.cholesky_solve.default", choleskySolve},
    {"aten.cholesky_inverse.default", choleskyInverse},
    {"aten.linalg_qr.default", qr},
    {"aten.linalg_householder_product.default", reflections},
    {"aten._linalg_eigh.default", eigenvaluesOfHermitian},
    {"aten.linalg_eig.default", eigenvalues},
    {"aten._linalg_svd.default", singular},
    {"aten.linalg_pinv.atol_rtol_tensor", pseudoInverse},
    {"aten.linalg_matrix_exp.default", exponentialOf},
};

}  // namespace

std::span<const Function> linearFunctions() { return kLinearFunctions; }

}  // namespace cutaway::portable
