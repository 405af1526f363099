// Indexing with more to it than positions: masked, along a dim by a tensor of any shape, into the flat tensor, and
// reducing what lands on one place.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/index_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

Argument maskIndexAt(const Value& index, int64_t dim) {
    std::vector<Argument> items(static_cast<size_t>(dim));
    items.push_back(index);
    return Argument(std::move(items));
}

// -- indexing where a mask holds

Result<ValueType> inferMasked(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType mask, c.tensor("mask"));
    CT_TRY(const IndexPlan plan, planCall(c, self, "indices"));
    if (mask.dtype != DType::Bool) return c.fail("the mask must be bool");
    const Operand operands[] = {{indexedType(self, plan), false}, {mask, false}};
    CT_TRY(TensorType type, elementwiseType(c, operands, self.dtype));
    return ValueType(std::move(type));
}
Result<ValueType> inferMaskedPut(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType mask, c.tensor("mask"));
    CT_TRY(const TensorType values, c.tensor("values"));
    CT_TRY(const IndexPlan plan, planCall(c, self, "indices"));
    if (mask.dtype != DType::Bool) return c.fail("the mask must be bool");
    if (values.dtype != self.dtype) return c.fail("self and values have different dtypes");
    const SymDims shapes[] = {values.sizes, mask.sizes};
    auto sizes = broadcastSizes(shapes);
    if (!sizes || !(*sizes == values.sizes)) return c.fail("the mask does not broadcast to the values");
    const SymDims part = indexedType(self, plan).sizes, pair[] = {part, values.sizes};
    if (allInts(part) && allInts(values.sizes))
        if (const auto both = broadcastSizes(pair); !both || !(*both == part))
            return c.fail("the values do not broadcast to the indexed part");
    TensorType type = TensorType::contiguous(self.dtype, self.sizes, self.device);
    type.strides = preservedStrides(self);
    return ValueType(std::move(type));
}
/// The indices brought inside the tensor: what the mask excludes may lie anywhere.
Argument clampedIndices(Decomposition& d, bool fromEnd) {
    std::vector<Argument> out;
    const std::vector<Argument>& given = *d.arg("indices").list();
    for (size_t i = 0; i < given.size(); ++i) {
        const SymInt size = d.in(0).size(static_cast<int64_t>(i));
        if (given[i].isNone()) out.emplace_back();
        else
            out.push_back(d.call("aten.clamp.default", {given[i], Argument(fromEnd ? SymInt(0) - size : SymInt(0)),
                                                        Argument(size - SymInt(1))}));
    }
    return Argument(std::move(out));
}
Values expandMasked(Decomposition& d) {
    if (numel(d.in(0).sizes()) == SymInt(0))
        return d.call("aten.new_full.default", {d.in(0), Argument(d.out().sizes), d.arg("fill")});
    const Argument indices = clampedIndices(d, false);
    const Value picked = d.call("aten._unsafe_index.Tensor", {d.in(0), indices});
    return d.call("aten.masked_fill.Scalar", {picked, unary("aten.logical_not.default", d.in(1)), d.arg("fill")});
}
Values expandMaskedPut(Decomposition& d) {
    if (numel(d.in(0).sizes()) == SymInt(0)) return unary("aten.clone.default", d.in(0));
    const Argument indices = clampedIndices(d, true);
    const Value values = d.call("aten.masked_fill.Scalar", {d.in(3), unary("aten.logical_not.default", d.in(1)), 0});
    return d.call("aten.index_put.default", {d.in(0), indices, values, true});
}
Expr lowerMasked(LowerContext& c) {
    const TensorType self = c.in(size_t{0}), mask = c.in(1);
    auto plan = planCall(c, self, "indices");
    if (!plan || plan->sizes.size() != c.out().sizes.size()) return Expr();
    std::vector<Expr> position = c.index();
    for (size_t i = 0; i < position.size(); ++i)
        if (plan->sizes[i] == SymInt(1)) position[i] = Expr::integer(0);
    std::vector<Expr> maskAt(c.index().end() - mask.rank(), c.index().end());
    for (size_t i = 0; i < maskAt.size(); ++i)
        if (mask.sizes[i] == SymInt(1)) maskAt[i] = Expr::integer(0);
    const std::vector<Expr> at = indexedElement(c, self, 2, *plan, position, Outside::Clamped);
    if (at.empty() && self.rank() > 0) return Expr();
    return c.guarded(
        c.loadAt(1, maskAt), [&] { return c.loadAt(0, at); }, c.numberAt("fill", computeTypeOf(self.dtype)));
}

