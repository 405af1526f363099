// Shorthands for matrix products over any number of dims: linear and matmul, expanded as PyTorch expands them.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

Values failed(Decomposition& d, std::string what) {
    d.builder().fail(d.fail(std::move(what)));
    return Value(d.builder(), nullptr);
}

/// Whether a gradient would flow to a parameter through this value: the parameter itself or a view of it. When PyTorch
/// traces for inference, views keep the parameter's requires_grad and computed values do not have it.
bool takesGradient(const Value& value) {
    for (const Node* node = value.node(); node != nullptr; node = node->arg(0).node()) {
        if (const TensorType* type = node->type().tensor(); type && type->requiresGrad) return true;
        const bool view = node->is(Tag::View) && !node->is(Tag::NoGradient);
        if (!node->isCall() || (!view && !node->isCall("operator.getitem")) || node->args().empty()) return false;
    }
    return false;
}

/// True when a product of a batch and a matrix or vector becomes one mm over the flattened batch instead of a bmm.
bool shouldFold(const Value& a, const Value& b) {
    const bool flip = b.rank() > a.rank();
    const Value& larger = flip ? b : a;
    const Value& smaller = flip ? a : b;
    if (larger.rank() < 3 || smaller.rank() > 2) return false;
    // The smaller operand's gradient would otherwise be a large expanded tensor.
    if (takesGradient(smaller)) return true;
    if (a.rank() == 2) return false;
    if (numel(larger.sizes()) == SymInt(0)) return true;
    // The batch must flatten without a copy; from the right it is the transposed batch that is flattened.
    SymDims sizes = larger.sizes(), strides = larger.type().strides;
    const size_t rank = sizes.size();
    if (flip) {
        std::swap(sizes[rank - 1], sizes[rank - 2]);
        std::swap(strides[rank - 1], strides[rank - 2]);
    }
    for (size_t i = 0; i + 2 < rank; ++i)
        if (!(strides[i] == strides[i + 1] * sizes[i + 1])) return false;
    return true;
}

Value foldedProduct(Decomposition& d, const Value& a, const Value& b) {
    const bool flip = b.rank() > a.rank();
    const Value large = flip ? d.call("aten.mT.default", {b}) : a;
    const Value small = !flip ? b : a.rank() == 2 ? d.call("aten.t.default", {a}) : a;
    SymDims sizes(large.sizes().begin(), large.sizes().end() - 1);
    const SymInt rows = numel(sizes);
    const bool matrix = small.rank() == 2;
    if (matrix) sizes.push_back(small.size(1));
    const Value folded = reshape(large, {rows, large.size(-1)});
    const Value product = d.call(matrix ? "aten.mm.default" : "aten.mv.default", {folded, small});
    const Value result = d.call("aten._unsafe_view.default", {product, Argument(sizes)});
    if (!matrix || !flip) return result;
    return d.call("aten.contiguous.default", {d.call("aten.mT.default", {result})});
}

Value batchedProduct(Decomposition& d, const Value& a, const Value& b) {
    const auto leading = [](const Value& x) {
        return x.rank() > 2 ? SymDims(x.sizes().begin(), x.sizes().end() - 2) : SymDims();
    };
    const SymDims shapes[] = {leading(a), leading(b)};
    auto batch = broadcastSizes(shapes);
    if (!batch) {
        d.builder().fail(d.fail(batch.error().message));
        return Value(d.builder(), nullptr);
    }
    if (a.rank() == 3 && b.rank() == 3 && !(a.size(0) == b.size(0))) {
        if (a.size(0) == SymInt(1)) return d.call("aten.matmul.default", {d.call("aten.squeeze.dim", {a, 0}), b});
        if (b.size(0) == SymInt(1)) return d.call("aten.matmul.default", {a, d.call("aten.squeeze.dim", {b, 0})});
    }
    const SymInt n = a.rank() > 1 ? a.size(-2) : SymInt(1), count = numel(*batch);
    const auto sizes = [&](std::initializer_list<SymInt> tail) {
        SymDims all = *batch;
        all.insert(all.end(), tail);
        return all;
    };
    const Value left = reshape(expand(a, sizes({n, a.size(-1)})), {count, n, a.size(-1)});
    SymDims out = *batch;
    if (a.rank() > 1) out.push_back(n);
    if (b.rank() == 1) {
        const Value right = unsqueeze(reshape(expand(b, sizes({b.size(0)})), {count, b.size(0)}), 2);
        const Value product = d.call("aten.bmm.default", {left, right});
        return view(d.call("aten.squeeze.dim", {product, -1}), out);
    }
    out.push_back(b.size(-1));
    const Value right = reshape(expand(b, sizes({b.size(-2), b.size(-1)})), {count, b.size(-2), b.size(-1)});
    return view(d.call("aten.bmm.default", {left, right}), out);
}

Values decomposeMatmul(Decomposition& d) {
    const Value a = d.in(0), b = d.in(1);
    if (a.rank() == 0 || b.rank() == 0) return failed(d, "a 0-d tensor has no matrix product");
    const SymInt inner = b.rank() == 1 ? b.size(0) : b.size(-2);
    if (a.size(-1).isInt() && inner.isInt() && a.size(-1).value() != inner.value())
        return failed(d, "inner sizes " + a.size(-1).text() + " and " + inner.text() + " differ");
    if (a.rank() == 1 && b.rank() == 1) return d.call("aten.dot.default", {a, b});
    if (a.rank() == 2 && b.rank() == 1) return d.call("aten.mv.default", {a, b});
    if (a.rank() == 1 && b.rank() == 2)
        return d.call("aten.squeeze.dim", {d.call("aten.mm.default", {unsqueeze(a, 0), b}), 0});
    if (a.rank() == 2 && b.rank() == 2) return d.call("aten.mm.default", {a, b});
    return shouldFold(a, b) ? foldedProduct(d, a, b) : batchedProduct(d, a, b);
}

