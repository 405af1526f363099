// Indexing of a single dim by a list of positions: index_select, index_add, index_copy, index_fill.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/index_copy.h"
#include "engine/ops/lower.h"
#include "engine/ops/number_range.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

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
            if (i != dim && differ(own, other))
                return c.fail("the source " + given.text() + " does not have the sizes of " + self.text() +
                              " beside dim " + std::to_string(dim));
        }
        const SymInt along = given.rank() == 0    ? SymInt(1)
                             : dim < given.rank() ? given.sizes[static_cast<size_t>(dim)]
                                                  : SymInt(1);
        if (differ(along, length))
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
    const Value self = d.in(0), index = d.in("index").rank() == 0 ? unsqueeze(d.in("index"), 0) : d.in("index");
    const int64_t dim = d.dimOf("dim", self.rank());
    Value source = d.in("source");
    if (self.dtype() == DType::BF16) return Values::notHandled();
    if (self.rank() > 1 && numel(self.sizes()) == SymInt(0))
        return d.call("aten.clone.default", {self}, {{"memory_format", MemoryFormat::Contiguous}});
    // Kernels for integers take the whole part of the factor.
    auto alpha = d.scalar("alpha");
    if (alpha && isIntegral(self.dtype(), true)) alpha = Scalar(toInt(*alpha));
    if (!isOne(alpha)) source = convert(source * OperandValue(*alpha), self.dtype());
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

constexpr OpDef kIndexDimOps[] = {
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
             d.input(3) = isOne(alpha) ? shaped : d.call("aten.mul.Scalar", {shaped, Argument(conjugated(*alpha))});
         },
     .samples =
         "f32[4, 5], 0, i64[3]<4, f32[3, 5]\nf32[4, 5], 1, i64[2]<5, f32[4, 2], alpha=2\nbf16[4, 5], 0, i64[2]<4, bf16[2, 5]\ni64[4], 0, i64[6]<4, i64[6]\nf32[5, 4][1, 5], 0, i64[2]<5, f32[2, 4]\ni64[4], 0, i64[6]<4, i64[6], alpha=-2.5\n"
         "i64[5], 0, i64[]<4, i64[1]"},
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

std::span<const OpDef> indexDimOps() { return kIndexDimOps; }

}  // namespace cutaway