// -- along a dim, and into the flat tensor

Values decomposeTakeAlong(Decomposition& d) {
    const Value self = d.in(0), indices = d.in(1);
    if (indices.dtype() != DType::I64) return refuse(d, "the indices must be int64");
    if (!d.has("dim")) {
        const Argument all(std::vector<int64_t>{-1});
        const Value flat = d.call("aten.reshape.default", {self, all}),
                    positions = d.call("aten.reshape.default", {indices, all});
        return d.call("aten.gather.default", {flat, 0, positions});
    }
    const auto dim = read(d, d.dim("dim", self.rank()));
    if (!dim) return Value(d.builder(), nullptr);
    if (self.rank() != indices.rank() || self.rank() == 0)
        return refuse(d, "self and indices must have the same number of dims");
    SymDims first = self.sizes(), second = indices.sizes();
    first[static_cast<size_t>(*dim)] = second[static_cast<size_t>(*dim)] = 1;
    const SymDims shapes[] = {first, second};
    auto common = read(d, broadcastSizes(shapes));
    if (!common) return Value(d.builder(), nullptr);
    (*common)[static_cast<size_t>(*dim)] = indices.size(*dim);
    const Value wanted = expand(indices, *common);
    (*common)[static_cast<size_t>(*dim)] = self.size(*dim);
    const Value source = expand(self, *common);
    const Value wrapped = d.call("aten.remainder.Scalar", {wanted, Argument(self.size(*dim))});
    return d.call("aten.gather.default", {source, *dim, wrapped});
}

Result<ValueType> inferPut(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType index, c.tensor(1));
    CT_TRY(const TensorType source, c.tensor(2));
    if (index.dtype != DType::I64) return c.fail("the index must be int64");
    if (source.dtype != self.dtype) return c.fail("self and source have different dtypes");
    const SymInt wanted = numel(index.sizes), given = numel(source.sizes);
    if (differ(wanted, given)) return c.fail(given.text() + " elements for " + wanted.text() + " positions");
    TensorType type = TensorType::contiguous(self.dtype, self.sizes, self.device);
    type.strides = preservedStrides(self);
    return ValueType(std::move(type));
}
Values decomposePut(Decomposition& d) {
    const Value self = d.in(0);
    const Value flat = self.rank() == 1 ? self : reshape(self, {numel(self.sizes())});
    const Value source = reshape(d.in(2), d.in(1).sizes());
    const Value put = d.call("aten.index_put.default", {flat, maskIndexAt(d.in(1), 0), source, d.arg("accumulate")});
    return reshape(put, self.sizes());
}

// -- index_reduce and a filled value that is a tensor

