#include "engine/passes/joint/softmax_rescale.h"

#include <limits>

#include "engine/ir/infer.h"
#include "engine/rewrite/matcher.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

/// The scale is one number for everything that is reduced together.
std::string_view unlessScaleIsUniform(const Match& m) {
    if (!m.isTensor("x")) return "{x} is not a tensor";
    const Argument& scale = m["scale"];
    if (!scale.node())
        return scale.isNumber() && !scale.get<std::complex<double>>() ? "" : "the scale, {scale}, is not a real number";
    if (!m.isTensor("scale")) return "";  // a number known at run time
    const SymDims &sizes = m.tensor("scale").sizes, &whole = m.tensor("x").sizes;
    if (sizes.size() > whole.size()) return "{scale}, {scale:type}, has more dims than {x}, {x:type}";
    const Node& maximum = m.node("top");
    const auto dims = InferContext(maximum.op(), maximum.args()).dims("dim", static_cast<int64_t>(whole.size()), true);
    if (!dims) return "the reduced dims, {dims}, are out of range";
    const size_t missing = whole.size() - sizes.size();
    for (const int64_t dim : *dims)
        if (static_cast<size_t>(dim) >= missing && !(sizes[static_cast<size_t>(dim) - missing] == SymInt(1)))
            return "{scale}, {scale:type}, varies along a dim that is reduced, of {dims}";
    return "";
}

/// 1 or -1 with the sign of the scale; the operations and their order are PyTorch's.
OperandValue signOf(const Match& m, GraphBuilder& builder, const Value& x) {
    if (const auto number = m["scale"].asReal()) return *number >= 0 ? 1 : -1;
    const Value one = builder.call("aten.scalar_tensor.default", {1},
                                   {{"dtype", x.dtype()}, {"device", x.type().device}, {"pin_memory", false}});
    const Value positive = builder.call("aten.ge.Scalar", {builder.value(m.node("scale")), 0});
    return where(positive, one, -one);
}
/// The scale without its sign: what is left to multiply with.
OperandValue magnitude(const Match& m, GraphBuilder& builder, const OperandValue& sign) {
    const Argument& scale = m["scale"];
    if (const auto whole = scale.asInt()) return *whole >= 0 ? *whole : -*whole;
    if (const auto real = scale.asReal()) return *real >= 0 ? *real : -*real;
    return sign.value() * builder.value(m.node("scale"));
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Values buildRescaled(const Match& m, GraphBuilder& builder, bool divides) {
    Value x = builder.value(m.node("x"));
    if (m.pattern().slotOf("dtype") >= 0) x = convert(x, *m["dtype"].get<DType>());
    const OperandValue sign = signOf(m, builder, x);
    const Value y = x * sign;
    const Value distance = y - builder.call("aten.amax.default", {y, m["dims"], m["keep"]});
    const OperandValue scale = magnitude(m, builder, sign);
    const Value rescaled = divides ? distance / scale : distance * scale;
    const bool whole = has(m.request().pytorch, ReleaseChange::WholeSoftmax);
    if (m.parity() && !whole) return rescaled;
    const Value scaled = builder.value(m.node(m.pattern().slotOf("c") >= 0 ? "c" : "s"));
    const Value asWritten = scaled - builder.call("aten.amax.default", {scaled, m["dims"], m["keep"]});
    if (whole) {
        // Rows in which a number is not finite stay as written. PyTorch asks the scaled numbers; ours ask both
        // differences, since unscaled numbers may lie too far apart for theirs.
        const Value size = unary("aten.abs.default", m.parity() ? scaled : rescaled);
        const Value bounded = builder.call("aten.ne.Scalar", {size, kInfinity});
        const Value& value = m.parity() ? scaled : asWritten;
        const Value finite = builder.call("aten.eq.Tensor", {value, value}) * bounded;
        const Value other = unary("aten.logical_not.default", finite);
        const Value any = builder.call("aten.any.dims", {other, m["dims"], true});
        return where(unary("aten.logical_not.default", any), rescaled, asWritten);
    }
    // Where scaling overflows, the subtraction as written is NaN or infinite, and stays so; where only the unscaled
    // numbers lie too far apart, it is finite. The difference of the two is finite only where both are.
    const Value gap = builder.call("aten.abs.default", {rescaled - asWritten});
    const Value finite = builder.call("aten.lt.Scalar", {gap, kInfinity});
    return where(finite, rescaled, asWritten);
}
Values buildRescaledProduct(const Match& m, GraphBuilder& builder) { return buildRescaled(m, builder, false); }
Values buildQuotient(const Match& m, GraphBuilder& builder) { return buildRescaled(m, builder, true); }

/// A symbolic scale that is not a tensor has no sign to compute with tensors.
std::string_view unlessRescalable(const Match& m) {
    const std::string_view refusal = unlessScaleIsUniform(m);
    if (!refusal.empty()) return refusal;
    if (m["scale"].get<Expr>() || (m.isNode("scale") && !m.isTensor("scale")))
        return "the scale, {scale}, is a number that is known only at run time";
    if (m["keep"].asInt() != 1) return "{top} does not keep the dims that it reduces";
    if (m.pattern().slotOf("c") < 0 || m.parity()) return "";
    // Scaling then comes after the conversion; PyTorch does not check whether it changes the dtype again.
    const auto scaled = inferCall(m.node("s").op(), std::array{m["c"], m["scale"]});
    if (!scaled || !scaled->tensor() || scaled->tensor()->dtype != m.tensor("c").dtype)
        return "the scale, {scale}, would change the dtype that {c} converts to, {c:type}";
    return "";
}

constexpr std::string_view kWhyRescaled = "numbers are subtracted before they are scaled, where both ways are finite";
constexpr Rule kRescaleRules[] = {
    {.name = "mul_softmax_rescale",
     .find =
         "s: shared = aten.mul.Tensor(x, scale); top = aten.amax.default(s, $dims, $keep); y = aten.sub.Tensor(s, top); return y",
     .build = buildRescaledProduct,
     .unless = unlessRescalable,
     .why = kWhyRescaled,
     .eitherOrder = true},
    {.name = "mul_convert_softmax_rescale",
     .find = "s: shared = aten.mul.Tensor(x, scale); c: shared = prims.convert_element_type.default(s, $dtype); "
             "top = aten.amax.default(c, $dims, $keep); y = aten.sub.Tensor(c, top); return y",
     .build = buildRescaledProduct,
     .unless = unlessRescalable,
     .why = kWhyRescaled,
     .changesType = true,
     .eitherOrder = true},
    {.name = "div_softmax_rescale",
     .find =
         "s: shared = aten.div.Tensor(x, scale); top = aten.amax.default(s, $dims, $keep); y = aten.sub.Tensor(s, top); return y",
     .build = buildQuotient,
     .unless = unlessRescalable,
     .why = kWhyRescaled},
    {.name = "div_convert_softmax_rescale",
     .find = "s: shared = aten.div.Tensor(x, scale); c: shared = prims.convert_element_type.default(s, $dtype); "
             "top = aten.amax.default(c, $dims, $keep); y = aten.sub.Tensor(c, top); return y",
     .build = buildQuotient,
     .unless = unlessRescalable,
     .why = kWhyRescaled,
     .changesType = true},
};

}  // namespace

std::span<const Rule> softmaxRescaleRules() { return kRescaleRules; }
Result<bool> rescaleSoftmax(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, kRescaleRules); }

}  // namespace cutaway
