// Copies with one view of them replaced (select_scatter and kin), and the gradients of views that are made of them.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/view_rules.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

/// Type of the view that `src` replaces, by the view op's own shape rule: a view of the copy, not of self.
Result<TensorType> replacedType(const InferContext& c, std::string_view viewOp, const TensorType& copy) {
    Graph scratch;
    std::vector<Argument> args{Argument(&scratch.placeholder("copy", copy))};
    for (size_t i = 2; i < c.count(); ++i) args.push_back(c.arg(i));
    CT_TRY(ValueType type, inferCall(requireOp(viewOp), args));
    return *type.tensor();
}

Result<ValueType> inferReplaced(const InferContext& c, std::string_view viewOp) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType source, c.tensor(1));
    TensorType type = TensorType::contiguous(self.dtype, self.sizes, self.device);
    // The copy keeps even strides with gaps, but no overlap.
    const bool overlaps = std::find(self.strides.begin(), self.strides.end(), SymInt(0)) != self.strides.end();
    type.strides = overlaps ? preservedStrides(self) : self.strides;
    TensorType copy = type;
    copy.offset = self.offset;  // as_strided counts from the start of the storage
    CT_TRY(const TensorType part, replacedType(c, viewOp, copy));
    if (source.rank() != part.rank())
        return c.fail("src has " + std::to_string(source.rank()) + " dims, the replaced part " +
                      std::to_string(part.rank()));
    for (size_t i = 0; i < part.sizes.size(); ++i)
        if (differ(source.sizes[i], part.sizes[i]))
            return c.fail("src has size " + source.sizes[i].text() + " in dim " + std::to_string(i) +
                          ", the replaced part " + part.sizes[i].text());
    return ValueType(std::move(type));
}

/// Copies self and writes src into the view of the copy that the op names.
EvalResult evalReplaced(const EvalContext& c, std::string_view viewOp) {
    Tensor out = c.result();
    copyInto(out, c.in(size_t{0}));
    TensorType copy = TensorType::contiguous(out.dtype(), toSymDims(out.sizes()));
    copy.strides = toSymDims(out.strides());
    copy.offset = c.tensor(size_t{0})->offset;
    const auto part = replacedType(c, viewOp, copy);
    if (!part) return part.error();
    Tensor target =
        out.view(toInts(part->sizes), toInts(part->strides), checkedSub(part->offset.value(), copy.offset.value()));
    copyInto(target, c.in(1));
    return out;
}

/// Gradients: self's with the part zeroed, src's the part of dy.
void deriveReplaced(Derivation& d, std::string_view scatterOp, std::string_view viewOp) {
    std::vector<Argument> rest(d.node().args().begin() + 2, d.node().args().end());
    if (d.needs(0)) {
        const TensorType& source = d.in(1).type();
        std::vector<Argument> args{d.dy(),
                                   full(d.builder(), source.sizes, Scalar(int64_t{0}), source.dtype, source.device)};
        args.insert(args.end(), rest.begin(), rest.end());
        d.input(0) = d.call(scatterOp, std::move(args));
    }
    if (d.needs(1)) {
        std::vector<Argument> args{d.dy()};
        args.insert(args.end(), rest.begin(), rest.end());
        d.input(1) = d.call(viewOp, std::move(args));
    }
}

/// The element of src at this index where the condition holds, else self's own.
Expr replacedWhere(LowerContext& c, const Expr& condition, const std::vector<Expr>& at) {
    return c.guarded(
        condition, [&] { return Expr::cast(c.loadAt(1, at), computeTypeOf(c.out().dtype)); }, c.loadAt(0, c.index()));
}
Expr lowerSelectScatter(LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    const auto dim = static_cast<size_t>(c.dimOf("dim", self.rank()));
    auto given = c.size("index");
    if (!given) return Expr();
    auto index = wrapIndex(c, *given, self.sizes[dim]);
    if (!index) return Expr();
    std::vector<Expr> at = c.index();
    at.erase(at.begin() + static_cast<int64_t>(dim));
    const Expr here = compare(ExprKind::Eq, c.index()[dim], index->expr());
    return replacedWhere(c, here, at);
}

Expr lowerSliceScatter(LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    const auto dim = static_cast<size_t>(c.dimOf("dim", self.rank()));
    auto bounds = sliceBounds(c, self.sizes[dim]);
    if (!bounds) return Expr();
    const Expr i = c.index()[dim], start = bounds->start.expr(), step = Expr::integer(bounds->step);
    const Expr distance = Expr::make(ExprKind::Add, {i, Expr::make(ExprKind::Mul, {start, Expr::integer(-1)})});
    Expr inside = compare(ExprKind::Ge, i, start);
    inside = inside && compare(ExprKind::Lt, i, (bounds->start + bounds->length * SymInt(bounds->step)).expr());
    if (bounds->step != 1)
        inside = inside && compare(ExprKind::Eq, Expr::make(ExprKind::Mod, {distance, step}), Expr::integer(0));
    std::vector<Expr> at = c.index();
    at[dim] = Expr::make(ExprKind::FloorDiv, {distance, step});
    return replacedWhere(c, inside, at);
}