Result<ValueType> inferIndexReduce(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType index, c.tensor("index"));
    CT_TRY(const TensorType source, c.tensor("source"));
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    if (isComplex(self.dtype)) return c.fail("has no kernel for complex numbers; index_add has one");
    const std::string reduce = c.text("reduce");
    if (reduce != "prod" && reduce != "mean" && reduce != "amax" && reduce != "amin")
        return c.fail("unknown reduction '" + reduce + "'; prod, mean, amax and amin are known");
    if (index.rank() > 1 || (index.dtype != DType::I64 && index.dtype != DType::I32))
        return c.fail("the index must be a vector of int64 or int32");
    if (source.dtype != self.dtype || source.rank() != self.rank())
        return c.fail("self and source differ in dtype or number of dims");
    SymDims expected = self.sizes;
    if (self.rank() > 0) expected[static_cast<size_t>(dim)] = index.rank() == 0 ? SymInt(1) : index.sizes[0];
    if (differ(expected, source.sizes))
        return c.fail("the source does not have self's shape with the index's length along the dim");
    return ValueType(TensorType::contiguous(self.dtype, self.sizes, self.device));
}
EvalResult evalIndexReduce(const EvalContext& c) {
    const Tensor self = c.in(size_t{0}), source = c.in("source");
    const std::vector<int64_t> index = packElements<int64_t>(c.in("index"));
    const std::string reduce = c.text("reduce");
    const int64_t dim = c.dimOf("dim", self.rank()), size = self.rank() > 0 ? self.size(dim) : 1,
                  count = static_cast<int64_t>(index.size());
    int64_t outer = 1, inner = 1;
    for (int64_t i = 0; i < self.rank(); ++i)
        if (i != dim) (i < dim ? outer : inner) *= self.size(i);
    Tensor out = c.result();
    for (int64_t at : index)
        if (at < 0 || at >= size)
            return c.fail("index " + std::to_string(at) + " is out of range for a dim of size " + std::to_string(size));
    withCompute(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        std::vector<T> target = packElements<T>(self);
        const std::vector<T> given = packElements<T>(source);
        std::vector<int64_t> landed(target.size(), c.flag("include_self", true) ? 1 : 0);
        for (int64_t o = 0; o < outer; ++o)
            for (int64_t k = 0; k < count; ++k)
                for (int64_t i = 0; i < inner; ++i) {
                    const auto to = static_cast<size_t>((o * size + index[static_cast<size_t>(k)]) * inner + i);
                    const T value = given[static_cast<size_t>((o * count + k) * inner + i)];
                    const bool first = landed[to]++ == 0;
                    T& result = target[to];
                    result = first              ? value
                             : reduce == "prod" ? wrapMul(result, value)
                             : reduce == "mean" ? wrapAdd(result, value)
                             : reduce == "amax" ? maximumOf(result, value)
                                                : minimumOf(result, value);
                }
        for (size_t i = 0; i < target.size() && reduce == "mean"; ++i)
            if (landed[i] > 1) {
                if constexpr (std::is_integral_v<T>) target[i] = floorDivide<T>(target[i], landed[i]);
                else target[i] /= static_cast<T>(landed[i]);
            }
        unpackElements(target, out);
    });
    return out;
}
/// A mean is a sum over counts; the other reductions, and dtypes that generated code does not add atomically, stay.
Values decomposeIndexReduce(Decomposition& d) {
    const DType dtype = d.in(0).dtype();
    if (d.text("reduce") != "mean" || dtype == DType::I64 || dtype == DType::Bool || dtype == DType::BF16)
        return Values::notHandled();
    const Value self = d.in(0), index = d.in("index"), source = d.in("source");
    const Argument dim = d.arg("dim");
    const auto add = [&](const Value& to, const Value& what) {
        return d.call("aten.index_add.default", {to, dim, index, what});
    };
    const Value ones = d.call("aten.ones_like.default", {source});
    Value out = self, counts;
    if (d.flag("include_self", true)) {
        counts = add(d.call("aten.ones_like.default", {self}), ones);
    } else {
        out = d.call("aten.index_fill.int_Scalar", {self, dim, index, 0});
        counts = add(d.call("aten.zeros_like.default", {self}), ones);
        counts = d.call("aten.masked_fill.Scalar", {counts, d.call("aten.lt.Scalar", {counts, 1}), 1});
    }
    out = add(out, source);
    return isFloating(self.dtype()) ? out / counts : d.call("aten.floor_divide.default", {out, counts});
}
void deriveIndexReduce(Derivation& d) {
    const Value self = d.in(0), index = d.in("index"), source = d.in("source"), dy = d.dy(), y = d.out();
    const Argument dim = d.arg("dim");
    const std::string reduce = d.text("reduce");
    const bool include = d.flag("include_self", true);
    const auto select = [&](const Value& x) { return d.call("aten.index_select.default", {x, dim, index}); };
    const auto add = [&](const Value& to, const Value& what) {
        return d.call("aten.index_add.default", {to, dim, index, what});
    };
    const auto cleared = [&](const Value& x) {
        return include ? x : d.call("aten.index_fill.int_Scalar", {x, dim, index, 0});
    };
    Value forSelf, forSource;
    if (reduce == "mean") {
        Value counts = add(d.call(include ? "aten.ones_like.default" : "aten.zeros_like.default", {dy}),
                           d.call("aten.ones_like.default", {source}));
        counts = d.call("aten.masked_fill.Scalar", {counts, d.call("aten.eq.Scalar", {counts, 0}), 1});
        forSelf = dy / counts;
        forSource = select(forSelf);
    } else if (reduce == "prod") {
        const Value product = dy * y;
        forSelf = product / self;
        forSource = select(product) / source;
    } else {
        const Value value = select(y);
        const Value isSelf = convert(d.call("aten.eq.Tensor", {self, y}), dy.dtype()),
                    isSource = convert(d.call("aten.eq.Tensor", {source, value}), dy.dtype());
        const Value share = dy / add(cleared(isSelf), isSource);
        forSelf = isSelf * share;
        forSource = isSource * select(share);
    }
    if (d.needs(0)) d.input(0) = cleared(forSelf);
    if (d.needs(3)) d.input(3) = forSource;
}

