// Advanced indexing: index, index_put and the forms that index a single dim.
#include "engine/ir/data_dependent.h"
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/index_rules.h"
#include "engine/ops/lower.h"
#include "engine/ops/number_range.h"
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

/// Offsets of the elements of `tensor` in the three groups of dims of an indexing's result.
struct ResultTables {
    std::vector<int64_t> before, index, after;
    ResultTables(const Tensor& tensor, const IndexPlan& plan) {
        auto group = [&](size_t first, size_t count) {
            const auto begin = static_cast<int64_t>(first), end = begin + static_cast<int64_t>(count);
            return boxOffsets(Dims(tensor.sizes().begin() + begin, tensor.sizes().begin() + end),
                              Dims(tensor.strides().begin() + begin, tensor.strides().begin() + end));
        };
        before = group(0, plan.before.size());
        index = group(plan.before.size(), plan.indexSizes.size());
        after = group(plan.before.size() + plan.indexSizes.size(), plan.after.size());
    }
};

/// Copies element by element between two tensors of one dtype, walking both by their tables.
bool isRun(const std::vector<int64_t>& offsets) {
    for (size_t i = 0; i < offsets.size(); ++i)
        if (offsets[i] != static_cast<int64_t>(i)) return false;
    return true;
}
template <class From, class To>
void copyElements(const Tensor& source, const From& from, Tensor& target, const To& to) {
    const auto bytes = static_cast<size_t>(byteSize(source.dtype()));
    const auto* in = static_cast<const std::byte*>(source.data());
    auto* out = static_cast<std::byte*>(target.data());
    const bool runs = isRun(from.after) && isRun(to.after);
    for (size_t b = 0; b < from.before.size(); ++b)
        for (size_t i = 0; i < from.index.size(); ++i) {
            const std::byte* read = in + static_cast<size_t>(from.before[b] + from.index[i]) * bytes;
            std::byte* write = out + static_cast<size_t>(to.before[b] + to.index[i]) * bytes;
            if (runs) {
                std::memcpy(write, read, from.after.size() * bytes);
                continue;
            }
            for (size_t a = 0; a < from.after.size(); ++a)
                std::memcpy(write + static_cast<size_t>(to.after[a]) * bytes,
                            read + static_cast<size_t>(from.after[a]) * bytes, bytes);
        }
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
        if (!sizes || !(*sizes == plan.sizes)) return c.fail("the values do not broadcast to the indexed part");
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

/// The part of the gradient that the values were written to. How much a mask selects no inference knows, but the graph
/// says what was written: values of that shape, unless they were spread over it.
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
EvalResult evalIndexCopy(const EvalContext& c) {
    if (auto problem = negativeIndex(c, c.in("index"))) return std::move(*problem);
    return evalExpanded(c);
}
Expr lowerIndexSelect(LowerContext& c) {
    const TensorType self = c.in(size_t{0}), index = c.in("index");
    if (self.rank() == 0) return Expr();
    const auto dim = static_cast<size_t>(c.dimOf("dim", self.rank()));
    std::vector<Expr> at = c.index();
    const Expr picked = index.rank() == 0 ? c.loadAt(2, {}) : c.loadAt(2, {at[dim]});
    at[dim] = LowerContext::checkedIndex(Expr::cast(picked, DType::I64), self.sizes[dim]);
    return c.loadAt(0, at);
}

/// [None, ..., index] with the index at `dim`.
Argument indexAt(const Value& index, int64_t dim) {
    std::vector<Argument> items(static_cast<size_t>(dim));
    items.push_back(index);
    return Argument(std::move(items));
}

Result<ValueType> inferIndexSelect(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType index, c.tensor(2));
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    if (index.rank() > 1) return c.fail("the index has " + std::to_string(index.rank()) + " dims; needs at most one");
    if (index.dtype != DType::I64 && index.dtype != DType::I32) return c.fail("the index must be int32 or int64");
    SymDims sizes = self.sizes;
    const SymInt count = index.rank() == 0 ? SymInt(1) : index.sizes[0];
    if (self.rank() > 0) sizes[static_cast<size_t>(dim)] = count;
    else if (count.isInt() && count.value() != 1)
        return c.fail("an index into a 0-d tensor has one element, not " + count.text());
    return ValueType(TensorType::contiguous(self.dtype, std::move(sizes), self.device));
}

