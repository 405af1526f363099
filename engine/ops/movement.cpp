// Data movement that is not a view: cat, repeat, padding, triangles.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/lower.h"
#include "engine/ops/number_range.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// An empty 1-d tensor, which cat ignores whatever the shape of the others.
bool isLegacyEmpty(const TensorType& type) { return type.rank() == 1 && type.sizes[0] == SymInt(0); }

Result<ValueType> inferCat(const InferContext& c) {
    CT_TRY(const std::vector<TensorType> tensors, c.tensors("tensors"));
    if (tensors.empty()) return c.fail("needs at least one tensor");
    const TensorType* first = nullptr;
    for (const TensorType& type : tensors)
        if (!isLegacyEmpty(type) && first == nullptr) first = &type;
    if (first == nullptr) first = &tensors[0];
    if (first->rank() == 0) return c.fail("0-d tensors cannot be joined");
    CT_TRY(const int64_t dim, c.dim("dim", first->rank()));
    SymDims sizes = first->sizes;
    SymInt along = 0;
    DType dtype = tensors[0].dtype;
    bool channelsLast = true;
    for (const TensorType& type : tensors) {
        dtype = promote(dtype, type.dtype);
        if (isLegacyEmpty(type) && !isLegacyEmpty(*first)) continue;
        channelsLast &= isChannelsLast(type);
        if (type.rank() != first->rank())
            return c.fail("tensors of " + std::to_string(first->rank()) + " and " + std::to_string(type.rank()) +
                          " dims");
        for (size_t i = 0; i < sizes.size(); ++i)
            if (static_cast<int64_t>(i) != dim && differ(type.sizes[i], sizes[i]))
                return c.fail("sizes " + sizes[i].text() + " and " + type.sizes[i].text() + " differ in dim " +
                              std::to_string(i));
        along = along + type.sizes[static_cast<size_t>(dim)];
    }
    sizes[static_cast<size_t>(dim)] = along;
    TensorType out = TensorType::contiguous(dtype, sizes, first->device);
    if (channelsLast)
        out.strides =
            *formatStrides(sizes.size() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast, sizes);
    return ValueType(std::move(out));
}

EvalResult evalCat(const EvalContext& c) {
    Tensor out = c.result();
    const int64_t dim = c.dimOf("dim", out.rank());
    int64_t start = 0;
    for (const Tensor& tensor : c.list("tensors")) {
        if (tensor.rank() != out.rank() || tensor.numel() == 0) continue;
        Tensor part = out.view(tensor.sizes(), out.strides(), out.offset() + start * out.stride(dim));
        copyInto(part, tensor);
        start += tensor.size(dim);
    }
    return out;
}

/// One tensor is copied, empty ones are dropped, and the same tensor repeated is expanded instead of joined.
Values decomposeCat(Decomposition& d) {
    const std::vector<Value> all = d.list("tensors");
    const int64_t dim = d.dimOf("dim", d.out().rank());
    const int64_t written = d.integerOr("dim", 0);
    std::vector<Value> kept;
    for (const Value& x : all) {
        if (isLegacyEmpty(x.type())) continue;
        if (written < x.rank() && x.size(written) == SymInt(0)) continue;
        kept.push_back(x);
    }
    if (kept.size() == 1) {
        if (kept[0].dtype() == d.out().dtype) return unary("aten.clone.default", kept[0]);
        return convert(kept[0], d.out().dtype);
    }
    if (kept.size() > 1 && kept.size() < all.size()) {
        // What was dropped may be what gave the rest a common dtype.
        const auto differs = [&](const Value& x) { return x.dtype() != kept[0].dtype(); };
        std::vector<Argument> tensors;
        for (const Value& x : kept)
            tensors.emplace_back(std::any_of(kept.begin(), kept.end(), differs) ? convert(x, d.out().dtype) : x);
        return convert(d.call("aten.cat.default", {Argument(std::move(tensors)), d.arg("dim")}), d.out().dtype);
    }
    if (kept.size() < 2) return Values::notHandled();
    for (const Value& x : kept)
        if (x.node() != kept[0].node()) return Values::notHandled();
    SymDims sizes = kept[0].sizes();
    sizes.insert(sizes.begin() + dim, SymInt(kept.size()));
    const Value expanded = expand(unsqueeze(kept[0], dim), sizes);
    return unary("aten.clone.default", d.call("aten.flatten.using_ints", {expanded, dim, dim + 1}));
}