Result<ValueType> inferFillTensor(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType index, c.tensor(2));
    CT_TRY(const TensorType value, c.tensor("value"));
    CT_TRY_VOID(c.dim("dim", self.rank()));
    if (value.rank() != 0) return c.fail("the value must be a 0-d tensor");
    if (index.rank() > 1 || (index.dtype != DType::I64 && index.dtype != DType::I32))
        return c.fail("the index must be a vector of int64 or int32");
    TensorType type = TensorType::contiguous(self.dtype, self.sizes, self.device);
    type.strides = preservedStrides(self);
    return ValueType(std::move(type));
}
Values decomposeFillTensor(Decomposition& d) {
    const Value self = d.in(0), index = d.in("index"), value = convert(d.in("value"), self.dtype());
    if (self.rank() == 0) {
        const Value at = index.rank() == 0 ? unsqueeze(index, 0) : index;
        return d.call(
            "aten.squeeze.dim",
            {d.call("aten.index_put.default", {unsqueeze(self, 0), maskIndexAt(at, 0), expand(value, at.sizes())}), 0});
    }
    const int64_t dim = d.dimOf("dim", self.rank());
    SymDims sizes = self.sizes();
    sizes[static_cast<size_t>(dim)] = index.rank() == 0 ? SymInt(1) : index.size(0);
    return d.call("aten.index_put.default", {self, maskIndexAt(index, dim), expand(value, sizes)});
}

constexpr std::string_view kReduceSamples = R"(
f32[4, 5], 0, i64[3]<4, f32[3, 5], 'mean'
f32[4, 5], 1, i64[7]<5, f32[4, 7], 'mean', include_self=False
f32[4, 5], 0, i64[6]<4, f32[6, 5], 'amax'
f32[4, 5], -1, i32[6]<5, f32[4, 6], 'amin', include_self=False
f64[4, 5], 0, i64[3]<4, f64[3, 5], 'prod'
f64[4, 5]>0, 0, i64[6]<4, f64[6, 5]>0, 'prod', include_self=False
i64[4], 0, i64[6]<4, i64[6], 'mean'
f32[4, 5][1, 4], 0, i64[3]<4, f32[3, 5], 'amax'
f32[4], 0, i64[0]<4, f32[0], 'mean'
)";

