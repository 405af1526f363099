// Advanced indexing: index and index_put. The forms that index a single dim stand in index_dim.cpp.
#include "engine/ir/data_dependent.h"
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/index_copy.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

Result<ValueType> inferIndex(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const IndexPlan plan, planCall(c, self, "indices"));
    return ValueType(indexedType(self, plan));
}

/// Whether the last element is as far from the first as there are elements.
bool liesWithoutGaps(const TensorType& type) {
    if (!allInts(type.strides)) return false;
    int64_t reach = 1, count = 1;
    for (size_t d = 0; d < type.sizes.size(); ++d) {
        const int64_t size = type.sizes[d].value(), stride = type.strides[d].value();
        if (size == 0) return true;
        if (size > 1 && stride < 0) return false;
        reach = checkedAdd(reach, size > 1 ? checkedMul(size - 1, stride) : 0);
        count = checkedMul(count, size);
    }
    return reach == count;
}

EvalResult evalIndex(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    auto tables = indexTables(c, self.sizes(), self.strides(), c.list("indices"));
    if (!tables) return std::move(tables).error();
    // How many elements a mask selects is known only now; what a file says of it may be wrong.
    const Dims sizes = toInts(tables->plan.sizes);
    const TensorType& written = c.resultType();
    const bool fits = allInts(written.sizes) && toInts(written.sizes) == sizes && written.dtype == self.dtype();
    if (allInts(written.sizes) && !fits)
        return c.fail("is written as " + written.text() + ", and gives " +
                      TensorType::contiguous(self.dtype(), tables->plan.sizes).text());
    if (fits && !liesWithoutGaps(written))
        return c.fail("is written as " + written.fullText() + ", whose elements do not lie without gaps");
    Tensor out = fits ? c.result() : Tensor::empty(self.dtype(), sizes);
    if (out.numel() == 0) return out;
    copyElements(self, *tables, out, ResultTables(out, tables->plan));
    return out;
}

/// The element at the index dims of the result, one expression per tensor dim.
Expr lowerIndex(LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    auto plan = planCall(c, self, "indices");
    if (!plan) return Expr();
    const std::vector<Expr> at = indexedElement(c, self, 1, *plan, c.index(), Outside::Fails);
    return c.loadAt(0, at);
}

Result<ValueType> inferIndexPut(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType values, c.tensor("values"));
    CT_TRY(const auto types, indexTypes(c, "indices"));
    if (self.dtype != values.dtype)
        return c.fail("values of dtype " + std::string(info(values.dtype).torchName) + " for a tensor of " +
                      std::string(info(self.dtype).torchName));
    bool masks = false;
    for (const auto& type : types) masks |= type && (type->dtype == DType::Bool || type->dtype == DType::U8);
    if (!masks) {
        CT_TRY(const IndexPlan plan, planCall(c, self, "indices"));
        const SymDims shapes[] = {values.sizes, plan.sizes};
        auto sizes = broadcastSizes(shapes);
        if (!sizes || differ(*sizes, plan.sizes)) return c.fail("the values do not broadcast to the indexed part");
    }
    TensorType type = self;
    type.strides = preservedStrides(self);
    type.offset = 0;
    type.requiresGrad = false;
    return ValueType(std::move(type));
}

EvalResult evalIndexPut(const EvalContext& c) {
    Tensor out = c.result();
    copyInto(out, c.in(size_t{0}));
    auto tables = indexTables(c, out.sizes(), out.strides(), c.list("indices"));
    if (!tables) return std::move(tables).error();
    const Tensor given = c.in("values");
    const Dims sizes = toInts(tables->plan.sizes);
    const SymDims shapes[] = {toSymDims(given.sizes()), tables->plan.sizes};
    auto broadcast = broadcastSizes(shapes);
    if (!broadcast || toInts(*broadcast) != sizes) return c.fail("the values do not broadcast to the indexed part");
    const Tensor values = broadcastTo(given, sizes);
    if (values.numel() == 0) return out;
    if (!c.flag("accumulate")) {
        copyElements(values, ResultTables(values, tables->plan), out, *tables);
        return out;
    }
    // Sums stay in the compute type until all are added.
    withComplex(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        Tensor flat = out.contiguous();
        auto rowMajor = indexTables(c, out.sizes(), flat.strides(), c.list("indices"));
        std::vector<T> sums = packElements<T>(flat);
        const std::vector<T> added = packElements<T>(values);
        size_t next = 0;
        for (int64_t b : rowMajor->before)
            for (int64_t i : rowMajor->index)
                for (int64_t a : rowMajor->after) {
                    T& sum = sums[static_cast<size_t>(b + i + a)];
                    sum = wrapAdd(sum, added[next++]);
                }
        unpackElements(sums, out);
    });
    return out;
}

