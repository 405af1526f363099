// Views of a part of a tensor: select, slice, diagonal, unfold, as_strided. Lists of parts stand in view_split.cpp.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/view_rules.h"

namespace cutaway {
namespace {

Result<ValueType> inferSlice(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (self.rank() == 0) return c.fail("a 0-d tensor cannot be sliced");
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    const auto at = static_cast<size_t>(dim);
    CT_TRY(const SliceBounds bounds, sliceBounds(c, self.sizes[at]));
    TensorType type = partOf(self, dim, bounds.start, bounds.length);
    type.strides[at] = self.strides[at] * SymInt(bounds.step);
    return ValueType(std::move(type));
}

Result<ValueType> inferSelect(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (self.rank() == 0) return c.fail("a 0-d tensor has no dim to select from");
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    CT_TRY(const SymInt given, c.size("index"));
    CT_TRY(const SymInt index, wrapIndex(c, given, self.sizes[static_cast<size_t>(dim)]));
    TensorType type = partOf(self, dim, index, 1);
    type.sizes.erase(type.sizes.begin() + dim);
    type.strides.erase(type.strides.begin() + dim);
    return ValueType(std::move(type));
}

Expr lowerSlice(LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    const auto dim = static_cast<size_t>(c.dimOf("dim", self.rank()));
    auto bounds = sliceBounds(c, self.sizes[dim]);
    if (!bounds) return Expr();
    std::vector<Expr> at = c.index();
    at[dim] = Expr::make(ExprKind::Add,
                         {Expr::make(ExprKind::Mul, {at[dim], Expr::integer(bounds->step)}), bounds->start.expr()});
    return c.loadAt(0, at);
}

Expr lowerSelect(LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    const int64_t dim = c.dimOf("dim", self.rank());
    auto given = c.size("index");
    if (!given) return Expr();
    auto index = wrapIndex(c, *given, self.sizes[static_cast<size_t>(dim)]);
    if (!index) return Expr();
    std::vector<Expr> at = c.index();
    at.insert(at.begin() + dim, index->expr());
    return c.loadAt(0, at);
}

Expr lowerDiagonal(LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    const int64_t first = c.dimOf("dim1", self.rank()), second = c.dimOf("dim2", self.rank());
    const int64_t offset = c.integerOr("offset", 0);
    std::vector<Expr> at;
    size_t next = 0;
    const Expr along = c.index().back();
    for (int64_t i = 0; i < self.rank(); ++i) {
        if (i == first) at.push_back(along + Expr::integer(std::max<int64_t>(-offset, 0)));
        else if (i == second) at.push_back(along + Expr::integer(std::max<int64_t>(offset, 0)));
        else at.push_back(c.index()[next++]);
    }
    return c.loadAt(0, at);
}

Result<ValueType> inferUnfold(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const int64_t dim, c.dim("dimension", self.rank()));
    CT_TRY(const int64_t size, c.integer("size"));
    CT_TRY(const int64_t step, c.integer("step"));
    if (step <= 0) return c.fail("step must be positive");
    SymDims sizes = self.sizes, strides = self.strides;
    const SymInt whole = self.rank() == 0 ? SymInt(1) : sizes[static_cast<size_t>(dim)];
    const SymInt stride = self.rank() == 0 ? SymInt(1) : strides[static_cast<size_t>(dim)];
    if (size < 0 || exceeds(size, whole))
        return c.fail("a window of " + std::to_string(size) + " does not fit a dim of size " + whole.text());
    if (self.rank() > 0) {
        sizes[static_cast<size_t>(dim)] = floorDiv(whole - SymInt(size), SymInt(step)) + SymInt(1);
        strides[static_cast<size_t>(dim)] = stride * SymInt(step);
    }
    sizes.push_back(size);
    strides.push_back(stride);
    return ValueType(viewType(self, std::move(sizes), std::move(strides), self.offset));
}

Values decomposeNarrow(Decomposition& d) {
    const Value self = d.in(0);
    auto dim = d.dim("dim", self.rank());
    auto given = d.size("start"), length = d.size("length");
    if (!dim || !given || !length || self.rank() == 0) {
        d.builder().fail(!dim      ? dim.error()
                         : !given  ? given.error()
                         : !length ? length.error()
                                   : d.fail("a 0-d tensor cannot be narrowed"));
        return self;
    }
    const SymInt size = self.size(*dim);
    const SymInt start = given->isInt() && given->value() < 0 ? *given + size : *given;
    const SymInt end = start + *length;
    if (exceeds(0, *length) || exceeds(0, start) || exceeds(end, size))
        d.builder().fail(d.fail("start " + given->text() + " and length " + length->text() + " exceed the dim's size " +
                                size.text()));
    return d.call("aten.slice.Tensor", {self, d.arg("dim"), Argument(start), Argument(end)});
}

/// The gradient is scattered (added up, where elements overlap) into the storage that both geometries look at, and read
/// back through the operand's geometry.
void deriveStrided(Derivation& d) {
    const TensorType in = d.in(0).type(), out = d.out().type();
    if (mayOverlap(in))
        return d.builder().fail(unsupported("as_strided of a tensor whose elements overlap has no derivative",
                                            d.node().name(), {"clone() it first"}));
    const SymInt shared = min(in.offset, out.offset);
    const SymInt inOffset = in.offset - shared, outOffset = out.offset - shared;
    const SymInt size = max(extentOf(in) + inOffset, extentOf(out) + outOffset);
    const auto strided = [&](const Value& x, const TensorType& as, const SymInt& offset) {
        return d.call("aten.as_strided.default", {x, Argument(as.sizes), Argument(as.strides), Argument(offset)});
    };
    Value storage = full(d.builder(), {size}, Scalar(int64_t{0}), out.dtype, out.device);
    if (mayOverlap(out)) {
        const Value positions = d.call(
            "prims.iota.default", {Argument(size)},
            {{"start", 0}, {"step", 1}, {"dtype", DType::I64}, {"device", out.device}, {"requires_grad", false}});
        const SymDims flat = {numel(out.sizes)};
        const Value at = reshape(strided(positions, out, outOffset), flat);
        storage = d.call("aten.index_add.default", {storage, 0, at, reshape(d.dy(), flat)});
    } else {
        const Value written = d.call("aten.copy.default", {strided(storage, out, outOffset), d.dy()});
        storage = d.call("aten.as_strided_scatter.default",
                         {storage, written, Argument(out.sizes), Argument(out.strides), Argument(outOffset)});
    }
    d.input(0) = strided(storage, in, inOffset);
}

constexpr OpDef kViewSliceOps[] = {
    // The element at `index` of one dim, which goes away. A negative index counts from the end.
    {.schema = "aten.select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
     .tags = Tag::View,
     .infer = inferSelect,
     .eval = evalView,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.select_backward.default",
                                 {d.dy(), Argument(d.in(0).sizes()), d.arg("dim"), d.arg("index")});
         },
     .lower = lowerSelect,
     .samples = "f32[2, 3, 4], 1, 2\nf32[2, 3], -1, -1\ni64[4], 0, 0\nf32[2, 3][1, 2], 0, 1\nbf16[2, 0], 0, 1"},
    // start:end:step of one dim, by Python's rules.
    {.schema =
         "aten.slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
     .tags = Tag::View,
     .infer = inferSlice,
     .eval = evalView,
     .derive =
         [](Derivation& d) {
             const SymInt size = d.in(0).size(d.dimOf("dim", d.in(0).rank()));
             const auto bound = [&](std::string_view param, const SymInt& fallback) {
                 return d.has(param) ? d.arg(param) : Argument(fallback);
             };
             d.input(0) = d.call("aten.slice_backward.default", {d.dy(), Argument(d.in(0).sizes()), d.arg("dim"),
                                                                 bound("start", 0), bound("end", size), d.arg("step")});
         },
     .lower = lowerSlice,
     .samples = R"(
f32[5, 3]
f32[5, 3], 0, 1, 4
f32[5, 3], 1, -2
f32[5, 3], 0, 0, 9223372036854775807, 2
f32[5, 3], 0, 1, 5, 3
f32[5, 3], 0, 3, 2
f32[5, 3], 0, -100, 100
i64[6][2], 0, 1, 5, 2
b8[0, 3], 0, 0, 2
)"},
    {.schema = "aten.narrow.default(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeNarrow,
     .samples = "f32[7, 3], 0, 1, 2\nf32[7, 3], 1, -1, 1\nf32[7, 3], -1, 0, 0"},
    // The diagonal of dims dim1 and dim2, as a new last dim.
    {.schema = "aten.diagonal.default(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
     .tags = Tag::View,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         CT_TRY(TensorType type, diagonalType(c, self));
         return ValueType(std::move(type));
     },
     .eval = evalView,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.diagonal_backward.default",
                                 {d.dy(), Argument(d.in(0).sizes()), d.arg("offset"), d.arg("dim1"), d.arg("dim2")});
         },
     .lower = lowerDiagonal,
     .samples =
         "f32[3, 4]\nf32[3, 4], 1\nf32[3, 4], -2\nf32[2, 3, 4], 0, 1, -1\nf32[2, 3, 4], 0, 2, 0\nf32[3, 4], 5\ni64[4, 4][1, 4], 1"},
    // Windows of `size`, `step` apart, along one dim; the window is a new last dim.
    {.schema = "aten.unfold.default(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
     .tags = Tag::View,
     .infer = inferUnfold,
     .eval = evalView,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.unfold_backward.default",
                                 {d.dy(), Argument(d.in(0).sizes()), d.arg("dimension"), d.arg("size"), d.arg("step")});
         },
     .lower =
         [](LowerContext& c) {
             const int64_t rank = c.in(size_t{0}).rank();
             if (rank == 0) return c.loadAt(0, {});
             std::vector<Expr> at(c.index().begin(), c.index().end() - 1);
             Expr& moving = at[static_cast<size_t>(c.dimOf("dimension", rank))];
             moving = moving * Expr::integer(c.integerOr("step", 1)) + c.index().back();
             return c.loadAt(0, at);
         },
     .samples = "f32[7], 0, 3, 2\nf32[3, 7], 1, 3, 1\nf32[3, 7], 0, 2, 1\nf32[], 0, 1, 1\ni64[6, 2], -2, 6, 4"},
    // Any view of the operand's storage. The offset counts from the start of the storage, not from the operand.
    {.schema =
         "aten.as_strided.default(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
     .tags = Tag::View | Tag::Inplace,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         CT_TRY(TensorType type, stridedType(c, self));
         return ValueType(std::move(type));
     },
     .eval = evalView,
     .derive = deriveStrided,
     .samples =
         "f32[12], [3, 4], [4, 1]\nf32[12], [3, 4], [1, 3]\nf32[12], [2, 2], [3, 1], 4\nf32[3, 4], [5], [2]\nf32[4], [2, 4], [0, 1]\ni64[6], [0], [1]"},
};

}  // namespace

std::span<const OpDef> sliceOps() { return kViewSliceOps; }

}  // namespace cutaway