constexpr OpDef kMaskedIndexOps[] = {
    // self[indices] where the mask holds, `fill` elsewhere: there the indices may lie outside.
    {.schema = "aten._unsafe_masked_index.default(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
     .infer = inferMasked,
     .eval = evalExpanded,
     .expand = Expand::Never,
     .decompose = expandMasked,
     .derive =
         [](Derivation& d) {
             const Value zeros =
                 full(d.builder(), d.in(0).sizes(), Scalar(int64_t{0}), d.dy().dtype(), d.dy().type().device);
             d.input(0) =
                 d.call("aten._unsafe_masked_index_put_accumulate.default", {zeros, d.in(1), d.arg("indices"), d.dy()});
         },
     .lower = lowerMasked,
     .samples = R"(
f32[2, 3, 4, 5], b8[4, 1], [None, None, i64[4, 1]<4, i64[5]<5], 0.0
f32[4, 5], b8[3], [i64[3, 1]<4, i64[3]<5], -1.5
f32[4, 5], b8[7], [i64[7]<9, i64[7]<9], 2.0
i64[6], b8[2, 3], [i64[2, 3]<6], 9
f32[4, 5][1, 4], b8[3, 5], [i64[3]<4], 0
bf16[4], b8[3], [i64[3]<4], 1
)"},
    {.schema =
         "aten._unsafe_masked_index_put_accumulate.default(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
     .infer = inferMaskedPut,
     .eval = evalExpanded,
     .expand = Expand::Never,
     .decompose = expandMaskedPut,
     .derive =
         [](Derivation& d) {
             if (d.needs(0)) d.input(0) = d.dy();
             if (d.needs(3))
                 d.input(3) = d.call("aten._unsafe_masked_index.default", {d.dy(), d.in(1), d.arg("indices"), 0});
         },
     .samples =
         "f32[4, 5], b8[3, 5], [i64[3]<4], f32[3, 5]\nf32[6], b8[7], [i64[7]<6], f32[7]\nf64[2, 3, 4], b8[5], [None, None, i64[5]<4], f64[2, 3, 5]\ni64[0], b8[2], [i64[2]], i64[2]"},
    // The elements of self at indices along a dim, the other dims broadcast; without a dim, of the flat tensor.
    shorthand(
        "aten.take_along_dim.default(Tensor self, Tensor indices, int? dim=None) -> Tensor", decomposeTakeAlong,
        "f32[2, 3, 4], i64[2, 1, 4]<3, 1\nf32[2, 3], i64[1, 5]<3, -1\nf32[2, 3], i64[4]<6\nf32[1, 3], i64[2, 1]<3, 1\ni64[3, 2][1, 3], i64[3, 2]<2, 1"),
    // Elements written to row-major positions of the whole tensor.
    {.schema = "aten.put.default(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferPut,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposePut,
     .derive =
         [](Derivation& d) {
             if (d.needs(0))
                 d.input(0) =
                     d.flag("accumulate")
                         ? d.dy()
                         : d.call("aten.put.default", {d.dy(), d.in(1), d.call("aten.zeros_like.default", {d.in(2)})});
             if (d.needs(2)) d.input(2) = reshape(d.call("aten.take.default", {d.dy(), d.in(1)}), d.in(2).sizes());
         },
     .samples =
         "f32[4, 5], i64[3]<20, f32[3], True\nf32[4, 5], i64[1]<20, f32[1]\ni64[6], i64[2, 2]<6, i64[4], True\nf32[2, 3][1, 2], i64[1]<6, f32[1]\nf32[3], i64[0], f32[0]"},
    {.schema =
         "aten.index_reduce.default(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferIndexReduce,
     .eval = evalIndexReduce,
     .expand = Expand::Decompose,
     .decompose = decomposeIndexReduce,
     .derive = deriveIndexReduce,
     .samples = kReduceSamples},
    {.schema = "aten.index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferFillTensor,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeFillTensor,
     .derive =
         [](Derivation& d) {
             if (d.needs(0))
                 d.input(0) = d.call("aten.index_fill.int_Scalar", {d.dy(), d.arg("dim"), d.in("index"), 0});
             if (d.needs(3)) {
                 const Value filled = d.call("aten.index_fill.int_Scalar", {d.call("aten.zeros_like.default", {d.dy()}),
                                                                            d.arg("dim"), d.in("index"), 1});
                 d.input(3) = d.call("aten.sum.default", {d.dy() * filled});
             }
         },
     .samples = "f32[4, 5], 0, i64[2]<4, f32[]\ni64[4, 5], -1, i64[3]<5, i64[]\nf32[4, 5][1, 4], 0, i64[2]<4, f32[]"},
};

}  // namespace

std::span<const OpDef> maskedIndexOps() { return kMaskedIndexOps; }

}  // namespace cutaway