/// dy expanded to the sizes of the part of `whole` (a slice or a select) that it goes to, where it is smaller.
/// intoZeros(), the gradient of a view, puts it there into zeros of the operand's shape.
Value spreadGradient(Decomposition& d, const Value& dy, const Value& whole, std::string_view scatterOp) {
    const bool selects = scatterOp == "aten.select_scatter.default";
    if (!whole || (!selects && scatterOp != "aten.slice_scatter.default")) return dy;
    const int64_t dim = d.dimOf("dim", whole.rank());
    SymDims part = whole.sizes();
    if (selects) {
        part.erase(part.begin() + dim);
    } else {
        const int64_t size = whole.size(dim).isInt() ? whole.size(dim).value() : -1;
        const auto first = d.arg("start").asInt(), last = d.arg("end").asInt(), step = d.arg("step").asInt();
        if (size < 0 || !first || !last || !step || *step < 1) return dy;
        const auto within = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
        part[static_cast<size_t>(dim)] = std::max<int64_t>((within(*last) - within(*first) + *step - 1) / *step, 0);
    }
    const SymDims shapes[] = {dy.sizes(), part};
    const auto sizes = broadcastSizes(shapes);
    return dy.sizes() == part || !sizes || !(*sizes == part) ? dy : expand(dy, part);
}
Values intoZeros(Decomposition& d, std::string_view scatterOp) {
    const Value dy = d.in(0);
    const Value zeros = full(d.builder(), d.sizesOf("input_sizes"), Scalar(int64_t{0}), dy.dtype(), dy.type().device);
    std::vector<Argument> args{zeros, spreadGradient(d, dy, zeros, scatterOp)};
    args.insert(args.end(), d.node().args().begin() + 2, d.node().args().end());
    return d.call(scatterOp, std::move(args));
}
Result<ValueType> inferViewGradient(const InferContext& c, std::string_view viewOp) {
    CT_TRY(const TensorType dy, c.tensor(size_t{0}));
    CT_TRY(SymDims sizes, c.sizes("input_sizes"));
    const TensorType whole = TensorType::contiguous(dy.dtype, std::move(sizes), dy.device);
    CT_TRY(const TensorType part, replacedType(c, viewOp, whole));
    if (allInts(part.sizes) && allInts(dy.sizes)) {
        const SymDims shapes[] = {dy.sizes, part.sizes};
        const auto spread = broadcastSizes(shapes);
        if (!spread || !(*spread == part.sizes))
            return c.fail("the gradient " + dy.text() + " does not fit the part " + part.text());
    }
    return ValueType(whole);
}

/// unfold's windows overlap, so its gradient adds: an unfolded range of positions is the index.
Values decomposeUnfoldBackward(Decomposition& d) {
    const Value dy = d.in(0);
    const SymDims sizes = d.sizesOf("input_sizes");
    const auto rank = static_cast<int64_t>(sizes.size());
    if (rank == 0) return d.call("aten.squeeze.dim", {dy, 0});
    const int64_t dim = d.dimOf("dim", rank);
    const Value zeros = full(d.builder(), sizes, Scalar(int64_t{0}), dy.dtype(), dy.type().device);
    const Value positions = d.call(
        "prims.iota.default", {Argument(sizes[static_cast<size_t>(dim)])},
        {{"start", 0}, {"step", 1}, {"dtype", DType::I32}, {"device", dy.type().device}, {"requires_grad", false}});
    const Value windows =
        reshape(d.call("aten.unfold.default", {positions, 0, d.arg("size"), d.arg("step")}), {SymInt(-1)});
    // The window dim moves next to the dim it came from.
    std::vector<int64_t> order;
    for (int64_t i = 0; i < rank; ++i) {
        order.push_back(i);
        if (i == dim) order.push_back(rank);
    }
    const Value moved = permute(dy, order);
    if (!moved || moved.rank() != rank + 1)
        return refuse(d, "the gradient " + dy.type().text() + " is not one of windows");
    SymDims merged(moved.sizes().begin(), moved.sizes().end());
    merged[static_cast<size_t>(dim)] = moved.size(dim) * moved.size(dim + 1);
    merged.erase(merged.begin() + dim + 1);
    const Value rows = reshape(moved, merged);
    std::vector<Argument> indices(static_cast<size_t>(dim));
    indices.push_back(windows);
    return d.call("aten.index_put.default", {zeros, Argument(std::move(indices)), rows, true});
}

