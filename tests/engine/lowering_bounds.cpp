// How far compiled floats may be from the judge's, by op. What is not named has the judge's bits.
//
// The functions of f32 are polynomials of vectors (engine/codegen/cpp_prelude.cpp), or the C library's for vectors;
// those of f64, and those of f32 that are not vectors, are the C library's, as the judge's are. Reductions add in f64,
// as the judge does, in another order.
#include <map>

#include "tests/engine/lowering_samples.h"

namespace cutaway::testing {

Bound boundOf(const Op& op) {
    constexpr Bound kFunction{2}, kLibrary{4}, kSum{4, true};
    static const std::map<std::string_view, Bound> kBounds = {
        {"exp", {1}},
        {"expm1", kFunction},
        {"log", {1}},
        {"log1p", kFunction},
        {"tanh", kFunction},
        {"erf", {5}},
        {"sigmoid", kFunction},
        {"glu", kFunction},
        {"acos", kLibrary},
        {"acosh", kLibrary},
        {"asin", kLibrary},
        {"asinh", kLibrary},
        {"atan", kLibrary},
        {"atan2", kLibrary},
        {"atanh", kLibrary},
        {"cos", kLibrary},
        {"cosh", kLibrary},
        {"erfc", kLibrary},
        {"exp2", kLibrary},
        {"hypot", kLibrary},
        {"log10", kLibrary},
        {"log2", kLibrary},
        {"pow", kLibrary},
        {"sin", kLibrary},
        {"sinh", kLibrary},
        {"tan", kLibrary},
        {"erfinv", {4}},
        {"digamma", {16}},  // near its zeros
        {"mean", {1}},
        {"_cdist_forward", {2}},  // a power of a sum
        {"avg_pool2d", kSum},
        {"_adaptive_avg_pool2d", kSum},
        {"_adaptive_avg_pool3d", kSum},
        {"avg_pool2d_backward", kSum},
        {"avg_pool3d_backward", kSum},
        {"avg_pool3d", kSum},
        {"prod", kSum},
        {"var", kSum},
        {"var_mean", kSum},
        {"prepare_softmax_online", kSum},
    };
    const auto found = kBounds.find(op.baseName());
    return found == kBounds.end() ? Bound{} : found->second;
}

}  // namespace cutaway::testing
