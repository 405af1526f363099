// Reductions that are written with others: deviations, norms, log-sum-exp, counts.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/reduce_rules.h"

namespace cutaway {
namespace {

// -- standard deviation

NamedArguments varianceKeywords(const Decomposition& d) {
    const auto given = d.scalar("correction");
    return {{"correction", given ? toDouble(*given) : 1.0}, {"keepdim", d.flag("keepdim")}};
}
/// Gradient of the variance from that of its root; 0 where the root is.
Value throughRoot(Derivation& d, const Value& gradient) {
    const Value root = d.out(0);
    const Value slope = gradient / d.call("aten.mul.Scalar", {root, 2});
    return d.call("aten.masked_fill.Scalar", {slope, compareScalar("eq", root, int64_t{0}), 0});
}
/// var.dim, std.default and the like: `unbiased` is a correction of 1 or 0.
Values withCorrection(Decomposition& d, std::string_view op) {
    const bool dims = d.op().schema()->find("dim") >= 0;
    NamedArguments keywords = {{"correction", d.flag("unbiased", true) ? 1 : 0}};
    if (dims) keywords.emplace_back("keepdim", d.flag("keepdim"));
    const Value result = d.call(op, {d.arg(0), dims ? d.arg("dim") : Argument()}, std::move(keywords));
    if (op.find("_mean") == std::string_view::npos) return result;
    return {result[0], result[1]};
}

// -- log-sum-exp

Result<ValueType> inferLogSumExp(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const std::vector<int64_t> dims, c.integers("dim"));
    if (dims.empty() && self.rank() > 0 && !c.flag("keepdim")) return c.fail("needs the dims to reduce");
    CT_TRY(TensorType type, reducedType(c, isIntegral(self.dtype, true) ? DType::F32 : self.dtype));
    return ValueType(std::move(type));
}
Values decomposeLogSumExp(Decomposition& d) {
    Value x = opmathIn(d, 0);
    if (isIntegral(x.dtype(), true)) x = convert(x, DType::F32);
    const std::vector<int64_t> dims = d.dimsOf("dim", x.rank(), true);
    const bool keep = d.flag("keepdim");
    if (numel(x.sizes()) == SymInt(0))
        return fromOpmath(d, unary("aten.log.default", sum(unary("aten.exp.default", x), dims, keep)));
    // Of complex numbers it is the real part that may grow too large.
    const Value sizes = isComplex(x.dtype()) ? unary("aten.real.default", x) : x;
    Value largest = d.call("aten.amax.default", {sizes, d.arg("dim"), true});
    const Value infinite =
        compareScalar("eq", unary("aten.abs.default", largest), std::numeric_limits<double>::infinity());
    largest = d.call("aten.masked_fill.Scalar", {largest, infinite, 0});
    const Value base = keep ? largest : squeezeDims(largest, d.integersOf("dim"));
    const Value total = d.call("aten.sum.dim_IntList", {unary("aten.exp.default", x - largest), d.arg("dim"), keep});
    return fromOpmath(d, unary("aten.log.default", total) + base);
}

// -- norms

Result<ValueType> inferVectorNorm(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    const bool complex = isComplex(self.dtype);
    if (!isFloating(self.dtype) && !complex)
        return c.fail("needs a floating-point tensor, not " + std::string(info(self.dtype).torchName));
    DType dtype = c.dtype("dtype").value_or(self.dtype);
    if (complex) {
        if (!isComplex(dtype)) return c.fail("the norm of complex numbers is asked for by a complex dtype");
        if (promote(self.dtype, dtype) != dtype)
            return c.fail(std::string(info(self.dtype).torchName) + " does not fit into " +
                          std::string(info(dtype).torchName));
        dtype = dtype == DType::C128 ? DType::F64 : DType::F32;
    }
    if (!isFloating(dtype)) return c.fail("has a floating-point result, not " + std::string(info(dtype).torchName));
    if (!complex && promote(self.dtype, dtype) != dtype)
        return c.fail(std::string(info(self.dtype).torchName) + " does not fit into " +
                      std::string(info(dtype).torchName));
    const double order = c.scalar("ord") ? toDouble(*c.scalar("ord")) : 2;
    CT_TRY(const std::vector<int64_t> dims, reductionDims(c, self.rank()));
    if (std::isinf(order) || order < 0)
        for (int64_t dim : dims)
            if (self.sizes[static_cast<size_t>(dim)] == SymInt(0))
                return c.fail("dim " + std::to_string(dim) + " has no elements, and this norm no value for none");
    CT_TRY(TensorType type, reducedType(c, dtype));
    return ValueType(std::move(type));
}
double orderOf(const CallView& c) { return c.scalar("ord") ? toDouble(*c.scalar("ord")) : 2; }
/// True if every reduced dim has one element, so that the norm is the absolute value.
bool reducesNothing(const Decomposition& d, const Value& x) {
    if (!d.arg("dim").list() || d.arg("dim").list()->empty()) return numel(x.sizes()) == SymInt(1);
    if (x.rank() == 0) return false;
    for (int64_t dim : reducedDims(d, x.rank()))
        if (!(x.size(dim) == SymInt(1))) return false;
    return true;
}
Values decomposeVectorNorm(Decomposition& d) {
    Value x = d.in(size_t{0});
    const double order = orderOf(d);
    const bool keep = d.flag("keepdim"), all = !d.arg("dim").list() || d.arg("dim").list()->empty();
    const Argument dims = all ? Argument() : Argument(d.dimsOf("dim", x.rank(), true)),
                   listed = all ? Argument(std::vector<int64_t>{}) : dims;
    const DType result = d.out().dtype;
    if (order == 0)
        return d.call("aten.sum.dim_IntList", {compareScalar("ne", x, 0.0), dims, keep}, {{"dtype", result}});
    if (std::isinf(order))
        return convert(
            d.call(order > 0 ? "aten.amax.default" : "aten.amin.default", {unary("aten.abs.default", x), listed, keep}),
            result);
    // Of complex numbers the norm is that of their absolute values.
    const bool complex = isComplex(x.dtype());
    x = complex ? convert(unary("aten.abs.default", x), result)
                : convert(x, opmathType(d.dtype("dtype").value_or(x.dtype())));
    if (reducesNothing(d, x)) {
        const Value size = convert(unary("aten.abs.default", x), result);
        return keep || x.rank() == 0 ? size : view(size, d.out().sizes);
    }
    if (std::fmod(order, 2) != 0 && !complex) x = unary("aten.abs.default", x);
    const Value powers = d.call("aten.pow.Tensor_Scalar", {x, d.arg("ord")});
    const Value total = d.call("aten.sum.dim_IntList", {powers, dims, keep});
    return convert(d.call("aten.pow.Tensor_Scalar", {total, 1.0 / order}), result);
}
void deriveVectorNorm(Derivation& d) {
    const double order = orderOf(d);
    if (order == 0) return;  // constant almost everywhere: a missing gradient
    const Value x = d.in(size_t{0});
    const Value g = withReducedDims(d, d.dy());
    if (order == 1) {
        d.input(0) = unary("aten.sgn.default", x) * g;
        return;
    }
    const Value norm = withReducedDims(d, d.out());
    auto zeroWhere = [&](const Value& value, const Value& condition) {
        return d.call("aten.masked_fill.Scalar", {value, compareScalar("eq", condition, int64_t{0}), 0});
    };
    auto power = [&](const Value& base, double exponent) { return d.call("aten.pow.Tensor_Scalar", {base, exponent}); };
    if (order == 2) {
        d.input(0) = g * zeroWhere(x / norm, norm);
    } else if (std::isinf(order)) {
        const Value size = unary("aten.abs.default", x);
        const Value equal = d.call("aten.eq.Tensor", {size, norm});
        const Value mask = d.call("aten.logical_or.default", {equal, unary("aten.isnan.default", size)});
        const bool all = !d.arg("dim").list() || d.arg("dim").list()->empty();
        const Value count = all ? unary("aten.sum.default", mask) : sum(mask, reducedDims(d, x.rank()), true);
        const Value shares = g / count * mask;
        d.input(0) = unary("aten.sgn.default", x) * shares;
    } else if (order < 1) {
        const Value steep = zeroWhere(power(unary("aten.abs.default", x), order - 1), x);
        d.input(0) = unary("aten.sgn.default", x) * steep * g * power(norm, 1 - order);
    } else {
        const Value size = unary("aten.abs.default", x);
        Value scaled;
        if (order < 2) {
            const Value powers = power(size, order - 1);
            scaled = unary("aten.sgn.default", x) * powers;
        } else {
            scaled = x * power(size, order - 2);
        }
        d.input(0) = scaled * zeroWhere(g / power(norm, order - 1), norm);
    }
}
/// The older spellings: the order first, None for 2.
Values oldNorm(Decomposition& d) {
    const bool dims = d.op().schema()->find("dim") >= 0, typed = d.op().schema()->find("dtype") >= 0;
    NamedArguments keywords;
    if (typed) keywords.emplace_back("dtype", d.arg("dtype"));
    const Argument order = d.arg("p").isNone() ? Argument(2) : d.arg("p");
    return d.call("aten.linalg_vector_norm.default",
                  {d.arg(0), order, dims ? d.arg("dim") : Argument(), dims && d.flag("keepdim")}, std::move(keywords));
}

constexpr std::string_view kDeviationSamples = R"(
f32[2, 3, 4], [1]
f32[2, 3, 4], [0, 2], correction = 0
f32[2, 3, 4], [-1], correction = 0, keepdim = True
f32[2, 3, 4]
f64[6], [0]
bf16[4, 5], [1]
f16[4, 5], [0]
f32[2, 3][1, 2], [0]
f32[3, 1], [1]
f32[2, 3], [1], correction = 0.5
f32[2, 3, 2, 2][12, 1, 6, 3], [0, 2, 3]
c64[3, 4], [1]
)";