/// Checks of index_add, index_copy and index_fill: an index of at most one dim, as long as the source along `dim`.
Result<ValueType> inferAlongDim(const InferContext& c, bool preserve) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType index, c.tensor(2));
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    if (index.rank() > 1) return c.fail("the index has " + std::to_string(index.rank()) + " dims; needs at most one");
    if (index.dtype != DType::I64 && index.dtype != DType::I32) return c.fail("the index must be int32 or int64");
    const SymInt length = index.rank() == 0 ? SymInt(1) : index.sizes[0];
    const int source = c.op().schema()->find("source");
    if (source >= 0) {
        CT_TRY(const TensorType given, c.tensor(static_cast<size_t>(source)));
        if (given.dtype != self.dtype) return c.fail("self and source have different dtypes");
        // A vector of one element and a 0-d tensor stand for each other.
        const bool oneElement = c.op().baseName() == "index_copy" && given.rank() + self.rank() == 1;
        if (given.rank() != self.rank() && !oneElement)
            return c.fail("the source has " + std::to_string(given.rank()) + " dims, the tensor " +
                          std::to_string(self.rank()));
        for (int64_t i = 0; i < std::min(self.rank(), given.rank()); ++i) {
            const SymInt &own = self.sizes[static_cast<size_t>(i)], &other = given.sizes[static_cast<size_t>(i)];
            if (i != dim && own.isInt() && other.isInt() && !(own == other))
                return c.fail("the source " + given.text() + " does not have the sizes of " + self.text() +
                              " beside dim " + std::to_string(dim));
        }
        const SymInt along = given.rank() == 0    ? SymInt(1)
                             : dim < given.rank() ? given.sizes[static_cast<size_t>(dim)]
                                                  : SymInt(1);
        if (along.isInt() && length.isInt() && along.value() != length.value())
            return c.fail("the index has " + length.text() + " elements, the source " + along.text() +
                          " along the dim");
    }
    if (c.op().schema()->find("alpha") >= 0) CT_TRY_VOID(checkNumber(c, "alpha", self.dtype));
    if (c.op().schema()->find("value") >= 0) CT_TRY_VOID(checkNumber(c, "value", self.dtype));
    TensorType type = TensorType::contiguous(self.dtype, self.sizes, self.device);
    if (preserve) type.strides = preservedStrides(self);
    return ValueType(std::move(type));
}

Values decomposeIndexAdd(Decomposition& d) {
    const Value self = d.in(0), index = d.in("index");
    const int64_t dim = d.dimOf("dim", self.rank());
    Value source = d.in("source");
    if (self.dtype() == DType::BF16) return Values::notHandled();
    if (self.rank() > 1 && numel(self.sizes()) == SymInt(0))
        return d.call("aten.clone.default", {self}, {{"memory_format", MemoryFormat::Contiguous}});
    const auto alpha = d.scalar("alpha");
    if (alpha && toDouble(*alpha) != 1) source = source * OperandValue(*alpha);
    const bool scalar = self.rank() == 0;
    const Value target = scalar ? unsqueeze(self, 0) : self;
    const Value from = scalar && source.rank() == 0 ? unsqueeze(source, 0) : source;
    const Value out = d.call("aten.index_put.default", {target, indexAt(index, dim), from, true});
    return scalar ? d.call("aten.squeeze.dim", {out, 0}) : d.call("aten.contiguous.default", {out});
}

Values decomposeIndexCopy(Decomposition& d) {
    const Value self = d.in(0);
    const bool scalar = self.rank() == 0;
    const Value target = scalar ? unsqueeze(self, 0) : self;
    const Value out =
        d.call("aten.index_put.default", {target, indexAt(d.in("index"), d.dimOf("dim", self.rank())), d.in("source")});
    return scalar ? d.call("aten.squeeze.dim", {out, 0}) : d.call("aten.contiguous.default", {out});
}