/// The part of the gradient that the values were written to. How many elements a mask selects is not known to shape
/// inference, but values that were not broadcast have exactly that many.
Value writtenPart(Derivation& d) {
    const Op& index = requireOp("aten.index.Tensor");
    std::vector<Argument> args = {d.dy(), d.arg("indices")};
    const Value values = d.in(2);
    int64_t masked = 0, masks = 0;
    for (const Argument& item : *d.arg("indices").list()) {
        const TensorType* type = item.node() ? item.node()->type().tensor() : nullptr;
        masks += type != nullptr;
        masked += type && type->dtype == DType::Bool ? type->rank() : 0;
    }
    const bool whole = masks == 1 && values.rank() == d.in(0).rank() - masked + 1 && !(values.size(0) == SymInt(1));
    if (!sizeDependsOnData(index, args) || !whole) return d.call(index.name(), std::move(args));
    GraphBuilder& builder = d.builder();
    if (builder.error()) return Value(builder, nullptr);
    ValueType type = TensorType::contiguous(d.dy().dtype(), values.sizes(), d.dy().type().device);
    Node& node = builder.graph().call(index, std::move(args), std::move(type), builder.before());
    builder.graph().setProvenance(node, builder.sharedProvenance());
    return Value(builder, &node);
}
void deriveIndexPut(Derivation& d) {
    const bool accumulate = d.flag("accumulate");
    if (d.needs(0)) {
        const Value zero = full(d.builder(), {SymInt(1)}, Scalar(0.0), d.dy().dtype(), d.dy().type().device);
        d.input(0) = accumulate ? d.dy() : d.call("aten.index_put.default", {d.dy(), d.arg("indices"), zero});
    }
    if (d.needs(2)) d.input(2) = writtenPart(d);
}

constexpr std::string_view kIndexSamples = R"(
f32[4, 5], [i64[3]<4]
f32[4, 5], [None, i64[3]<5]
f32[4, 5, 6], [i64[2, 3]<4]
f32[4, 5, 6], [None, i64[2, 1]<5, i64[3]<6]
f32[4, 5, 6], [i64[2]<4, None, i64[2]<6]
f32[4, 5, 6, 3], [None, i64[2]<5, None, i64[2]<3]
f32[4, 5], [i32[3]<4, i64[3]<5]
i64[4, 5], [i64[]<4]
f32[4, 5][1, 4], [i64[3]<4]
f32[2, 3, 4, 5][60, 1, 15, 3], [i64[3]<2]
bf16[4, 0], [i64[3]<4]
b8[4], [i64[2, 2]<4]
f32[4], [i64[0]<4]
)";

constexpr OpDef kIndexOps[] = {
    // self[indices]: tensors of int64 or int32 per dim, None for dims kept whole. Negative indices count from the end.
    {.schema = "aten.index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
     .infer = inferIndex,
     .eval = evalIndex,
     .derive =
         [](Derivation& d) {
             const Value zeros =
                 full(d.builder(), d.in(0).sizes(), Scalar(int64_t{0}), d.dy().dtype(), d.dy().type().device);
             d.input(0) = d.call("aten.index_put.default", {zeros, d.arg("indices"), d.dy(), true});
         },
     .lower = lowerIndex,
     .samples = kIndexSamples},
    // The same for indices that PyTorch's compiler takes to lie inside. Here they are checked: a file may say anything.
    {.schema = "aten._unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
     .infer = inferIndex,
     .eval = evalIndex,
     .derive =
         [](Derivation& d) {
             const Value zeros =
                 full(d.builder(), d.in(0).sizes(), Scalar(int64_t{0}), d.dy().dtype(), d.dy().type().device);
             d.input(0) = d.call("aten._unsafe_index_put.default", {zeros, d.arg("indices"), d.dy(), true});
         },
     .lower = lowerIndex,
     .samples =
         "f32[2, 3, 4, 5], [None, None, i64[3, 1]<4, i64[2]<5]\nf32[2, 3, 4, 5][60, 1, 15, 3], [None, None, i64[6]<4]"},
    // A copy of self with self[indices] replaced by, or with accumulate increased by, values. Where an index repeats,
    // the last value wins; sums are kept in the compute type.
    {.schema = "aten.index_put.default(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferIndexPut,
     .eval = evalIndexPut,
     .derive = deriveIndexPut,
     .samples = R"(
f32[4, 5], [i64[3]<4], f32[3, 5], True
f32[4, 5], [None, i64[3]<5], f32[4, 3], True
f32[4, 5], [i64[3]<4], f32[5], True
f32[4, 5], [i64[1]<4], f32[]
f32[4, 5, 6], [i64[2]<4, None, i64[2]<6], f32[2, 5], True
f32[4, 5][1, 4], [i64[3]<4, i64[3]<5], f32[3], True
i64[4], [i64[6]<4], i64[6], True
f32[4, 5], [b8[4, 5]], f32[]
f32[4, 5], [b8[4]], f32[5]
bf16[4], [i64[2, 2]<4], bf16[2, 2], True
f32[4], [i64[0]<4], f32[0], True
)"},
    {.schema =
         "aten._unsafe_index_put.default(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferIndexPut,
     .eval = evalIndexPut,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.index_put.default", {d.in(0), d.arg("indices"), d.in("values"), d.arg("accumulate")});
     },
     .derive = deriveIndexPut,
     .samples = "f32[4, 5], [i64[3]<4], f32[3, 5], True"},
};

}  // namespace

std::span<const OpDef> indexOps() { return kIndexOps; }

}  // namespace cutaway