/// With a bias and a row-major input everything is one addmm over the flattened input; otherwise the matrix product
/// decides, and the bias is added after it.
Values decomposeLinear(Decomposition& d) {
    const Value input = d.in(0), weight = d.in(1);
    const bool bias = d.has("bias");
    if (input.rank() == 0 || weight.rank() > 2 || weight.rank() == 0)
        return failed(d, "needs an input of at least one dim and a weight of one or two");
    if (bias && input.rank() == 2) {
        return d.call("aten.addmm.default", {d.in("bias"), input, d.call("aten.t.default", {weight})});
    }
    if (bias && input.type().isContiguous() && weight.rank() == 2) {
        SymDims sizes(input.sizes().begin(), input.sizes().end() - 1);
        const Value flat = reshape(input, {numel(sizes), input.size(-1)});
        const Value product = d.call("aten.addmm.default", {d.in("bias"), flat, d.call("aten.t.default", {weight})});
        sizes.push_back(weight.size(0));
        return view(product, sizes);
    }
    const Value product = d.call("aten.matmul.default", {input, d.call("aten.t.default", {weight})});
    return bias ? product + d.in("bias") : product;
}

// ---------------------------------------------------------------- what libraries compute in one call

/// Products of one tensor and several weights.
Values decomposeGroupedLinear(Decomposition& d) {
    const std::vector<Value> weights = d.list("w");
    const auto* biases = d.arg("b").list();
    if (biases == nullptr || biases->size() != weights.size()) return failed(d, "needs a bias or None for each weight");
    std::vector<Value> out;
    for (size_t i = 0; i < weights.size(); ++i)
        out.push_back(d.call("aten.linear.default", {d.in("x"), weights[i], (*biases)[i]}));
    return out;
}
/// Products of pairs.
Values decomposeProductsOfPairs(Decomposition& d) {
    const std::vector<Value> inputs = d.list("inputs"), weights = d.list("weights");
    const auto* biases = d.arg("biases").list();
    if (inputs.size() != weights.size() || (biases && biases->size() != inputs.size()))
        return failed(d, "the lists have different lengths");
    std::vector<Value> out;
    for (size_t i = 0; i < inputs.size(); ++i)
        out.push_back(biases ? d.call("aten.addmm.default", {(*biases)[i], inputs[i], weights[i]})
                             : d.call("aten.mm.default", {inputs[i], weights[i]}));
    return out;
}

constexpr OpDef kGemmCompositeOps[] = {
    // Two products and their sum, which a kernel of the compiler's own computes at once (max_autotune).
    {.schema =
         "torch__inductor_fx_passes_post_grad_mm_plus_mm(Tensor mat1, Tensor mat2, Tensor mat3, Tensor mat4) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.mm.default", {d.in(size_t{0}), d.in(1)}) + d.call("aten.mm.default", {d.in(2), d.in(3)});
     }},
    // input weightᵀ + bias over the last dim.
    {.schema = "aten.linear.default(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeLinear,
     .samples = R"(
f32[4, 3], f32[5, 3], f32[5]
f32[4, 3], f32[5, 3]
f32[3], f32[5, 3], f32[5]
f32[2, 4, 3], f32[5, 3], f32[5]
f32[2, 4, 3], f32[5, 3]
f32[2, 4, 3][3, 6, 1], f32[5, 3], f32[5]
f32[2, 2, 4, 3], f32[5, 3], f32[5]
f32[2, 2, 4, 3][24, 3, 6, 1], f32[5, 3], f32[5]
bf16[2, 4, 3], bf16[5, 3], bf16[5]
f32[0, 4, 3], f32[5, 3], f32[5]
)"},
    // Product over the last two dims, the others broadcast; vectors are rows on the left and columns on the right.
    {.schema = "aten.matmul.default(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeMatmul,
     .samples = R"(
f32[5], f32[5]
f32[4, 5], f32[5]
f32[4], f32[4, 5]
f32[2, 3], f32[3, 4]
f32[2, 3, 4, 5], f32[2, 3, 5, 6]
f32[2, 3, 4, 5][60, 5, 15, 1], f32[2, 3, 5, 4][60, 5, 1, 15]
f32[4, 5], f32[3, 5, 6]
f32[2, 4, 5], f32[5]
f32[2, 4, 5], f32[5, 3]
f32[5], f32[2, 5, 6]
f64[1, 2, 3], f64[4, 3, 2]
bf16[2, 1, 3, 4], bf16[5, 4, 2]
f32[2, 0, 3], f32[2, 3, 4]
)"},
    // What grouped_gemm_pass makes, under the name that FX prints.
    {.schema = "torch__inductor_mkldnn_lowerings_grouped_gemm_lowering(Tensor x, Tensor[] w, Tensor?[] b) -> Tensor[]",
     .tags = Tag::Heavy,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose = decomposeGroupedLinear},
    {.schema =
         "fbgemm.gmm.default(Tensor[] inputs, Tensor[] weights, Tensor[]? biases, *, bool smart_fused=False) -> Tensor[]",
     .tags = Tag::Heavy,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose = decomposeProductsOfPairs},
};

}  // namespace

std::span<const OpDef> gemmCompositeOps() { return kGemmCompositeOps; }

}  // namespace cutaway
