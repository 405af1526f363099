// Orthogonal polynomials as operators of x and the degree n, each also with a number in place of either.
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/number_operand.h"
#include "engine/ops/op_registry.h"
#include "engine/support/special.h"

namespace cutaway {
namespace {

/// Degrees are cut to integers; what is not a number, or beyond all integers, has none.
template <class T>
int64_t degreeOf(T n) {
    return n >= T(-0x1p62) && n <= T(0x1p62) ? static_cast<int64_t>(n) : -1;
}
template <double (*f)(double, int64_t)>
EvalResult ofDegree(const EvalContext& c) {
    return zipFloat(c, [](auto x, auto n) { return static_cast<decltype(x)>(f(static_cast<double>(x), degreeOf(n))); });
}
template <Chebyshev kind, bool shifted>
EvalResult chebyshevOf(const EvalContext& c) {
    return zipFloat(c, [](auto x, auto n) {
        const auto at = static_cast<double>(x);
        return static_cast<decltype(x)>(chebyshev(kind, shifted ? 2 * at - 1 : at, degreeOf(n)));
    });
}
template <bool probabilists>
EvalResult hermiteOf(const EvalContext& c) {
    return zipFloat(c, [](auto x, auto n) {
        using T = decltype(x);
        constexpr int64_t kMost = sizeof(T) == 8 ? 512 : 128;
        return static_cast<T>(hermite(static_cast<double>(x), degreeOf(n), probabilists, kMost));
    });
}

constexpr OpDef polynomial(std::string_view schema, Fn<EvalResult(const EvalContext&)> eval) {
    return {.schema = schema,
            .tags = Tag::Pointwise,
            .infer = inferRealFloat,
            .eval = eval,
            .samples = "f32[2, 3], f32[3]>0\nf64[5], f64[5]>0\nf64[4]<1, i64[4]>0\ni64[3], i64[3]"};
}
#define CUTAWAY_POLYNOMIAL(name, ...)                                                          \
    polynomial("aten.special_" #name ".default(Tensor x, Tensor n) -> Tensor", __VA_ARGS__),   \
        CUTAWAY_NUMBER_FIRST("aten.special_" #name ".x_scalar(Scalar x, Tensor n) -> Tensor",  \
                             "aten.special_" #name ".default", "0.5, f64[5]>0\n2, i64[3]>0"),  \
        CUTAWAY_SECOND_NUMBER("aten.special_" #name ".n_scalar(Tensor x, Scalar n) -> Tensor", \
                              "aten.special_" #name ".default", "f64[5]<1, 12\nf32[2, 3], 3", Tag::Pointwise)

constexpr OpDef kSpecialPolynomialsOps[] = {
    CUTAWAY_POLYNOMIAL(chebyshev_polynomial_t, (chebyshevOf<Chebyshev::T, false>)),
    CUTAWAY_POLYNOMIAL(chebyshev_polynomial_u, (chebyshevOf<Chebyshev::U, false>)),
    CUTAWAY_POLYNOMIAL(chebyshev_polynomial_v, (chebyshevOf<Chebyshev::V, false>)),
    CUTAWAY_POLYNOMIAL(chebyshev_polynomial_w, (chebyshevOf<Chebyshev::W, false>)),
    CUTAWAY_POLYNOMIAL(shifted_chebyshev_polynomial_t, (chebyshevOf<Chebyshev::T, true>)),
    CUTAWAY_POLYNOMIAL(shifted_chebyshev_polynomial_u, (chebyshevOf<Chebyshev::U, true>)),
    CUTAWAY_POLYNOMIAL(shifted_chebyshev_polynomial_v, (chebyshevOf<Chebyshev::V, true>)),
    CUTAWAY_POLYNOMIAL(shifted_chebyshev_polynomial_w, (chebyshevOf<Chebyshev::W, true>)),
    CUTAWAY_POLYNOMIAL(hermite_polynomial_h, (hermiteOf<false>)),
    CUTAWAY_POLYNOMIAL(hermite_polynomial_he, (hermiteOf<true>)),
    CUTAWAY_POLYNOMIAL(laguerre_polynomial_l, (ofDegree<laguerre>)),
    CUTAWAY_POLYNOMIAL(legendre_polynomial_p, (ofDegree<legendre>)),
};

}  // namespace

std::span<const OpDef> specialPolynomialOps() { return kSpecialPolynomialsOps; }

}  // namespace cutaway
