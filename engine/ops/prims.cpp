// torch.ops.prims: the operators that PyTorch's decompositions end in. Each is an ATen operator of equal dtypes and
// shapes, with Python's numbers for tensors where a decomposition has them.
#include <algorithm>
#include <array>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/number_operand.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/renamed.h"

namespace cutaway {
namespace {

struct Prim {
    std::string_view schema, means, samples;
    std::string_view number = {};  // what it means with a number for the second operand; empty: as with a tensor
    Tag tags = Tag::Pointwise;
};

#define CUTAWAY_UNARY_PRIM(name, means, samples) \
    { "prims." name ".default(Tensor self) -> Tensor", "aten." means ".default", samples }
#define CUTAWAY_BINARY_PRIM(name, means, samples) \
    { "prims." name ".default(Tensor self, Tensor other) -> Tensor", "aten." means, samples }
/// With an overload for a number; a number may stand in the first place, too.
#define CUTAWAY_NUMBER_PRIM(name, means, number, samples) \
    { "prims." name ".default(Tensor self, Tensor other) -> Tensor", "aten." means, samples, "aten." number }

constexpr std::string_view kPrimReals = "f32[2, 3]", kPrimPositive = "f32[2, 3]>0", kPrimSmall = "f32[2, 3]<1",
                           kPrimPair = "f32[2, 3], f32[2, 3]", kPrimPositivePair = "f32[2, 3]>0, f32[2, 3]>0",
                           kPrimNumbers = "f32[2, 3], f32[2, 3]\nf32[2, 3], 0.5\n0.5, f32[2, 3]\ni64[4], 2",
                           kPrimWholePair = "i64[4], i64[4]", kPrimBits = "i64[4], i64[4]\nb8[4], b8[4]\ni64[4], 3";

constexpr Prim kPrims[] = {
    CUTAWAY_UNARY_PRIM("abs", "abs", "f32[2, 3]\nc64[3]"),
    CUTAWAY_UNARY_PRIM("acos", "acos", kPrimSmall),
    CUTAWAY_UNARY_PRIM("acosh", "acosh", kPrimReals),
    CUTAWAY_UNARY_PRIM("asin", "asin", kPrimSmall),
    CUTAWAY_UNARY_PRIM("asinh", "asinh", kPrimReals),
    CUTAWAY_UNARY_PRIM("atan", "atan", kPrimReals),
    CUTAWAY_UNARY_PRIM("atanh", "atanh", kPrimSmall),
    CUTAWAY_UNARY_PRIM("cos", "cos", kPrimReals),
    CUTAWAY_UNARY_PRIM("cosh", "cosh", kPrimReals),
    CUTAWAY_UNARY_PRIM("bessel_i0", "i0", kPrimReals),
    CUTAWAY_UNARY_PRIM("bessel_i0e", "special_i0e", kPrimReals),
    CUTAWAY_UNARY_PRIM("bessel_i1", "special_i1", kPrimReals),
    CUTAWAY_UNARY_PRIM("bessel_i1e", "special_i1e", kPrimReals),
    CUTAWAY_UNARY_PRIM("bessel_j0", "special_bessel_j0", kPrimReals),
    CUTAWAY_UNARY_PRIM("bessel_j1", "special_bessel_j1", kPrimReals),
    CUTAWAY_UNARY_PRIM("bitwise_not", "bitwise_not", "i64[4]\nb8[4]"),
    CUTAWAY_UNARY_PRIM("ceil", "ceil", kPrimReals),
    CUTAWAY_UNARY_PRIM("conj_physical", "_conj_physical", "c64[3]"),
    CUTAWAY_UNARY_PRIM("digamma", "digamma", kPrimPositive),
    CUTAWAY_UNARY_PRIM("erf", "erf", kPrimReals),
    CUTAWAY_UNARY_PRIM("erf_inv", "erfinv", kPrimSmall),
    CUTAWAY_UNARY_PRIM("erfc", "erfc", kPrimReals),
    CUTAWAY_UNARY_PRIM("erfcx", "special_erfcx", kPrimReals),
    CUTAWAY_UNARY_PRIM("exp", "exp", kPrimReals),
    CUTAWAY_UNARY_PRIM("expm1", "expm1", kPrimReals),
    CUTAWAY_UNARY_PRIM("exp2", "exp2", kPrimReals),
    CUTAWAY_UNARY_PRIM("floor", "floor", kPrimReals),
    CUTAWAY_UNARY_PRIM("isfinite", "isfinite", kPrimReals),
    CUTAWAY_UNARY_PRIM("lgamma", "lgamma", kPrimPositive),
    CUTAWAY_UNARY_PRIM("log", "log", kPrimPositive),
    CUTAWAY_UNARY_PRIM("log1p", "log1p", kPrimPositive),
    CUTAWAY_UNARY_PRIM("log2", "log2", kPrimPositive),
    CUTAWAY_UNARY_PRIM("log10", "log10", kPrimPositive),
    CUTAWAY_UNARY_PRIM("ndtri", "special_ndtri", kPrimSmall),
    CUTAWAY_UNARY_PRIM("neg", "neg", kPrimReals),
    CUTAWAY_UNARY_PRIM("reciprocal", "reciprocal", kPrimReals),
    CUTAWAY_UNARY_PRIM("round", "round", kPrimReals),
    CUTAWAY_UNARY_PRIM("rsqrt", "rsqrt", kPrimPositive),
    CUTAWAY_UNARY_PRIM("sign", "sign", kPrimReals),
    CUTAWAY_UNARY_PRIM("signbit", "signbit", kPrimReals),
    CUTAWAY_UNARY_PRIM("sin", "sin", kPrimReals),
    CUTAWAY_UNARY_PRIM("sinh", "sinh", kPrimReals),
    CUTAWAY_UNARY_PRIM("spherical_bessel_j0", "special_spherical_bessel_j0", kPrimReals),
    CUTAWAY_UNARY_PRIM("sqrt", "sqrt", kPrimPositive),
    CUTAWAY_UNARY_PRIM("tan", "tan", kPrimReals),
    CUTAWAY_UNARY_PRIM("tanh", "tanh", kPrimReals),
    CUTAWAY_UNARY_PRIM("trunc", "trunc", kPrimReals),
    CUTAWAY_NUMBER_PRIM("add", "add.Tensor", "add.Tensor", kPrimNumbers),
    CUTAWAY_NUMBER_PRIM("sub", "sub.Tensor", "sub.Tensor", kPrimNumbers),
    CUTAWAY_NUMBER_PRIM("mul", "mul.Tensor", "mul.Tensor", kPrimNumbers),
    CUTAWAY_NUMBER_PRIM("eq", "eq.Tensor", "eq.Scalar", kPrimNumbers),
    CUTAWAY_NUMBER_PRIM("ne", "ne.Tensor", "ne.Scalar", kPrimNumbers),
    CUTAWAY_NUMBER_PRIM("lt", "lt.Tensor", "lt.Scalar", kPrimNumbers),
    CUTAWAY_NUMBER_PRIM("le", "le.Tensor", "le.Scalar", kPrimNumbers),
    CUTAWAY_NUMBER_PRIM("gt", "gt.Tensor", "gt.Scalar", kPrimNumbers),
    CUTAWAY_NUMBER_PRIM("ge", "ge.Tensor", "ge.Scalar", kPrimNumbers),
    CUTAWAY_NUMBER_PRIM("fmod", "fmod.Tensor", "fmod.Scalar", "f32[2, 3], f32[2, 3]>0\nf32[2, 3], 0.5\ni64[4], 3"),
    CUTAWAY_NUMBER_PRIM("remainder", "remainder.Tensor", "remainder.Scalar",
                        "f32[2, 3], f32[2, 3]>0\nf32[2, 3], 0.5\ni64[4], 3"),
    CUTAWAY_NUMBER_PRIM("pow", "pow.Tensor_Tensor", "pow.Tensor_Scalar",
                        "f32[2, 3]>0, f32[2, 3]\nf32[2, 3]>0, 0.5\n2.0, f32[2, 3]\ni64[4], 2"),
    CUTAWAY_NUMBER_PRIM("bitwise_and", "bitwise_and.Tensor", "bitwise_and.Scalar", kPrimBits),
    CUTAWAY_NUMBER_PRIM("bitwise_or", "bitwise_or.Tensor", "bitwise_or.Scalar", kPrimBits),
    CUTAWAY_NUMBER_PRIM("bitwise_xor", "bitwise_xor.Tensor", "bitwise_xor.Scalar", kPrimBits),
    CUTAWAY_NUMBER_PRIM("shift_left", "bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar",
                        "i64[4]>0, i64[4]>0\ni64[4], 3"),
    CUTAWAY_NUMBER_PRIM("shift_right_arithmetic", "bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar",
                        "i64[4], i64[4]>0\ni64[4], 3"),
    CUTAWAY_BINARY_PRIM("atan2", "atan2.default", "f32[2, 3], f32[2, 3]\nf32[2, 3], 0.5"),
    CUTAWAY_BINARY_PRIM("fmax", "fmax.default", "f32[2, 3], f32[2, 3]\nf32[2, 3], 0.5"),
    CUTAWAY_BINARY_PRIM("fmin", "fmin.default", kPrimPair),
    CUTAWAY_BINARY_PRIM("maximum", "maximum.default", "f32[2, 3], f32[2, 3]\nf32[2, 3], 0.5\n0.5, f32[2, 3]"),
    CUTAWAY_BINARY_PRIM("minimum", "minimum.default", "f32[2, 3], f32[2, 3]\nf32[2, 3], 0.5\ni64[4], 1"),
    CUTAWAY_BINARY_PRIM("gcd", "gcd.default", kPrimWholePair),
    CUTAWAY_BINARY_PRIM("hypot", "hypot.default", kPrimPair),
    CUTAWAY_BINARY_PRIM("igamma", "special_gammainc.default", kPrimPositivePair),
    CUTAWAY_BINARY_PRIM("igammac", "special_gammaincc.default", kPrimPositivePair),
    CUTAWAY_BINARY_PRIM("nextafter", "nextafter.default", kPrimPair),
    CUTAWAY_BINARY_PRIM("zeta", "special_zeta.default", kPrimPositivePair),
    {"prims.where.default(Tensor pred, Tensor a, Tensor b) -> Tensor", "aten.where.self",
     "b8[2, 3], f32[2, 3], f32[2, 3]\nb8[2, 3], f32[2, 3], 0.5\nb8[2, 3], 0.5, f32[2, 3]"},
    {"prims.fill.default(Tensor self, Scalar value) -> Tensor", "aten.fill.Scalar", "f32[2, 3], 0.5"},
    {"prims.frexp.default(Tensor self) -> (Tensor mantissa, Tensor exponent)", "aten.frexp.Tensor", kPrimReals, "",
     Tag::None},
    {"prims.clone.default(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", "aten.clone.default",
     kPrimReals, "", Tag::None},
    {"prims.imag.default(Tensor(a) self) -> Tensor(a)", "aten.imag.default", "c64[3]", "", Tag::None},
    {"prims.real.default(Tensor(a) self) -> Tensor(a)", "aten.real.default", "c64[3]", "", Tag::None},
    {"prims.conj.default(Tensor(a) a) -> Tensor(a)", "aten.conj.default", "c64[3]", "", Tag::None},
    {"prims.view_of.default(Tensor(a) a) -> Tensor(a)", "aten.alias.default", kPrimReals, "", Tag::None},
    {"prims.transpose.default(Tensor(a) a, int[] permutation) -> Tensor(a)", "aten.permute.default",
     "f32[2, 3, 4], [2, 0, 1]", "", Tag::None},
    {"prims.squeeze.default(Tensor(a) a, int[] dimensions) -> Tensor(a)", "aten.squeeze.dims",
     "f32[1, 3, 1, 2], [0, 2]", "", Tag::None},
    {"prims.as_strided.default(Tensor(a) a, SymInt[] size, SymInt[] stride, SymInt storage_offset) -> Tensor(a)",
     "aten.as_strided.default", "f32[3, 4], [2, 2], [4, 2], 1", "", Tag::None},
    {"prims.as_strided_scatter.default(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt storage_offset) -> Tensor",
     "aten.as_strided_scatter.default", "f32[3, 4], f32[2, 2], [2, 2], [4, 2], 1", "", Tag::None},
    {"prims.cat.default(Tensor[] tensors, int dim) -> Tensor", "aten.cat.default", "[f32[2, 3], f32[2, 4]], 1", "",
     Tag::None},
    {"prims.scalar_tensor.default(Scalar s, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
     "aten.scalar_tensor.default", "2.5\n3, dtype = torch.float32", "", Tag::Factory},
    {"prims.svd.default(Tensor A, *, bool full_matrices) -> (Tensor U, Tensor S, Tensor Vh)", "aten.linalg_svd.default",
     "f32[3, 2], full_matrices = False", "", Tag::None},
};

bool isTensorOperand(const Argument& arg) { return arg.node() != nullptr && arg.node()->type().tensor() != nullptr; }

/// Whether the operands from this place on have one dtype, as prims ask; a refusal if not.
bool haveOneDtype(Decomposition& d, size_t first) {
    const auto& params = d.op().schema()->params;
    std::optional<DType> dtype;
    for (size_t i = first; i < params.size(); ++i) {
        if (params[i].kind != ParamKind::Tensor || params[i].list || !isTensorOperand(d.arg(i))) continue;
        if (dtype && *dtype != d.in(i).dtype()) {
            refuse(d, "takes operands of one dtype; convert one of them with prims.convert_element_type");
            return false;
        }
        dtype = d.in(i).dtype();
    }
    return true;
}

/// The ATen call with the operands as they are, numbers as tensors of the others' dtype.
Values asAten(Decomposition& d) {
    const Prim& row = rowOf(kPrims, d.op().name());
    const auto& params = d.op().schema()->params;
    if (d.op().is(Tag::Pointwise) && !haveOneDtype(d, row.means == "aten.where.self" ? 1 : 0))
        return Value(d.builder(), nullptr);
    if (!row.number.empty() && isTensorOperand(d.arg(size_t{0})) && !isTensorOperand(d.arg(1)))
        return d.call(row.number, {d.arg(size_t{0}), d.arg(1)});
    std::optional<Value> like;
    for (size_t i = params.size(); i-- > 0;)
        if (params[i].kind == ParamKind::Tensor && !params[i].list && isTensorOperand(d.arg(i))) like = d.in(i);
    if (row.means == "aten.where.self") {
        if (!isTensorOperand(d.arg(1)) && !isTensorOperand(d.arg(2))) return refuse(d, "chooses between two numbers");
        like = isTensorOperand(d.arg(1)) ? d.in(1) : d.in(2);
    }
    std::vector<Argument> positional;
    NamedArguments keywords;
    for (size_t i = 0; i < params.size(); ++i) {
        const bool wraps = params[i].kind == ParamKind::Tensor && like && d.arg(i).isNumber();
        const Argument value = wraps ? Argument(numberLike(d, i, *like)) : d.arg(i);
        if (params[i].keywordOnly && params[i].name != "full_matrices") keywords.emplace_back(params[i].name, value);
        else positional.push_back(value);
    }
    const Value value = d.call(row.means, std::move(positional), std::move(keywords));
    return d.op().schema()->returns.size() > 1 ? Values(itemsOf(value)) : Values(value);
}

/// Integers are divided toward zero.
Values primQuotient(Decomposition& d) {
    if (!haveOneDtype(d, 0)) return Value(d.builder(), nullptr);
    const bool first = isTensorOperand(d.arg(size_t{0}));
    const Value like = d.in(first ? size_t{0} : size_t{1});
    const Argument a = first ? d.arg(size_t{0}) : Argument(numberLike(d, 0, like)), b = d.arg(1);
    if (!isIntegral(like.dtype(), false)) return d.call("aten.div.Tensor", {a, b});
    return d.call("aten.div.Tensor_mode", {a, b}, {{"rounding_mode", "trunc"}});
}
/// |x| to the power of a third, with the sign of x.
Values cubicRoot(Decomposition& d) {
    const Value x = d.in(size_t{0});
    if (isComplex(x.dtype())) return refuse(d, "takes real numbers only; write x ** (1 / 3)");
    const Value root = d.call("aten.pow.Tensor_Scalar", {unary("aten.abs.default", x), 1.0 / 3});
    return d.call("aten.copysign.Tensor", {root, x});
}

// -- shapes

Values primCollapsed(Decomposition& d) {
    return d.call("aten.flatten.using_ints", {d.in(size_t{0}), d.arg("start"), d.arg("end")});
}
Values primCollapsedCopy(Decomposition& d) {
    return d.call("aten.clone.default",
                  {d.call("aten.flatten.using_ints", {d.in(size_t{0}), d.arg("start"), d.arg("end")})},
                  {{"memory_format", MemoryFormat::Contiguous}});
}
Values splitDim(Decomposition& d) {
    const Value x = d.in(size_t{0});
    const auto dim = read(d, d.dim("dim", x.rank()));
    const auto outer = read(d, d.size("outer_length"));
    if (!dim || !outer) return Value(d.builder(), nullptr);
    return d.call("aten.unflatten.int", {x, *dim, Argument(std::vector<Argument>{Argument(*outer), Argument(-1)})});
}
Values reshapedCopy(Decomposition& d) {
    return d.call("aten.clone.default", {d.call("aten.reshape.default", {d.in(size_t{0}), d.arg("shape")})},
                  {{"memory_format", MemoryFormat::Contiguous}});
}
Values primStrided(Decomposition& d) {
    const Value x = d.in(size_t{0});
    const Value made = d.call("aten.empty_strided.default", {Argument(x.sizes()), d.arg("stride")},
                              {{"dtype", x.dtype()}, {"device", x.type().device}});
    return d.call("aten.copy.default", {made, x});
}

// -- reductions, over all dims where none are given

Values primOfDtype(Decomposition& d, Value result) {
    const auto dtype = d.dtype("output_dtype");
    return dtype && result ? convert(result, *dtype) : result;
}
Values primSum(Decomposition& d) {
    return d.call("aten.sum.dim_IntList", {d.in(size_t{0}), d.arg("dims"), false}, {{"dtype", d.arg("output_dtype")}});
}
Values primProduct(Decomposition& d) {
    Value x = d.in(size_t{0});
    if (d.arg("dims").isNone()) return d.call("aten.prod.default", {x}, {{"dtype", d.arg("output_dtype")}});
    auto dims = read(d, d.integers("dims"));
    if (!dims) return Value(d.builder(), nullptr);
    std::sort(dims->rbegin(), dims->rend());
    for (const int64_t dim : *dims)
        x = d.call("aten.prod.dim_int", {x, dim, false}, {{"dtype", d.arg("output_dtype")}});
    return dims->empty() ? d.call("aten.clone.default", {x}) : x;
}
Values extremeOf(Decomposition& d, std::string_view op) {
    const Argument dims = d.arg("dims").isNone() ? Argument(std::vector<Argument>{}) : d.arg("dims");
    return primOfDtype(d, d.call(op, {d.in(size_t{0}), dims, false}));
}
Values varianceOf(Decomposition& d) {
    return primOfDtype(d, d.call("aten.var.correction", {d.in(size_t{0}), d.arg("dims")},
                                 {{"correction", d.arg("correction")}, {"keepdim", false}}));
}

// -- new tensors

Values primEmpty(Decomposition& d, std::string_view op) {
    return d.call(op, {d.arg(size_t{0}), d.arg(1)}, {{"dtype", d.arg("dtype")}, {"device", d.arg("device")}});
}
Values drawnNormal(Decomposition& d) {
    const Value drawn = d.call("aten.randn.default", {d.arg("shape")},
                               {{"dtype", d.arg("dtype")}, {"device", d.arg("device")}, {"pin_memory", false}});
    return drawn * d.any(static_cast<size_t>(d.position("std"))) + d.any(static_cast<size_t>(d.position("mean")));
}
Values primTransform(Decomposition& d, std::string_view op, std::string_view last) {
    return d.call(op, {d.in(size_t{0}), d.arg("dim"), int64_t{0}, d.arg(last)});
}

#define CUTAWAY_REDUCTION_PRIM(name, rule)                                                                         \
    shorthand("prims." name ".default(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor", rule, \
              "f32[2, 3, 4], [0, 2]\nf32[2, 3], None")

constexpr OpDef kPrimsWithRules[] = {
    shorthand("prims.div.default(Tensor self, Tensor other) -> Tensor", primQuotient,
              "f32[2, 3], f32[2, 3]\nf32[2, 3], 0.5\n0.5, f32[2, 3]\ni64[4], 2", Tag::Pointwise),
    shorthand("prims.cbrt.default(Tensor self) -> Tensor", cubicRoot, "f32[2, 3]", Tag::Pointwise),
    shorthand("prims.collapse_view.default(Tensor(a) a, int start, int end) -> Tensor(a)", primCollapsed,
              "f32[2, 3, 4], 1, 2"),
    shorthand("prims.collapse.default(Tensor a, int start, int end) -> Tensor", primCollapsedCopy,
              "f32[2, 3, 4], 0, 1"),
    shorthand("prims.split_dim.default(Tensor(a) a, int dim, SymInt outer_length) -> Tensor(a)", splitDim,
              "f32[2, 6], 1, 3"),
    shorthand("prims.reshape.default(Tensor a, SymInt[] shape) -> Tensor", reshapedCopy, "f32[2, 6], [3, 4]"),
    shorthand("prims.copy_strided.default(Tensor a, SymInt[] stride) -> Tensor", primStrided, "f32[2, 3], [1, 2]"),
    shorthand(
        "prims.copy_to.default(Tensor(a!) a, Tensor b) -> Tensor(a!)",
        [](Decomposition& d) -> Values {
            return d.call("aten.copy_.default", {d.in(size_t{0}), d.arg(1)});
        },
        "f32[2, 3], f32[2, 3]"),
    shorthand(
        "prims.resize.default(Tensor(a!) a, SymInt[] shape) -> Tensor(a!)",
        [](Decomposition& d) -> Values {
            return d.call("aten.resize_.default", {d.in(size_t{0}), d.arg("shape")});
        },
        "f32[2, 3], [3, 2]"),
    CUTAWAY_REDUCTION_PRIM("sum", primSum),
    CUTAWAY_REDUCTION_PRIM("prod", primProduct),
    CUTAWAY_REDUCTION_PRIM("amax", [](Decomposition& d) { return extremeOf(d, "aten.amax.default"); }),
    CUTAWAY_REDUCTION_PRIM("amin", [](Decomposition& d) { return extremeOf(d, "aten.amin.default"); }),
    shorthand(
        "prims.xor_sum.default(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor",
        [](Decomposition& d) {
            return refuse(d,
                          "has no kernel in PyTorch either, which knows it in generated code alone; combine "
                          "the items with aten.bitwise_xor.Tensor");
        },
        ""),
    shorthand(
        "prims.var.default(Tensor inp, int[]? dims, float? correction=1, *, ScalarType? output_dtype=None) -> Tensor",
        varianceOf, "f32[2, 3, 4], [1, 2]\nf32[2, 3], [1], 0.0\nf32[2, 3], None"),
    shorthand(
        "prims.empty_strided.default(SymInt[] shape, SymInt[] strides, *, ScalarType dtype, Device device, bool requires_grad) -> Tensor",
        [](Decomposition& d) { return primEmpty(d, "aten.empty_strided.default"); }, "", Tag::Factory),
    shorthand(
        "prims.empty_permuted.default(SymInt[] shape, int[] physical_layout, *, ScalarType dtype, Device device, bool requires_grad) -> Tensor",
        [](Decomposition& d) { return primEmpty(d, "aten.empty_permuted.default"); }, "", Tag::Factory),
    shorthand(
        "prims.normal.default(SymInt[] shape, *, Scalar mean, Scalar std, ScalarType dtype, Device device, bool requires_grad, Generator? generator=None) -> Tensor",
        drawnNormal,
        "[2, 3], mean = 1.0, std = 2.0, dtype = torch.float32, device = device(type='cpu'), requires_grad = False",
        Tag::Random | Tag::Factory),
    shorthand(
        "prims.fft_r2c.default(Tensor self, *, int[] dim, bool onesided) -> Tensor",
        [](Decomposition& d) { return primTransform(d, "aten._fft_r2c.default", "onesided"); },
        "f32[3, 4], dim = [1], onesided = True"),
    shorthand(
        "prims.fft_c2c.default(Tensor self, *, int[] dim, bool forward) -> Tensor",
        [](Decomposition& d) { return primTransform(d, "aten._fft_c2c.default", "forward"); },
        "c64[3, 4], dim = [1], forward = True"),
    shorthand(
        "prims.fft_c2r.default(Tensor self, *, int[] dim, SymInt last_dim_size) -> Tensor",
        [](Decomposition& d) { return primTransform(d, "aten._fft_c2r.default", "last_dim_size"); },
        "c64[3, 4], dim = [1], last_dim_size = 6"),
    shorthand(
        "prims.maximum_value.default(ScalarType dtype) -> Scalar",
        [](Decomposition& d) { return refuse(d, "is a number that is known without running; write it in its place"); },
        ""),
    shorthand(
        "prims.minimum_value.default(ScalarType dtype) -> Scalar",
        [](Decomposition& d) { return refuse(d, "is a number that is known without running; write it in its place"); },
        ""),
    // Effects run where they stand; their tokens say nothing more.
    shorthand(
        "prims._make_token.default() -> Tensor",
        [](Decomposition& d) -> Values { return full(d.builder(), {0}, Scalar(0.0), DType::F32, Device()); }, "",
        Tag::Factory),
    {.schema = "prims._sink_tokens.default(Tensor[] tokens) -> ()",
     .infer = [](const InferContext&) -> Result<ValueType> { return ValueType(); },
     .eval = [](const EvalContext&) -> EvalResult { return TensorList{}; }},
};

constexpr auto kPrimsOps = [] {
    constexpr size_t kPlain = std::size(kPrims);
    std::array<OpDef, kPlain + std::size(kPrimsWithRules)> ops;
    for (size_t i = 0; i < kPlain; ++i) ops[i] = shorthand(kPrims[i].schema, asAten, kPrims[i].samples, kPrims[i].tags);
    for (size_t i = 0; i < std::size(kPrimsWithRules); ++i) ops[kPlain + i] = kPrimsWithRules[i];
    return ops;
}();

}  // namespace

std::span<const OpDef> primOps() { return kPrimsOps; }

}  // namespace cutaway