void deriveCat(Derivation& d) {
    const std::vector<Value> tensors = d.list("tensors");
    const int64_t dim = d.dimOf("dim", d.out().rank());
    SymInt start = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
        if (isLegacyEmpty(tensors[i].type()) && d.out().rank() != 1) continue;
        const SymInt end = start + tensors[i].size(dim);
        d.input(0, i) = d.call("aten.slice.Tensor", {d.dy(), dim, Argument(start), Argument(end)});
        start = end;
    }
}

Expr lowerCat(LowerContext& c) {
    const std::vector<TensorType> tensors = c.inList("tensors");
    const int64_t dim = c.dimOf("dim", c.out().rank());
    const auto along = static_cast<size_t>(dim);
    // From the last tensor back: each is read where the index lies before its end.
    Expr result;
    std::vector<SymInt> starts{0};
    for (const TensorType& type : tensors) {
        const bool skipped = type.rank() != c.out().rank();
        starts.push_back(starts.back() + (skipped ? SymInt(0) : type.sizes[along]));
    }
    for (size_t i = tensors.size(); i-- > 0;) {
        if (tensors[i].rank() != c.out().rank() || tensors[i].sizes[along] == SymInt(0)) continue;
        auto load = [&] {
            std::vector<Expr> at = c.index();
            at[along] = Expr::make(ExprKind::Add,
                                   {at[along], Expr::make(ExprKind::Mul, {starts[i].expr(), Expr::integer(-1)})});
            return Expr::cast(c.loadItemAt(0, i, at), computeTypeOf(c.out().dtype));
        };
        if (!result) {
            result = load();
            if (i > 0) {
                const Expr after = compare(ExprKind::Ge, c.index()[along], starts[i].expr());
                result = c.guarded(after, load, constantOf(Scalar(int64_t{0}), computeTypeOf(c.out().dtype)));
            }
            continue;
        }
        const Expr here = compare(ExprKind::Lt, c.index()[along], starts[i + 1].expr());
        const Expr inside = i > 0 ? compare(ExprKind::Ge, c.index()[along], starts[i].expr()) && here : here;
        result = Expr::where(
            here, c.guarded(inside, load, constantOf(Scalar(int64_t{0}), computeTypeOf(c.out().dtype))), result);
    }
    return result;
}

Result<ValueType> inferStack(const InferContext& c) {
    CT_TRY(const std::vector<TensorType> tensors, c.tensors("tensors"));
    if (tensors.empty()) return c.fail("needs at least one tensor");
    CT_TRY(const int64_t dim, c.dim("dim", tensors[0].rank() + 1));
    SymDims sizes = tensors[0].sizes;
    DType dtype = tensors[0].dtype;
    for (const TensorType& type : tensors) {
        dtype = promote(dtype, type.dtype);
        if (type.sizes.size() != sizes.size() || (allInts(type.sizes) && allInts(sizes) && !(type.sizes == sizes)))
            return c.fail("tensors of different shapes");
    }
    sizes.insert(sizes.begin() + dim, SymInt(tensors.size()));
    return ValueType(TensorType::contiguous(dtype, std::move(sizes), tensors[0].device));
}
/// A new dim before an old one: cat along that, reshaped to two dims. A new last dim: unsqueeze each tensor, then cat.
Values decomposeStack(Decomposition& d) {
    const std::vector<Value> tensors = d.list("tensors");
    const int64_t rank = tensors[0].rank(), dim = d.dimOf("dim", rank + 1);
    if (dim < rank) {
        const Value joined =
            d.call("aten.cat.default", {Argument(std::vector<Argument>(tensors.begin(), tensors.end())), dim});
        return reshape(joined, d.out().sizes);
    }
    std::vector<Argument> columns;
    for (const Value& x : tensors) columns.push_back(unsqueeze(x, dim));
    return d.call("aten.cat.default", {Argument(std::move(columns)), d.arg("dim")});
}

