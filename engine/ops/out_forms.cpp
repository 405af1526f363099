// Calls that write their result into a tensor they are given (`out=`): the functional call, and a copy. PyTorch makes
// `out` larger or smaller where it has other sizes, which here is refused.
#include <algorithm>
#include <array>

#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/renamed.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

struct OutForm {
    std::string_view schema, functional, samples;
    bool exact = false;  // takes no out of another dtype than the result's
};
#define CUTAWAY_UNARY_OUT(name, how, ...)                                                           \
    {                                                                                               \
        "aten." name ".out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", "aten." name ".default", \
            "f32[2, 3]" how ", out = f32[2, 3]" __VA_OPT__(, ) __VA_ARGS__                          \
    }
#define CUTAWAY_BINARY_OUT(name, functional)                                                             \
    {                                                                                                    \
        "aten." name "(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", "aten." functional, \
            "f32[2, 3]>0, f32[3]>0, out = f32[2, 3]"                                                     \
    }
#define CUTAWAY_COMPARE_OUT(name)                                                                                    \
    {"aten." name ".Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", "aten." name ".Tensor", \
     "f32[2, 3], f32[3], out = b8[2, 3]"},                                                                           \
    {                                                                                                                \
        "aten." name ".Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",                      \
            "aten." name ".Scalar", "f32[2, 3], 0.5, out = b8[2, 3]"                                                 \
    }