Values decomposeIndexFill(Decomposition& d) {
    const Value self = d.in(0), index = d.in("index");
    const int64_t dim = d.dimOf("dim", self.rank());
    const Value value = d.call(
        "aten.scalar_tensor.default", {d.arg("value")},
        {{"dtype", self.dtype()}, {"layout", Layout::Strided}, {"device", self.type().device}, {"pin_memory", false}});
    if (self.rank() == 0) {
        const Value at = index.rank() == 0 ? unsqueeze(index, 0) : index;
        const Value out =
            d.call("aten.index_put.default", {unsqueeze(self, 0), indexAt(at, 0), expand(value, at.sizes())});
        return d.call("aten.squeeze.dim", {out, 0});
    }
    SymDims sizes = self.sizes();
    sizes[static_cast<size_t>(dim)] = index.rank() == 0 ? SymInt(1) : index.size(0);
    return d.call("aten.index_put.default", {self, indexAt(index, dim), expand(value, sizes)});
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

constexpr OpDef kOps[] = {
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
    // The slices at `index` along one dim.
    {.schema = "aten.index_select.default(Tensor self, int dim, Tensor index) -> Tensor",
     .infer = inferIndexSelect,
     .eval = [](const EvalContext& c) -> EvalResult {
         const Tensor self = c.in(size_t{0});
         const int64_t dim = c.dimOf("dim", self.rank());
         const Tensor source = self.rank() == 0 ? self.view({1}, {1}, self.offset()) : self;
         Tensor index = c.in(2);
         if (index.rank() == 0) index = index.view({1}, {1}, index.offset());
         if (auto problem = negativeIndex(c, index)) return std::move(*problem);
         TensorList indices(static_cast<size_t>(dim));
         indices.push_back(index);
         auto tables = indexTables(c, source.sizes(), source.strides(), indices);
         if (!tables) return std::move(tables).error();
         Tensor out = c.result();
         Tensor target = self.rank() == 0 ? out.view({1}, {1}, out.offset()) : out;
         if (out.numel() > 0) copyElements(source, *tables, target, ResultTables(target, tables->plan));
         return out;
     },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value self = d.in(0);
         if (self.rank() == 0)
             return d.call("aten.squeeze.dim",
                           {d.call("aten.index.Tensor", {unsqueeze(self, 0), indexAt(d.in(2), 0)}), 0});
         Value index = d.in(2);
         if (index.rank() == 0) index = unsqueeze(index, 0);
         return d.call("aten.index.Tensor", {self, indexAt(index, d.dimOf("dim", self.rank()))});
     },
     .derive =
         [](Derivation& d) {
             const Value zeros =
                 full(d.builder(), d.in(0).sizes(), Scalar(int64_t{0}), d.dy().dtype(), d.dy().type().device);
             d.input(0) = d.call("aten.index_add.default", {zeros, d.arg("dim"), d.in(2), d.dy()});
         },
     .lower = lowerIndexSelect,
     .samples =
         "f32[4, 5], 0, i64[3]<4\nf32[4, 5], -1, i32[2]<5\nf32[4, 5][1, 4], 1, i64[2]<5\ni64[4], 0, i64[0]<4\nf32[4, 5], 1, i64[]<5"},
    // self with alpha * source added to the slices at `index`.
    {.schema = "aten.index_add.default(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
     .tags = Tag::Inplace,
     .infer = [](const InferContext& c) { return inferAlongDim(c, false); },
     .eval = [](const EvalContext& c) -> EvalResult {
         const Tensor self = c.in(size_t{0}), source = c.in("source"), index = c.in("index");
         const int64_t dim = c.dimOf("dim", self.rank());
         Tensor out = c.result();
         std::optional<Error> error;
         withComplex(out.dtype(), [&](auto tag) {
             using T = decltype(tag);
             std::vector<T> sums = packElements<T>(self);
             const std::vector<T> added = packElements<T>(source);
             const std::vector<int64_t> at = packElements<int64_t>(index);
             const int64_t size = self.rank() ? self.size(dim) : 1;
             int64_t inner = 1, outer = 1;
             for (int64_t i = 0; i < self.rank(); ++i) (i < dim ? outer : inner) *= i == dim ? 1 : self.size(i);
             const T alpha = scalarAs<T>(c.number("alpha"));
             const auto count = static_cast<int64_t>(at.size());
             for (int64_t o = 0; o < outer; ++o)
                 for (int64_t k = 0; k < count; ++k) {
                     const int64_t to = at[static_cast<size_t>(k)];
                     if (to < 0 || to >= size) {
                         error = c.fail("index " + std::to_string(to) + " is out of range for a dim of size " +
                                        std::to_string(size));
                         return;
                     }
                     for (int64_t i = 0; i < inner; ++i) {
                         T& sum = sums[static_cast<size_t>((o * size + to) * inner + i)];
                         sum = wrapAdd(sum, wrapMul(alpha, added[static_cast<size_t>((o * count + k) * inner + i)]));
                     }
                 }
             unpackElements(sums, out);
         });
         if (error && (out.numel() > 0 || self.rank() <= 1)) return *error;  // rows without elements are not looked at
         return out;
     },
     .expand = Expand::Decompose,
     .decompose = decomposeIndexAdd,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.dy();
             if (!d.needs(3)) return;
             if (d.in(0).rank() > 1 && numel(d.in(0).sizes()) == SymInt(0)) {
                 d.input(3) = unary("aten.zeros_like.default", d.in("source"));
                 return;
             }
             const Value picked = d.call("aten.index_select.default", {d.dy(), d.arg("dim"), d.in("index")});
             const auto alpha = d.scalar("alpha");
             const Value shaped =
                 d.in("source").rank() == 0 ? reshape(picked, {}) : expand(picked, d.in("source").sizes());
             d.input(3) = alpha && toDouble(*alpha) != 1 ? shaped * OperandValue(*alpha) : shaped;
         },
     .samples =
         "f32[4, 5], 0, i64[3]<4, f32[3, 5]\nf32[4, 5], 1, i64[2]<5, f32[4, 2], alpha=2\nbf16[4, 5], 0, i64[2]<4, bf16[2, 5]\ni64[4], 0, i64[6]<4, i64[6]\nf32[5, 4][1, 5], 0, i64[2]<5, f32[2, 4]"},
    {.schema = "aten.index_copy.default(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
     .tags = Tag::Inplace,
     .infer = [](const InferContext& c) { return inferAlongDim(c, false); },
     .eval = evalIndexCopy,
     .expand = Expand::Decompose,
     .decompose = decomposeIndexCopy,
     .derive =
         [](Derivation& d) {
             if (d.needs(0))
                 d.input(0) = d.call("aten.index_fill.int_Scalar", {d.dy(), d.arg("dim"), d.in("index"), 0});
             if (d.needs(3)) d.input(3) = d.call("aten.index_select.default", {d.dy(), d.arg("dim"), d.in("index")});
         },
     .samples =
         "f32[4, 5], 0, i64[1]<4, f32[1, 5]\nf32[4, 5], -1, i64[1]<5, f32[4, 1]\nf32[5, 4][1, 5], 0, i64[1]<5, f32[1, 4]"},
    {.schema = "aten.index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     .tags = Tag::Inplace,
     .infer = [](const InferContext& c) { return inferAlongDim(c, true); },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeIndexFill,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.index_fill.int_Scalar", {d.dy(), d.arg("dim"), d.in("index"), 0});
         },
     .samples = "f32[4, 5], 0, i64[2]<4, 2.5\ni64[4, 5], -1, i64[3]<5, 7\nf32[4, 5][1, 4], 0, i64[2]<4, 0"},
};

}  // namespace

std::span<const OpDef> indexOps() { return kOps; }

}  // namespace cutaway