Result<ValueType> inferRepeat(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(SymDims sizes, c.sizes("repeats"));
    if (sizes.size() < self.sizes.size()) return c.fail("fewer repeats than the tensor has dims");
    const size_t lead = sizes.size() - self.sizes.size();
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (exceeds(0, sizes[i])) return c.fail("a negative number of repeats");
        if (i >= lead) sizes[i] = sizes[i] * self.sizes[i - lead];
    }
    return ValueType(TensorType::contiguous(self.dtype, std::move(sizes), self.device));
}

EvalResult evalRepeat(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    Tensor out = c.result();
    if (out.numel() == 0) return out;
    // Seen as pairs of dims (repeat, own), repeating is broadcasting.
    Dims sizes, strides, outSizes;
    const int64_t lead = out.rank() - self.rank();
    for (int64_t i = 0; i < out.rank(); ++i) {
        const int64_t own = i < lead ? 1 : self.size(i - lead);
        sizes.insert(sizes.end(), {1, own});
        strides.insert(strides.end(), {0, i < lead ? 0 : self.stride(i - lead)});
        outSizes.insert(outSizes.end(), {out.size(i) / own, own});
    }
    Tensor pairs = out.view(outSizes, contiguousStrides(outSizes), out.offset());
    copyInto(pairs, self.view(sizes, strides, self.offset()));
    return out;
}

Expr lowerRepeat(LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    const size_t lead = c.index().size() - self.sizes.size();
    std::vector<Expr> at;
    for (size_t i = 0; i < self.sizes.size(); ++i)
        at.push_back(Expr::make(ExprKind::Mod, {c.index()[lead + i], self.sizes[i].expr()}));
    return c.loadAt(0, at);
}

/// Sum over the repeats: the gradient seen as pairs of dims (repeat, own).
void deriveRepeat(Derivation& d) {
    const SymDims repeats = d.sizesOf("repeats");
    const int64_t lead = static_cast<int64_t>(repeats.size()) - d.in(0).rank();
    SymDims pairs;
    std::vector<int64_t> summed;
    for (size_t i = 0; i < repeats.size(); ++i) {
        const bool own = static_cast<int64_t>(i) >= lead;
        if (!own || !(repeats[i] == SymInt(1))) {
            summed.push_back(static_cast<int64_t>(pairs.size()));
            pairs.push_back(repeats[i]);
        }
        if (own) pairs.push_back(d.in(0).size(static_cast<int64_t>(i) - lead));
    }
    const Value split = reshape(d.dy(), pairs);
    d.input(0) = summed.empty() ? split : sum(split, summed, false);
}

/// Padding before and after each dim; negative amounts cut.
struct Padding {
    std::vector<SymInt> before, after;
};
Result<Padding> readPadding(const InferContext& c, const TensorType& self) {
    CT_TRY(const SymDims pad, c.sizes("pad"));
    if (pad.size() % 2 != 0 || pad.size() > 2 * self.sizes.size())
        return c.fail(std::to_string(pad.size()) + " pad amounts for a tensor of " + std::to_string(self.rank()) +
                      " dims; needs pairs, last dim first");
    Padding out{std::vector<SymInt>(self.sizes.size(), 0), std::vector<SymInt>(self.sizes.size(), 0)};
    for (size_t i = 0; i < pad.size() / 2; ++i) {
        out.before[self.sizes.size() - 1 - i] = pad[2 * i];
        out.after[self.sizes.size() - 1 - i] = pad[2 * i + 1];
    }
    return out;
}
Result<ValueType> inferPad(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const Padding padding, readPadding(c, self));
    CT_TRY_VOID(checkNumber(c, "value", self.dtype));
    SymDims sizes;
    for (size_t i = 0; i < self.sizes.size(); ++i) {
        sizes.push_back(self.sizes[i] + padding.before[i] + padding.after[i]);
        const SymInt kept =
            self.sizes[i] + min(padding.before[i], 0) + min(padding.after[i], 0);  // cut before added to
        if (exceeds(0, kept)) return c.fail("dim " + std::to_string(i) + " would have a negative size");
    }
    TensorType type = TensorType::contiguous(self.dtype, sizes, self.device);
    if (isChannelsLast(self))
        type.strides =
            *formatStrides(sizes.size() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast, sizes);
    return ValueType(std::move(type));
}
EvalResult evalPad(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    auto padding = readPadding(c, *c.tensor(size_t{0}));
    Tensor out = c.result();
    copyInto(out, broadcastTo(Tensor::scalar(out.dtype(), c.number("value")), out.sizes()));
    Dims sizes = self.sizes();
    int64_t from = self.offset(), to = out.offset();
    for (size_t i = 0; i < sizes.size(); ++i) {
        const int64_t before = padding->before[i].value(), after = padding->after[i].value();
        if ((sizes[i] += std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0)) <= 0) return out;
        from += std::max<int64_t>(-before, 0) * self.strides()[i];
        to += std::max<int64_t>(before, 0) * out.strides()[i];
    }
    Tensor target = out.view(sizes, out.strides(), to);
    copyInto(target, self.view(sizes, self.strides(), from));
    return out;
}
Expr lowerPad(LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    auto padding = readPadding(c, self);
    if (!padding) return Expr();
    std::vector<Expr> at;
    Expr inside = Expr::boolean(true);
    for (size_t i = 0; i < self.sizes.size(); ++i) {
        at.push_back(Expr::make(ExprKind::Add, {c.index()[i], (SymInt(0) - padding->before[i]).expr()}));
        if (!knownLessEqual(padding->before[i], 0)) inside = inside && compare(ExprKind::Ge, at[i], Expr::integer(0));
        if (!knownLessEqual(padding->after[i], 0))
            inside = inside && compare(ExprKind::Lt, at[i], self.sizes[i].expr());
    }
    return c.guarded(
        inside, [&] { return c.loadAt(0, at); }, c.numberAt("value", computeTypeOf(self.dtype)));
}