constexpr OutForm kForms[] = {
    CUTAWAY_UNARY_OUT("abs", "", true),
    CUTAWAY_UNARY_OUT("neg", ""),
    CUTAWAY_UNARY_OUT("exp", ""),
    CUTAWAY_UNARY_OUT("log", ">0"),
    CUTAWAY_UNARY_OUT("sqrt", ">0"),
    CUTAWAY_UNARY_OUT("rsqrt", ">0"),
    CUTAWAY_UNARY_OUT("reciprocal", ">0"),
    CUTAWAY_UNARY_OUT("sin", ""),
    CUTAWAY_UNARY_OUT("cos", ""),
    CUTAWAY_UNARY_OUT("tanh", ""),
    CUTAWAY_UNARY_OUT("sigmoid", ""),
    CUTAWAY_UNARY_OUT("floor", "", true),
    CUTAWAY_UNARY_OUT("ceil", "", true),
    CUTAWAY_UNARY_OUT("round", ""),
    CUTAWAY_UNARY_OUT("sign", "", true),
    {"aten.add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)", "aten.add.Tensor",
     "f32[2, 3], f32[3], alpha = 2, out = f32[2, 3]"},
    {"aten.sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)", "aten.sub.Tensor",
     "f32[2, 3], f32[3], out = f32[2, 3]\nf32[2, 3], f32[3], out = f64[2, 3]"},
    CUTAWAY_BINARY_OUT("mul.out", "mul.Tensor"),
    CUTAWAY_BINARY_OUT("div.out", "div.Tensor"),
    CUTAWAY_BINARY_OUT("maximum.out", "maximum.default"),
    CUTAWAY_BINARY_OUT("minimum.out", "minimum.default"),
    {"aten.pow.Tensor_Tensor_out(Tensor self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
     "aten.pow.Tensor_Tensor", "f32[2, 3]>0, f32[3], out = f32[2, 3]"},
    {"aten.pow.Tensor_Scalar_out(Tensor self, Scalar exponent, *, Tensor(a!) out) -> Tensor(a!)",
     "aten.pow.Tensor_Scalar", "f32[2, 3], 2, out = f32[2, 3]"},
    CUTAWAY_COMPARE_OUT("eq"),
    CUTAWAY_COMPARE_OUT("ne"),
    CUTAWAY_COMPARE_OUT("lt"),
    CUTAWAY_COMPARE_OUT("le"),
    CUTAWAY_COMPARE_OUT("gt"),
    CUTAWAY_COMPARE_OUT("ge"),
    {"aten.clamp.out(Tensor self, Scalar? min=None, Scalar? max=None, *, Tensor(a!) out) -> Tensor(a!)",
     "aten.clamp.default", "f32[2, 3], -0.5, 0.5, out = f32[2, 3]"},
    {"aten.where.self_out(Tensor condition, Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
     "aten.where.self", "b8[2, 3], f32[2, 3], f32[3], out = f32[2, 3]", true},
    {"aten.mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)", "aten.mm.default",
     "f32[2, 3], f32[3, 4], out = f32[2, 4]"},
    {"aten.bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)", "aten.bmm.default",
     "f32[2, 3, 4], f32[2, 4, 5], out = f32[2, 3, 5]"},
    {"aten.mv.out(Tensor self, Tensor vec, *, Tensor(a!) out) -> Tensor(a!)", "aten.mv.default",
     "f32[2, 3], f32[3], out = f32[2]"},
    {"aten.matmul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", "aten.matmul.default",
     "f32[2, 3, 4], f32[4], out = f32[2, 3]"},
    {"aten.addmm.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
     "aten.addmm.default", "f32[4], f32[2, 3], f32[3, 4], out = f32[2, 4]"},
    {"aten.baddbmm.out(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
     "aten.baddbmm.default", "f32[2, 3, 5], f32[2, 3, 4], f32[2, 4, 5], alpha = 0.5, out = f32[2, 3, 5]"},
    {"aten.cat.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)", "aten.cat.default",
     "[f32[2, 3], f32[1, 3]], out = f32[3, 3]"},
    {"aten.stack.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)", "aten.stack.default",
     "[f32[3], f32[3]], 1, out = f32[3, 2]"},
    {"aten.sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
     "aten.sum.dim_IntList", "f32[2, 3], [1], out = f32[2]"},
    {"aten.mean.out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
     "aten.mean.dim", "f32[2, 3], [1], True, out = f32[2, 1]"},
    {"aten.cumsum.out(Tensor self, int dim, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
     "aten.cumsum.default", "f32[2, 3], 1, out = f32[2, 3]"},
    {"aten.index_select.out(Tensor self, int dim, Tensor index, *, Tensor(a!) out) -> Tensor(a!)",
     "aten.index_select.default", "f32[4, 3], 0, i64[2]<4, out = f32[2, 3]"},
    {"aten.gather.out(Tensor self, int dim, Tensor index, *, bool sparse_grad=False, Tensor(a!) out) -> Tensor(a!)",
     "aten.gather.default", "f32[4, 3], 0, i64[2, 3]<4, out = f32[2, 3]", true},
    {"aten.linalg_vector_norm.out(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
     "aten.linalg_vector_norm.default", "f32[2, 3], 2, [1], out = f32[2]", true},
};

/// bool < integers < floats < complex: a result is not written to an `out` of a lower category.
int categoryOf(DType dtype) {
    if (isComplex(dtype)) return 3;
    if (isFloating(dtype)) return 2;
    return dtype == DType::Bool ? 0 : 1;
}
Values written(Decomposition& d) {
    const OutForm& row = rowOf(kForms, d.op().name());
    const Value result = sameCall(d, row.functional, {"out"}), out = d.in("out");
    if (!result) return result;
    if (row.exact ? result.dtype() != out.dtype() : categoryOf(result.dtype()) > categoryOf(out.dtype()))
        return refuse(d,
                      "the result does not fit into out, which has dtype " + std::string(info(out.dtype()).torchName));
    if (differ(result.sizes(), out.sizes()))
        return refuse(d, "gives " + result.type().text() + ", and out is " + out.type().text() +
                             "; give one of the result's sizes");
    return d.call("aten.copy_.default", {out, result});
}

constexpr auto kOutFormsOps = [] {
    std::array<OpDef, std::size(kForms)> ops;
    size_t at = 0;
    for (const OutForm& row : kForms) ops[at++] = shorthand(row.schema, written, row.samples);
    return ops;
}();

}  // namespace

std::span<const OpDef> outFormOps() { return kOutFormsOps; }

}  // namespace cutaway
