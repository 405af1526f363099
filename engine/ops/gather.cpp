// Table look-ups: embedding, embedding bags, one_hot, take, and mask-driven copies.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/index_rules.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/packed.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

Result<ValueType> inferEmbedding(const InferContext& c) {
    CT_TRY(const TensorType weight, c.tensor(size_t{0}));
    CT_TRY(const TensorType indices, c.tensor(1));
    if (weight.rank() != 2) return c.fail("the weight must be a matrix");
    if (indices.dtype != DType::I64 && indices.dtype != DType::I32) return c.fail("the indices must be int64 or int32");
    SymDims sizes = indices.sizes;
    sizes.push_back(weight.sizes[1]);
    return ValueType(TensorType::contiguous(weight.dtype, std::move(sizes), weight.device));
}

EvalResult evalEmbedding(const EvalContext& c) {
    const Tensor weight = c.in(size_t{0});
    const std::vector<int64_t> indices = packElements<int64_t>(c.in(1));
    Tensor out = c.result();
    Tensor rows = out.view({static_cast<int64_t>(indices.size()), weight.size(1)}, {weight.size(1), 1}, out.offset());
    for (size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] < 0 || indices[i] >= weight.size(0))
            return c.fail("index " + std::to_string(indices[i]) + " is out of range for a table of " +
                          std::to_string(weight.size(0)) + " rows");
        Tensor target = rows.view({weight.size(1)}, {1}, rows.offset() + static_cast<int64_t>(i) * weight.size(1));
        copyInto(target,
                 weight.view({weight.size(1)}, {weight.stride(1)}, weight.offset() + indices[i] * weight.stride(0)));
    }
    return out;
}

Result<ValueType> inferEmbeddingBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor(size_t{0}));
    CT_TRY(const SymInt rows, c.size("num_weights"));
    CT_TRY(const TensorType indices, c.tensor(1));
    if (gradient.rank() == 0) return c.fail("the gradient has no dim for the table's columns");
    const SymDims lookups(gradient.sizes.begin(), gradient.sizes.end() - 1);
    const SymInt looked = numel(indices.sizes), given = numel(lookups);
    if (differ(looked, given))
        return c.fail("the gradient " + gradient.text() + " does not have a row for each of the " + looked.text() +
                      " indices");
    return ValueType(TensorType::contiguous(gradient.dtype, {rows, gradient.sizes.back()}, gradient.device));
}

/// Counts of each index by one scatter of ones, so that rows looked up often get a smaller share.
Values decomposeEmbeddingBackward(Decomposition& d) {
    const Value gradient = d.in(0), indices = d.in(1);
    const SymInt rows = *d.size("num_weights");
    const DType dtype = gradient.dtype();
    SymDims rowPerIndex = indices.sizes();
    rowPerIndex.push_back(gradient.size(-1));
    Value g = isHalf(dtype) ? convert(gradient, DType::F32) : gradient;
    if (allInts(rowPerIndex) && allInts(g.sizes()) && !(g.sizes() == rowPerIndex)) g = reshape(g, rowPerIndex);
    const Value at = indices.dtype() == DType::I64 ? indices : convert(indices, DType::I64);
    const Argument where = Argument(std::vector<Argument>{at});
    const Device device = g.type().device;
    const bool masked = has(d.release(), ReleaseChange::MaskedEmbedding);
    Value inside;
    if (masked) {
        const Value above = d.call("aten.ge.Scalar", {at, 0});
        inside = d.call("aten.bitwise_and.Tensor", {above, d.call("aten.lt.Scalar", {at, Argument(rows)})});
    }
    if (d.flag("scale_grad_by_freq")) {
        const Value zeros = full(d.builder(), {rows}, Scalar(int64_t{0}), DType::I64, device);
        const Value ones = full(d.builder(), at.sizes(), Scalar(int64_t{1}), DType::I64, device);
        const Value counts =
            masked ? d.call("aten._unsafe_masked_index_put_accumulate.default", {zeros, inside, where, ones})
                   : d.call("aten.index_put.default", {zeros, where, ones, true});
        const Value each = masked ? d.call("aten._unsafe_masked_index.default", {counts, inside, where, 1})
                                  : d.call("aten.index.Tensor", {counts, where});
        g = g / unsqueeze(each, -1);
    }
    if (masked) {
        const Value counted = d.call("aten.ne.Scalar", {at, d.arg("padding_idx")});
        const Value mask = unsqueeze(d.call("aten.bitwise_and.Tensor", {inside, counted}), -1);
        const Value table = full(d.builder(), {rows, g.size(-1)}, Scalar(int64_t{0}), g.dtype(), device);
        return convert(d.call("aten._unsafe_masked_index_put_accumulate.default", {table, mask, where, g}), dtype);
    }
    const Value padding = unsqueeze(d.call("aten.eq.Scalar", {at, d.arg("padding_idx")}), -1);
    const Value zero = d.call("aten.scalar_tensor.default", {0.0},
                              {{"dtype", g.dtype()}, {"layout", Layout::Strided}, {"device", device}});
    const Value kept = cutaway::where(padding, zero, g);
    const Value table = full(d.builder(), {rows, g.size(-1)}, Scalar(int64_t{0}), g.dtype(), device);
    return convert(d.call("aten.index_put.default", {table, where, kept, true}), dtype);
}