Result<ValueType> inferTriangleMask(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (self.rank() < 2) return c.fail("needs at least two dims");
    return ValueType(TensorType::contiguous(self.dtype, self.sizes, self.device));
}
/// tril and triu: keeps the elements whose column - row compares with `diagonal` as said.
Values decomposeTriangleMask(Decomposition& d, std::string_view comparison) {
    const Value self = d.in(0);
    auto range = [&](int64_t dim) {
        return d.call("prims.iota.default", {Argument(self.size(dim))},
                      {{"start", 0},
                       {"step", 1},
                       {"dtype", DType::I64},
                       {"device", self.type().device},
                       {"requires_grad", false}});
    };
    const Value columns = unsqueeze(range(-1), -2), rows = unsqueeze(range(-2), -1);
    const Value kept = d.call(comparison, {columns - rows, d.arg("diagonal")});
    if (self.dtype() == DType::Bool) return d.call("aten.logical_and.default", {kept, self});
    const Value zero = d.call("aten.scalar_tensor.default", {0},
                              {{"dtype", self.dtype()}, {"layout", Layout::Strided}, {"device", self.type().device}});
    return where(kept, self, zero);
}
Expr lowerTriangleMask(LowerContext& c, ExprKind comparison) {
    const size_t rank = c.index().size();
    const Expr column = c.index()[rank - 1], row = c.index()[rank - 2];
    const Expr limit = Expr::make(ExprKind::Add, {row, Expr::integer(c.integerOr("diagonal", 0))});
    const Expr value = c.loadAt(0, c.index());
    return Expr::where(compare(comparison, column, limit), value, constantOf(Scalar(int64_t{0}), value->dtype));
}

constexpr std::string_view kTriangleSamples =
    "f32[3, 4]\nf32[3, 4], 1\nf32[2, 4, 3], -1\nb8[3, 3]\ni64[3, 3]\nf32[3, 4][1, 3]\nf32[0, 3]";