constexpr OpDef kViewScatterOps[] = {
    // A copy of self whose part selected by dim and index is src.
    {.schema = "aten.select_scatter.default(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
     .infer = [](const InferContext& c) { return inferReplaced(c, "aten.select.int"); },
     .eval = [](const EvalContext& c) { return evalReplaced(c, "aten.select.int"); },
     .derive = [](Derivation& d) { deriveReplaced(d, "aten.select_scatter.default", "aten.select.int"); },
     .lower = lowerSelectScatter,
     .samples =
         "f32[4, 5], f32[5], 0, 1\nf32[4, 5], f32[4], 1, -1\nf32[4, 5][1, 4], f32[5], 0, 0\ni64[3], i64[], 0, 2"},
    {.schema =
         "aten.slice_scatter.default(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
     .infer = [](const InferContext& c) { return inferReplaced(c, "aten.slice.Tensor"); },
     .eval = [](const EvalContext& c) { return evalReplaced(c, "aten.slice.Tensor"); },
     .derive = [](Derivation& d) { deriveReplaced(d, "aten.slice_scatter.default", "aten.slice.Tensor"); },
     .lower = lowerSliceScatter,
     .samples =
         "f32[5, 3], f32[2, 3], 0, 1, 3\nf32[5, 3], f32[5, 2], 1, -2\nf32[6, 3], f32[3, 3], 0, 0, 6, 2\nf32[5, 3][1, 5], f32[5, 3]\ni64[5], i64[2], 0, 1, 5, 2"},
    {.schema = "aten.diagonal_scatter.default(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
     .infer = [](const InferContext& c) { return inferReplaced(c, "aten.diagonal.default"); },
     .eval = [](const EvalContext& c) { return evalReplaced(c, "aten.diagonal.default"); },
     .derive = [](Derivation& d) { deriveReplaced(d, "aten.diagonal_scatter.default", "aten.diagonal.default"); },
     .samples = "f32[3, 4], f32[3]\nf32[3, 4], f32[2], -1\nf32[2, 3, 4], f32[2, 3], 0, 1, 2"},
    // The replaced part is given by size, stride and offset in the copy, which keeps self's strides.
    {.schema =
         "aten.as_strided_scatter.default(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const SymDims sizes, c.sizes("size"));
         CT_TRY(const SymDims strides, c.sizes("stride"));
         for (size_t d = 0; d < std::min(sizes.size(), strides.size()); ++d)
             if (strides[d] == SymInt(0) && sizes[d].isInt() && sizes[d].value() > 1)
                 return c.fail("several elements of what is replaced are one place in memory");
         return inferReplaced(c, "aten.as_strided.default");
     },
     .eval = [](const EvalContext& c) { return evalReplaced(c, "aten.as_strided.default"); },
     .derive = [](Derivation& d) { deriveReplaced(d, "aten.as_strided_scatter.default", "aten.as_strided.default"); },
     .samples = "f32[12], f32[2, 3], [2, 3], [6, 1]\nf32[3, 4], f32[2, 2], [2, 2], [4, 2], 1"},
    {.schema =
         "aten.select_backward.default(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
     .infer = [](const InferContext& c) { return inferViewGradient(c, "aten.select.int"); },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return intoZeros(d, "aten.select_scatter.default"); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.select.int", {d.dy(), d.arg("dim"), d.arg("index")});
         },
     .samples = "f32[3], [4, 3], 0, 1\nf32[4], [4, 3], -1, -1"},
    {.schema =
         "aten.slice_backward.default(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> Tensor",
     .infer = [](const InferContext& c) { return inferViewGradient(c, "aten.slice.Tensor"); },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return intoZeros(d, "aten.slice_scatter.default"); },
     .derive =
         [](Derivation& d) {
             d.input(0) =
                 d.call("aten.slice.Tensor", {d.dy(), d.arg("dim"), d.arg("start"), d.arg("end"), d.arg("step")});
         },
     .samples = "f32[2, 3], [4, 3], 0, 1, 3, 1\nf32[4, 2], [4, 3], 1, 0, 9223372036854775807, 2"},
    {.schema =
         "aten.diagonal_backward.default(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
     .infer = [](const InferContext& c) { return inferViewGradient(c, "aten.diagonal.default"); },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return intoZeros(d, "aten.diagonal_scatter.default"); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.diagonal.default", {d.dy(), d.arg("offset"), d.arg("dim1"), d.arg("dim2")});
         },
     .samples = "f32[3], [4, 3], 0, 1, 0\nf32[2], [3, 4], -1, 0, 1"},
    {.schema =
         "aten.unfold_backward.default(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
     .infer = [](const InferContext& c) { return inferViewGradient(c, "aten.unfold.default"); },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeUnfoldBackward,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.unfold.default", {d.dy(), d.arg("dim"), d.arg("size"), d.arg("step")});
         },
     .samples = "f32[3, 3], [7], 0, 3, 2\nf32[2, 4, 3], [2, 6], 1, 3, 1"},
};

}  // namespace

std::span<const OpDef> viewScatterOps() { return kViewScatterOps; }

}  // namespace cutaway
