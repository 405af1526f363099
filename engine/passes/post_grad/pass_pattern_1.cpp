#include "engine/passes/post_grad/pass_pattern_1.h"

#include "engine/ir/infer.h"
#include "engine/ops/alias.h"
#include "engine/ops/expanded.h"
#include "engine/passes/joint/misc_patterns.h"
#include "engine/rewrite/matcher.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

std::string_view unlessCountable(const Match& m) {
    const TensorType& type = m.tensor("y");
    const Node* constant = m["f"].node();
    if (constant == nullptr || !constant->isCall("aten.full.default"))
        return "what is summed, {f}, is not a constant (aten.full)";
    if (type.rank() == 0) return "{y}, {y:type}, has no dim to count along";
    if (storageIsRead(m.root()) && !m.parity())
        return "the storage of {y} is read by position, and counting would lay it out otherwise";
    const Argument& value = constant->arg("fill_value");
    m.note(constantText(value));
    if (!value.isNumber() || value.get<Expr>()) return "{f} is not filled with a known number";
    const bool real = value.get<double>() != nullptr;
    if (real && isIntegral(type.dtype, true)) return "what {f} is filled with is rounded to {y:type}";
    m.note({});
    const auto dim = InferContext(m.root().op(), m.root().args()).dim("dim", type.rank());
    if (!dim) return "the dim {dim} is out of range for {y:type}";
    return type.sizes[static_cast<size_t>(*dim)].isInt()
               ? ""
               : "the number of steps along dim {dim} of {y:type} is symbolic";
}
/// 1, 2, 3, ... along the dim, times the constant.
Values buildCount(const Match& m, GraphBuilder& builder) {
    const TensorType& type = m.tensor("y");
    const auto dim = static_cast<size_t>(*InferContext(m.root().op(), m.root().args()).dim("dim", type.rank()));
    const bool whole = isIntegral(type.dtype, false);
    DType counted = type.dtype;
    if (has(m.request().pytorch, ReleaseChange::CountsInF64)) counted = whole ? DType::I64 : DType::F64;
    // What arange(1, n + 1) is decomposed to.
    Value steps = iota(builder, type.sizes[dim], type.device, whole ? 1 : 0, 1, whole ? counted : DType::I64);
    if (!whole) steps = convert(steps * 1 + 1, counted);
    SymDims shape(type.sizes.size(), SymInt(1));
    shape[dim] = type.sizes[dim];
    const Value scaled = builder.call("aten.mul.Tensor", {steps, m["f"].node()->arg("fill_value")});
    const Value spread = builder.call("aten.expand.default",
                                      {shape == scaled.sizes() ? scaled : view(scaled, shape), Argument(type.sizes)});
    return counted == type.dtype ? spread : convert(spread, type.dtype);
}

std::string_view unlessOnGpu(const Match& m) {
    return m.isTensor("x") && m.tensor("x").device.type == DeviceType::Cuda ? "" : "{x}, {x:type}, is not on the GPU";
}

constexpr Rule kRules1[] = {
    {.name = "pointless_cumsum_replacement",
     .find = "y = aten.cumsum.default(f, $dim, ...); return y",  // the constant stays, read or not, as in PyTorch
     .build = buildCount,
     .unless = unlessCountable,
     .why = "the running sum of a constant is the constant times 1, 2, 3, ..."},
    {.name = "cat_slice_cat",
     .find =
         "c = aten.cat.default(parts, 1); s = aten.slice.Tensor(c, 1, 0, size); y = aten.cat.default([c, s], 1); return y",
     .replace =
         "y = torch__inductor_fx_passes_post_grad_cat_slice_cat(parts, size); return y",  // decided by lowerCalls
     .why = "one concatenation may do for two"},
    {.name = "prepare_softmax",
     .find = "top = aten.amax.default(x, [$dim], True); d = aten.sub.Tensor(x, top); e = aten.exp.default(d); "
             "s = aten.sum.dim_IntList(e, [$dim], True); return s, e, d, top",
     .replace = "p = prims.prepare_softmax_online.default(x, $dim); top = p[0]; s = p[1]; d = aten.sub.Tensor(x, top); "
                "e = aten.exp.default(d); return s, e, d, top",
     .unless = unlessOnGpu,
     .why = "maximum and sum are found in one pass over the data"},
    {.name = "reciprocal_sqrt_to_rsqrt",
     .find = "s = aten.sqrt.default(x); y = aten.reciprocal.default(s); return y",
     .replace = "y = aten.rsqrt.default(x); return y",
     .why = "one call for each element in place of two",
     .releases = sinceRelease(Release::V2_14)},
};

}  // namespace

std::span<const Rule> passPattern1Rules() {
    static const std::vector<Rule> kAll = joinRules({kRules1, randpermRules(), exponentRules()});
    return kAll;
}

Result<bool> passPattern1(Module& module, Rewriter& rewriter) {
    return rewriter.applyRules(module, passPattern1Rules());
}

}  // namespace cutaway