constexpr OpDef kMovementOps[] = {
    // Tensors one after the other along a dim. Empty 1-d tensors are skipped; dtypes are promoted.
    {.schema = "aten.cat.default(Tensor[] tensors, int dim=0) -> Tensor",
     .infer = inferCat,
     .eval = evalCat,
     .expand = Expand::Decompose,
     .decompose = decomposeCat,
     .derive = deriveCat,
     .lower = lowerCat,
     .samples = R"(
[f32[2, 3], f32[4, 3]]
[f32[2, 3], f32[2, 1], f32[2, 2]], 1
[f32[2, 3], f32[2, 3]], -1
[f32[2, 3], f32[0], f32[1, 3]]
[f32[2, 3], i64[2, 3]]
[bf16[2], f32[3]]
[f32[2, 3, 4, 5][60, 1, 15, 3], f32[2, 3, 4, 5][60, 1, 15, 3]], 1
[f32[2, 0], f32[2, 3]], 1
[i64[3]]
)"},
    // Tensors of one shape along a new dim.
    {.schema = "aten.stack.default(Tensor[] tensors, int dim=0) -> Tensor",
     .infer = inferStack,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeStack,
     .derive =
         [](Derivation& d) {
             const std::vector<Value> tensors = d.list("tensors");
             for (size_t i = 0; i < tensors.size(); ++i)
                 d.input(0, i) = d.call("aten.select.int", {d.dy(), d.arg("dim"), static_cast<int64_t>(i)});
         },
     .samples =
         "[f32[2, 3], f32[2, 3]]\n[f32[2, 3], f32[2, 3]], 1\n[f32[2, 3], f32[2, 3]], -1\n[f32[], f32[]]\n[i64[3], i64[3], i64[3]], 0"},
    // The whole tensor repeated along each dim; more repeats than dims add leading dims.
    {.schema = "aten.repeat.default(Tensor self, SymInt[] repeats) -> Tensor",
     .infer = inferRepeat,
     .eval = evalRepeat,
     .derive = deriveRepeat,
     .lower = lowerRepeat,
     .samples =
         "f32[2, 3], [2, 3]\nf32[3], [2, 1]\nf32[2, 3][1, 2], [1, 2]\ni64[2], [0]\nb8[2, 1], [3, 1, 4]\nf32[], [2]"},
    {.schema = "aten.tile.default(Tensor self, SymInt[] dims) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         auto repeats = d.sizes("dims");
         if (!repeats) {
             d.builder().fail(repeats.error());
             return d.in(0);
         }
         if (static_cast<int64_t>(repeats->size()) < d.in(0).rank())
             repeats->insert(repeats->begin(), static_cast<size_t>(d.in(0).rank()) - repeats->size(), SymInt(1));
         return d.call("aten.repeat.default", {d.in(0), Argument(*repeats)});
     },
     .samples = "f32[2, 3], [2]\nf32[3], [2, 2]"},
    // Constant elements around the tensor; pad gives pairs (before, after), last dim first; negative amounts cut.
    {.schema = "aten.constant_pad_nd.default(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
     .infer = inferPad,
     .eval = evalPad,
     .derive =
         [](Derivation& d) {
             SymDims back = d.sizesOf("pad");
             for (SymInt& amount : back) amount = SymInt(0) - amount;
             d.input(0) = d.call("aten.constant_pad_nd.default", {d.dy(), Argument(back)});
         },
     .lower = lowerPad,
     .samples = R"(
f32[2, 3], [1, 2]
f32[2, 3], [1, 2, 0, 1], 2.5
f32[2, 3], [-1, 1]
i64[3], [2, 2], 7
f32[2, 3, 4, 5][60, 1, 15, 3], [1, 1, 2, 0]
b8[2], [1, 0]
f32[2, 3], []
bf16[2, 3], [0, 1], 0.5
)"},
    // Elements on and below (tril) or above (triu) a diagonal; zeros elsewhere.
    {.schema = "aten.tril.default(Tensor self, SymInt diagonal=0) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferTriangleMask,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeTriangleMask(d, "aten.le.Scalar"); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.tril.default", {d.dy(), d.arg("diagonal")});
         },
     .lower = [](LowerContext& c) { return lowerTriangleMask(c, ExprKind::Le); },
     .samples = kTriangleSamples},
    {.schema = "aten.triu.default(Tensor self, SymInt diagonal=0) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferTriangleMask,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeTriangleMask(d, "aten.ge.Scalar"); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.triu.default", {d.dy(), d.arg("diagonal")});
         },
     .lower = [](LowerContext& c) { return lowerTriangleMask(c, ExprKind::Ge); },
     .samples = kTriangleSamples},
};

}  // namespace

std::span<const OpDef> movementOps() { return kMovementOps; }

}  // namespace cutaway