Values decomposeOneHot(Decomposition& d) {
    const Value self = d.in(0);
    auto classes = d.integer("num_classes", -1);
    if (!classes || *classes < 0 || self.dtype() != DType::I64) {
        d.builder().fail(!classes ? classes.error()
                         : self.dtype() != DType::I64
                             ? d.fail("needs int64 classes")
                             : unsupported(d.op().name() + ": the number of classes depends on the values", {},
                                           {"give num_classes"}));
        return self;
    }
    const Value classNumbers = d.call(
        "prims.iota.default", {*classes},
        {{"start", 0}, {"step", 1}, {"dtype", DType::I64}, {"device", self.type().device}, {"requires_grad", false}});
    const Value column = unsqueeze(self, -1);
    return convert(d.call("aten.eq.Tensor", {column, classNumbers}), DType::I64);
}

EvalResult evalOneHot(const EvalContext& c) {
    const int64_t classes = c.resultSizes().back();
    for (const int64_t value : packElements<int64_t>(c.in(size_t{0})))
        if (value < 0 || value >= classes)
            return c.fail("class " + std::to_string(value) + " is not one of " + std::to_string(classes));
    return evalExpanded(c);
}
Expr lowerOneHot(LowerContext& c) {
    const std::vector<Expr> position(c.index().begin(), c.index().end() - 1);
    const Expr given = LowerContext::checkedIndex(c.loadAt(0, position), c.out().sizes.back());
    return Expr::cast(compare(ExprKind::Eq, given, c.index().back()), DType::I64);
}

Values decomposeTake(Decomposition& d) {
    const Value flat = reshape(d.in(0), {SymInt(-1)});
    return d.call("aten.index.Tensor", {flat, Argument(std::vector<Argument>{d.in(1)})});
}

Result<ValueType> inferMaskedScatter(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType mask, c.tensor(1));
    CT_TRY(const TensorType source, c.tensor(2));
    if (mask.dtype != DType::Bool) return c.fail("the mask must be bool");
    if (source.dtype != self.dtype) return c.fail("self and source have different dtypes");
    const SymDims shapes[] = {self.sizes, mask.sizes};
    auto sizes = broadcastSizes(shapes);
    if (!sizes) return c.fail(sizes.error().message);
    return ValueType(TensorType::contiguous(self.dtype, std::move(*sizes), self.device));
}