constexpr OpDef kReduceCompositeOps[] = {
    {.schema =
         "aten.std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferVariance,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value variance = d.call("aten.var.correction", {opmathIn(d, 0), d.arg("dim")}, varianceKeywords(d));
         return fromOpmath(d, unary("aten.sqrt.default", variance));
     },
     .derive = [](Derivation& d) { d.input(0) = varianceGradient(d, throughRoot(d, d.dy())); },
     .samples = kDeviationSamples},
    {.schema =
         "aten.std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
     .tags = Tag::Reduction,
     .infer = inferVarMean,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value both = d.call("aten.var_mean.correction", {opmathIn(d, 0), d.arg("dim")}, varianceKeywords(d));
         const Value variance = both[0], mean = both[1];
         const DType result = d.in(size_t{0}).dtype();
         const Value root = unary("aten.sqrt.default", variance);
         return {isComplex(result) ? root : convert(root, result), convert(mean, result)};
     },
     .derive =
         [](Derivation& d) {
             Value total;
             if (d.dy(0)) total = varianceGradient(d, throughRoot(d, d.dy(0)));
             if (d.dy(1)) total = total ? total + meanGradient(d, d.dy(1)) : meanGradient(d, d.dy(1));
             d.input(0) = total;
         },
     .samples = kDeviationSamples},
    {.schema = "aten.std.default(Tensor self, bool unbiased=True) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return withCorrection(d, "aten.std.correction"); },
     .samples = "f32[2, 3]\nf64[4], False\nbf16[5]"},
    {.schema = "aten.std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return withCorrection(d, "aten.std.correction"); },
     .samples = "f32[2, 3], [1]\nf32[2, 3], [0], False, True\nf32[2, 3], None"},
    {.schema = "aten.var.default(Tensor self, bool unbiased=True) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return withCorrection(d, "aten.var.correction"); },
     .samples = "f32[2, 3]\nf64[4], False\nbf16[5]"},
    {.schema = "aten.var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return withCorrection(d, "aten.var.correction"); },
     .samples = "f32[2, 3], [1]\nf32[2, 3], [0], False, True\nf32[2, 3], None"},
    {.schema = "aten.var_mean.default(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return withCorrection(d, "aten.var_mean.correction"); },
     .samples = "f32[2, 3]\nf64[4], False"},
    {.schema =
         "aten.var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return withCorrection(d, "aten.var_mean.correction"); },
     .samples = "f32[2, 3], [1]\nf32[2, 3], [0], False, True"},
    {.schema = "aten.std_mean.default(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return withCorrection(d, "aten.std_mean.correction"); },
     .samples = "f32[2, 3]\nf64[4], False"},
    {.schema =
         "aten.std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return withCorrection(d, "aten.std_mean.correction"); },
     .samples = "f32[2, 3], [1]\nf32[2, 3], [0], False, True"},
    // log(sum(exp(x))), shifted by the maximum unless that is infinite.
    {.schema = "aten.logsumexp.default(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferLogSumExp,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeLogSumExp,
     .derive =
         [](Derivation& d) {
             const Value g = withReducedDims(d, d.dy());
             d.input(0) = g * conjugated(unary("aten.exp.default", d.in(size_t{0}) - withReducedDims(d, d.out())));
         },
     .samples =
         "f32[2, 3, 4], [1]\nf32[2, 3, 4], [0, 2], True\nf32[2, 3, 4], [-1]\nf32[2, 3][1, 2], [0]\nf64[5], [0]\nbf16[4, 5], [1]\nf16[4], [0]\ni64[2, 3], [1]\nf32[0, 3], [0]\nf32[], [0]\nc64[3, 4], [1]"},
    {.schema =
         "aten.linalg_vector_norm.default(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferVectorNorm,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeVectorNorm,
     .derive = deriveVectorNorm,
     .samples = R"(
f32[2, 3, 4], 2, [1]
f32[2, 3, 4], 2.0, [-1], True
f32[2, 3, 4]
f32[2, 3, 4], 1, [0, 2]
f32[2, 3, 4], 0, [1]
f32[2, 3, 4], inf, [1]
f32[2, 3, 4], -inf, [1], True
f32[2, 3, 4]!, inf
f32[2, 3, 4], 3, [1]
f32[2, 3, 4], 1.5, [2]
f32[2, 3], 0.5
f64[5], 2, [0]
bf16[4, 5], 2, [1]
bf16[4, 5], 2, [1], dtype = torch.float32
f16[4, 5], 1, [0]
f32[2, 3][1, 2], 2, [0]
f32[0, 3], 2, [0]
f32[2, 1, 3], 2, [1]
f32[2, 1, 3], 2, [1], True
c64[2, 3], 2, [1]
c64[2, 3], 1
c64[2, 3], inf, [0], True
c64[2, 3], 3, [1]
f32[]
)"},
    {.schema = "aten.norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = oldNorm,
     .samples = "f32[2, 3]\nf32[2, 3], 1"},
    {.schema = "aten.norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = oldNorm,
     .samples = "f32[2, 3], 2, [1]\nf32[2, 3], None, [0], True\nf32[2, 3], 3, [1]"},
    {.schema = "aten.norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = oldNorm,
     .samples = "bf16[2, 3], 2, dtype = torch.float32"},
    {.schema =
         "aten.norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = oldNorm,
     .samples = "bf16[2, 3], 2, [1], False, dtype = torch.float32"},
    // The sum of what is not NaN.
    {.schema =
         "aten.nansum.default(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .tags = Tag::Reduction,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         if (isComplex(self.dtype)) return c.fail("does not take complex tensors");
         CT_TRY(TensorType type,
                reducedType(c, c.dtype("dtype").value_or(isIntegral(self.dtype, true) ? DType::I64 : self.dtype)));
         return ValueType(std::move(type));
     },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = d.in(size_t{0});
         NamedArguments keywords;
         if (d.has("dtype")) keywords.emplace_back("dtype", d.arg("dtype"));
         const Value isNan = unary("aten.isnan.default", x);
         const Value finite = where(isNan, scalarTensor(d, int64_t{0}, x), x);
         return d.call("aten.sum.dim_IntList", {finite, d.arg("dim"), d.flag("keepdim")}, std::move(keywords));
     },
     .derive =
         [](Derivation& d) {
             const Value value = unary("aten.logical_not.default", unary("aten.isnan.default", d.in(size_t{0})));
             d.input(0) = expand(withReducedDims(d, d.dy()), d.in(size_t{0}).sizes()) * value;
         },
     .samples =
         "f32[2, 3]\nf32[2, 3], [1]\nf64[2, 3, 2], [0, -1], True\nbf16[4], [0], dtype = torch.float32\ni64[2, 3], [1]\nf32[0]"},
    {.schema = "aten.count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.sum.dim_IntList", {compareScalar("ne", d.in(size_t{0}), int64_t{0}), d.arg("dim")});
     },
     .samples = "f32[2, 3], [1]\ni64[2, 3], [0, 1]\nb8[4], [0]"},
    {.schema = "aten.count_nonzero.default(Tensor self, int? dim=None) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value kept = compareScalar("ne", d.in(size_t{0}), int64_t{0});
         if (!d.has("dim")) return d.call("aten.sum.dim_IntList", {kept, Argument()});
         return d.call("aten.sum.dim_IntList", {kept, Argument(std::vector<Argument>{d.arg("dim")})});
     },
     .samples = "f32[2, 3]\ni64[2, 3], 1\nb8[4], -1"},
};

}  // namespace

std::span<const OpDef> reduceCompositeOps() { return kReduceCompositeOps; }

}  // namespace cutaway