Result<ValueType> inferMaskedScatterBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor(size_t{0}));
    CT_TRY(const TensorType mask, c.tensor(1));
    CT_TRY(SymDims sizes, c.sizes("sizes"));
    if (mask.dtype != DType::Bool) return c.fail("the mask must be bool");
    const SymDims shapes[] = {gradient.sizes, mask.sizes};
    const auto spread = broadcastSizes(shapes);
    if (!spread) return c.fail(spread.error().message);
    return ValueType(TensorType::contiguous(gradient.dtype, std::move(sizes), gradient.device));
}
EvalResult evalMaskedScatterBackward(const EvalContext& c) {
    const TensorType gradientType = *c.tensor(size_t{0}), maskType = *c.tensor(1);
    const SymDims shapes[] = {gradientType.sizes, maskType.sizes};
    const Dims sizes = toInts(*broadcastSizes(shapes));
    const Tensor gradient = broadcastTo(c.in(size_t{0}), sizes), mask = broadcastTo(c.in(1), sizes);
    Tensor out = Tensor::zeros(c.resultType().dtype, c.resultSizes());
    bool enough = true;
    withComplex(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> from = packElements<T>(gradient);
        const std::vector<int64_t> holds = packElements<int64_t>(mask);
        std::vector<T> values;
        for (size_t i = 0; i < from.size(); ++i)
            if (holds[i] != 0) values.push_back(from[i]);
        enough = values.size() <= static_cast<size_t>(out.numel());
        values.resize(static_cast<size_t>(out.numel()), T{});
        unpackElements(values, out);
    });
    if (!enough) return c.fail("the mask selects more elements than the sizes hold");
    return out;
}

EvalResult evalMaskedScatter(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor self = broadcastTo(c.in(size_t{0}), out.sizes()), mask = broadcastTo(c.in(1), out.sizes());
    bool enough = true;
    withComplex(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        std::vector<T> values = packElements<T>(self);
        const std::vector<T> source = packElements<T>(c.in(2));
        const std::vector<int64_t> holds = packElements<int64_t>(mask);
        size_t next = 0;
        for (size_t i = 0; i < values.size(); ++i) {
            if (holds[i] == 0) continue;
            if (next == source.size()) {
                enough = false;
                return;
            }
            values[i] = source[next++];
        }
        unpackElements(values, out);
    });
    if (!enough) return c.fail("the source has fewer elements than the mask selects");
    return out;
}

/// The rows that are looked up, made shorter where their norm is above max_norm.
Values decomposeRenorm(Decomposition& d) {
    const Value weight = d.in(0), indices = d.in(1);
    if (weight.rank() != 2 || !isFloating(weight.dtype()))
        return refuse(d, "needs a matrix, not " + weight.type().text());
    if (indices.dtype() != DType::I64 && indices.dtype() != DType::I32)
        return refuse(d, "the indices must be int64 or int32");
    const Device device = weight.type().device;
    const Value none = full(d.builder(), {weight.size(0)}, Scalar(false), DType::Bool, device);
    const Value used = d.call("aten.index_put.default", {none, Argument(std::vector<Argument>{indices}),
                                                         full(d.builder(), {}, Scalar(true), DType::Bool, device)});
    const Value norms = d.call("aten.linalg_vector_norm.default",
                               {weight, d.arg("norm_type"), Argument(std::vector<int64_t>{1}), true});
    const double most = d.real("max_norm");
    const Value above = d.call("aten.bitwise_and.Tensor", {unsqueeze(used, 1), compareScalar("gt", norms, most)});
    const Value scale = unary("aten.reciprocal.default", norms + 1e-7) * most;
    return where(above, weight * scale, weight);
}

constexpr OpDef kGatherOps[] = {
    shorthand("aten.embedding_renorm.default(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
              decomposeRenorm,
              "f32[10, 4], i64[3]<10, 1.5, 2.0\nf64[6, 3], i64[2, 2]<6, 2.0, 1.0\nf32[5, 4], i32[3]<5, 100.0, 2.0",
              Tag::Inplace),
    // Rows of `weight` at `indices`. padding_idx and scale_grad_by_freq concern the gradient only.
    {.schema =
         "aten.embedding.default(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
     .infer = inferEmbedding,
     .eval = evalEmbedding,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call(
                 "aten.embedding_dense_backward.default",
                 {d.dy(), d.in(1), Argument(d.in(0).size(0)), d.arg("padding_idx"), d.arg("scale_grad_by_freq")});
         },
     .lower =
         [](LowerContext& c) {
             const std::vector<Expr> position(c.index().begin(), c.index().end() - 1);
             const Expr row =
                 LowerContext::checkedIndex(Expr::cast(c.loadAt(1, position), DType::I64), c.in(size_t{0}).sizes[0]);
             return c.loadAt(0, {row, c.index().back()});
         },
     .samples =
         "f32[10, 4], i64[3]<10\nf32[10, 4], i64[2, 3]<10, 5\nbf16[10, 4], i32[2]<10\nf32[10, 4][1, 10], i64[2, 2]<10\nf32[10, 4], i64[]<10\nf64[10, 4], i64[0]<10"},
    {.schema =
         "aten.embedding_dense_backward.default(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
     .infer = inferEmbeddingBackward,
     .eval = [](const EvalContext& c) -> EvalResult {
         if (auto problem = negativeIndex(c, c.in(1))) return std::move(*problem);
         return evalExpanded(c);
     },
     .expand = Expand::Decompose,
     .decompose = decomposeEmbeddingBackward,
     .derive =
         [](Derivation& d) {
             Value rows = d.call("aten.embedding.default", {d.dy(), d.in(1), d.arg("padding_idx")});
             const int64_t padding =
                 d.integerOr("padding_idx", -1);  // the scale by frequency is left out, as in PyTorch
             if (padding >= 0) {
                 const Value padded = unsqueeze(d.call("aten.eq.Scalar", {d.in(1), padding}), -1);
                 rows = d.call("aten.masked_fill.Scalar", {rows, padded, 0.0});
             }
             const SymDims& sizes = d.in(0).sizes();
             const bool differs = rows && allInts(rows.sizes()) && allInts(sizes) && !(rows.sizes() == sizes);
             d.input(0) = differs ? reshape(rows, sizes) : rows;
         },
     .samples =
         "f32[4, 2], i64[4]<10, 10, 3, False\nf32[4, 2], i64[4]<10, 10, -1, True\nf32[2, 3, 2], i64[2, 3]<5, 5, -1, False\nbf16[4, 2], i64[4]<6, 6, -1, False"},
    {.schema = "aten.one_hot.default(Tensor self, int num_classes=-1) -> Tensor",
     .infer = inferExpanded,
     .eval = evalOneHot,
     .expand = Expand::Composite,
     .decompose = decomposeOneHot,
     .lower = lowerOneHot,
     .samples = "i64[4]<5, 5\ni64[2, 3]<4, 6"},
    // Elements at row-major positions of the whole tensor.
    {.schema = "aten.take.default(Tensor self, Tensor index) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeTake,
     .derive =
         [](Derivation& d) {
             const Value self = d.in(0);
             const Value zeros =
                 full(d.builder(), {numel(self.sizes())}, Scalar(int64_t{0}), d.dy().dtype(), d.dy().type().device);
             const Value sums =
                 d.call("aten.index_put.default", {zeros, Argument(std::vector<Argument>{d.in(1)}), d.dy(), true});
             d.input(0) = view(sums, self.sizes());
         },
     .samples = "f32[4, 2], i64[3]<8\ni64[4], i64[2, 2]<4"},
    // self with the elements where the mask holds replaced by the source's, in row-major order.
    {.schema = "aten.masked_scatter.default(Tensor self, Tensor mask, Tensor source) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferMaskedScatter,
     .eval = evalMaskedScatter,
     .derive =
         [](Derivation& d) {
             if (d.needs(0)) d.input(0) = d.call("aten.masked_fill.Scalar", {d.dy(), d.in(1), 0});
             if (d.needs(2))
                 d.input(2) =
                     d.call("aten.masked_scatter_backward.default", {d.dy(), d.in(1), Argument(d.in(2).sizes())});
         },
     .samples = "f32[4, 2], b8[4, 2], f32[8]\ni64[4], b8[4], i64[2, 2]\nf32[4, 2], b8[2], f32[9]"},
    // The elements where the mask holds, in row-major order, in a tensor of the source's sizes; zeros behind them.
    {.schema = "aten.masked_scatter_backward.default(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor",
     .infer = inferMaskedScatterBackward,
     .eval = evalMaskedScatterBackward,
     .samples = "f32[4, 2], b8[4, 2], [8]\nf64[4, 2], b8[2], [3, 3]\nbf16[3], b8[3], [4]"},
};

}  // namespace

std::span<const OpDef> gatherOps() { return kGatherOps; }

}  // namespace cutaway
