// Views of a part of a tensor: select, slice, split, diagonal, unfold, as_strided.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/view_rules.h"

namespace cutaway {
namespace {

/// The operand between start and start + size along one dim.
TensorType partOf(const TensorType& self, int64_t dim, const SymInt& start, const SymInt& size) {
    const auto at = static_cast<size_t>(dim);
    SymDims sizes = self.sizes;
    sizes[at] = size;
    return viewType(self, std::move(sizes), self.strides, self.offset + start * self.strides[at]);
}

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

/// Tuple of consecutive parts of the given sizes.
Result<ValueType> splitInto(const InferContext& c, const TensorType& self, int64_t dim, const SymDims& sizes) {
    SymInt start = 0;
    TupleType parts;
    for (const SymInt& size : sizes) {
        if (size.isInt() && size.value() < 0) return c.fail("negative split size " + size.text());
        parts.push_back(partOf(self, dim, start, size));
        start = start + size;
    }
    const SymInt& whole = self.sizes[static_cast<size_t>(dim)];
    if (start.isInt() && whole.isInt() && start.value() != whole.value())
        return c.fail("the split sizes add up to " + start.text() + ", the dim has " + whole.text());
    return ValueType(std::move(parts));
}

/// Sizes of pieces of at most `size`; the last may be smaller. A dim of size 0 gives one empty piece.
Result<SymDims> pieceSizes(const InferContext& c, const SymInt& whole, const SymInt& piece) {
    if (!whole.isInt() || !piece.isInt()) {
        // How many there are is known where the piece is a part of the whole.
        const auto count = piece == SymInt(0) ? std::nullopt : floorDiv(whole, piece).asInt();
        if (!count || !(piece * SymInt(*count) == whole))
            return unsupported(c.op().name() + ": the number of pieces depends on a symbolic size", {},
                               {"set the sizes of the inputs"});
        CT_TRY_VOID(checkPieces(c, *count));
        return SymDims(static_cast<size_t>(*count), piece);
    }
    const int64_t size = piece.value();
    if (size < 0 || (size == 0 && whole.value() != 0))
        return c.fail("split size " + std::to_string(size) + " is not positive");
    if (whole.value() == 0) return SymDims{SymInt(0)};
    SymDims sizes;
    CT_TRY_VOID(checkPieces(c, whole.value() / size));
    for (int64_t left = whole.value(); left > 0; left -= size) {
        sizes.push_back(std::min(size, left));
        if (left <= size) break;
    }
    return sizes;
}

Result<ValueType> inferSplit(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (self.rank() == 0) return c.fail("a 0-d tensor cannot be split");
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    CT_TRY(const SymInt size, c.size("split_size"));
    CT_TRY(const SymDims sizes, pieceSizes(c, self.sizes[static_cast<size_t>(dim)], size));
    return splitInto(c, self, dim, sizes);
}
Result<ValueType> inferSplitSizes(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (self.rank() == 0) return c.fail("a 0-d tensor cannot be split");
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    CT_TRY(const SymDims sizes, c.sizes("split_sizes"));
    return splitInto(c, self, dim, sizes);
}

/// Gradient of a split: the parts' gradients side by side, zeros for parts that nobody read.
void deriveSplit(Derivation& d) {
    std::vector<Argument> parts;
    const TupleType& types = *d.outType().tuple();
    for (size_t i = 0; i < types.size(); ++i) {
        const TensorType& type = *types[i].tensor();
        const Value gradient =
            d.dy(i) ? d.dy(i) : full(d.builder(), type.sizes, Scalar(int64_t{0}), type.dtype, type.device);
        parts.push_back(gradient);
    }
    d.input(0) = d.call("aten.cat.default", {Argument(std::move(parts)), d.dimOf("dim", d.in(0).rank())});
}

Expr lowerSplit(LowerContext& c) {
    const int64_t dim = c.dimOf("dim", c.in(size_t{0}).rank());
    SymInt start = 0;
    for (size_t i = 0; i < c.resultNumber(); ++i) start = start + c.out(i).sizes[static_cast<size_t>(dim)];
    std::vector<Expr> at = c.index();
    at[static_cast<size_t>(dim)] = at[static_cast<size_t>(dim)] + start.expr();
    return c.loadAt(0, at);
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
    if (size < 0 || (whole.isInt() && size > whole.value()))
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
    if ((length->isInt() && length->value() < 0) ||
        (end.isInt() && size.isInt() && (start.value() < 0 || end.value() > size.value())))
        d.builder().fail(d.fail("start " + given->text() + " and length " + length->text() + " exceed the dim's size " +
                                size.text()));
    return d.call("aten.slice.Tensor", {self, d.arg("dim"), Argument(start), Argument(end)});
}

/// As many pieces as asked for: fewer come of a size below (chunks - 1)^2, of which a graph that reads them all is no
/// graph.
Values symbolicChunks(Decomposition& d, const Value& self, int64_t dim, const SymInt& size, int64_t chunks) {
    if (auto few = checkPieces(d, chunks); !few) {
        d.builder().fail(std::move(few).error());
        return std::vector<Value>();
    }
    const bool safe = d.op().baseName() == "chunk";
    const SymInt piece = floorDiv(size + SymInt(chunks - 1), SymInt(chunks));
    if (piece * SymInt(chunks) == size)
        return itemsOf(d.call(safe ? "aten.split.Tensor" : "aten.unsafe_split.Tensor", {self, Argument(piece), dim}));
    SymDims sizes(static_cast<size_t>(chunks), piece);
    sizes.back() = size - piece * SymInt(chunks - 1);
    return itemsOf(d.call(safe ? "aten.split_with_sizes.default" : "aten.unsafe_split_with_sizes.default",
                          {self, Argument(sizes), dim}));
}
/// chunk is a split into pieces of the rounded-up size; a dim of size 0 still gives that many (empty) pieces.
Values decomposeChunk(Decomposition& d) {
    const Value self = d.in(0);
    auto dim = d.dim("dim", self.rank());
    auto chunks = d.integer("chunks");
    const SymInt size = dim && self.rank() > 0 ? self.size(*dim) : SymInt(0);
    if (!dim || !chunks || *chunks <= 0 || self.rank() == 0) {
        d.builder().fail(!dim      ? dim.error()
                         : !chunks ? chunks.error()
                                   : d.fail("needs a positive number of chunks and a dim"));
        return std::vector<Value>();
    }
    if (!size.isInt()) return symbolicChunks(d, self, *dim, size, *chunks);
    const int64_t piece = size.value() / *chunks + (size.value() % *chunks != 0);
    const bool safe = d.op().baseName() == "chunk";
    if (piece == 0) {
        if (auto few = checkPieces(d, *chunks); !few) {
            d.builder().fail(std::move(few).error());
            return std::vector<Value>();
        }
        const SymDims sizes(static_cast<size_t>(*chunks), SymInt(0));
        return itemsOf(d.call(safe ? "aten.split_with_sizes.default" : "aten.unsafe_split_with_sizes.default",
                              {self, Argument(sizes), *dim}));
    }
    return itemsOf(d.call(safe ? "aten.split.Tensor" : "aten.unsafe_split.Tensor", {self, piece, d.arg("dim")}));
}

/// tensor_split: the first size % sections pieces are one longer.
Values decomposeTensorSplit(Decomposition& d) {
    const Value self = d.in(0);
    auto dim = d.dim("dim", self.rank());
    auto sections = d.integer("sections");
    const SymInt size = dim && self.rank() > 0 ? self.size(*dim) : SymInt(0);
    if (!dim || !sections || *sections <= 0 || self.rank() == 0) {
        d.builder().fail(!dim        ? dim.error()
                         : !sections ? sections.error()
                                     : d.fail("needs a positive number of sections and a dim"));
        return std::vector<Value>();
    }
    std::vector<Value> parts;
    SymInt start = 0;
    if (auto few = checkPieces(d, *sections); !few) {
        d.builder().fail(std::move(few).error());
        return parts;
    }
    for (int64_t i = 0; i < *sections; ++i) {
        // The longer ones come first: one more for each of what a division leaves.
        const SymInt end = start + floorDiv(size + SymInt(*sections - 1 - i), SymInt(*sections));
        parts.push_back(d.call("aten.slice.Tensor", {self, *dim, Argument(start), Argument(end)}));
        start = end;
    }
    return parts;
}

constexpr std::string_view kSplitSamples =
    "f32[7, 3], 3\nf32[2, 6], 2, 1\nf32[2, 6], 6, -1\ni64[0, 3], 2\nf32[4, 6][1, 4], 4, 1";
constexpr std::string_view kSizesSamples =
    "f32[7, 3], [3, 4]\nf32[2, 6], [1, 2, 3], 1\ni64[5], [0, 5]\nf32[4, 6][1, 4], [2, 2]";

/// Number of elements from the first to the last that a geometry reaches; 0 if it is empty.
SymInt extentOf(const TensorType& type) {
    SymInt last = 0;
    for (size_t i = 0; i < type.sizes.size(); ++i) {
        if (type.sizes[i] == SymInt(0)) return 0;
        last = last + (type.sizes[i] - SymInt(1)) * type.strides[i];
    }
    return last + SymInt(1);
}
/// Whether two indices may reach the same element, by PyTorch's sufficient test: strides that nest cannot. Symbols of
/// which the order is not known may.
bool mayOverlap(const TensorType& type) {
    std::vector<std::pair<SymInt, SymInt>> dims;  // stride, size, the smallest stride first
    for (size_t i = 0; i < type.sizes.size(); ++i) {
        if (type.sizes[i] == SymInt(1)) continue;
        const auto at = std::find_if(dims.begin(), dims.end(),
                                     [&](const auto& dim) { return !knownLessEqual(dim.first, type.strides[i]); });
        dims.emplace(at, type.strides[i], type.sizes[i]);
    }
    SymInt reached = 0;
    for (const auto& [stride, size] : dims) {
        if (!knownLessEqual(reached + SymInt(1), stride)) return true;
        reached = reached + stride * (size - SymInt(1));
    }
    return false;
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

constexpr OpDef kOps[] = {
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
    // Pieces of split_size along a dim; the last may be smaller.
    {.schema = "aten.split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
     .tags = Tag::View,
     .infer = inferSplit,
     .eval = evalViews,
     .derive = deriveSplit,
     .lower = lowerSplit,
     .samples = kSplitSamples},
    {.schema = "aten.split_with_sizes.default(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
     .tags = Tag::View,
     .infer = inferSplitSizes,
     .eval = evalViews,
     .derive = deriveSplit,
     .lower = lowerSplit,
     .samples = kSizesSamples},
    {.schema = "aten.split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return itemsOf(d.call("aten.split_with_sizes.default", {d.in(0), d.arg(1), d.arg(2)}));
     },
     .samples = kSizesSamples},
    // Splits whose pieces promise not to be written through.
    {.schema = "aten.unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
     .infer = inferSplit,
     .eval = evalViews,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return itemsOf(d.call("aten.split.Tensor", {d.in(0), d.arg(1), d.arg(2)}));
     },
     .derive = deriveSplit,
     .lower = lowerSplit,
     .samples = kSplitSamples},
    {.schema = "aten.unsafe_split_with_sizes.default(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
     .infer = inferSplitSizes,
     .eval = evalViews,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return itemsOf(d.call("aten.split_with_sizes.default", {d.in(0), d.arg(1), d.arg(2)}));
     },
     .derive = deriveSplit,
     .lower = lowerSplit,
     .samples = kSizesSamples},
    {.schema = "aten.chunk.default(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeChunk,
     .samples = "f32[7, 3], 3\nf32[2, 6], 2, -1\nf32[0, 3], 2\nf32[2], 5"},
    {.schema = "aten.unsafe_chunk.default(Tensor self, int chunks, int dim=0) -> Tensor[]",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeChunk,
     .samples = "f32[7, 3], 3\nf32[2, 6], 2, -1"},
    {.schema = "aten.tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeTensorSplit,
     .samples = "f32[7, 3], 3\nf32[2, 6], 4, -1\nf32[2], 3"},
    // The elements of one dim, each a tensor without that dim.
    {.schema = "aten.unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
     .tags = Tag::View,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         if (self.rank() == 0) return c.fail("a 0-d tensor has no dim to take apart");
         CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
         const SymInt size = self.sizes[static_cast<size_t>(dim)];
         if (!size.isInt())
             return unsupported(c.op().name() + ": the number of results depends on a symbolic size", {},
                                {"set the sizes of the inputs"});
         CT_TRY_VOID(checkPieces(c, size.value()));
         TupleType items;
         for (int64_t i = 0; i < size.value(); ++i) {
             TensorType item = partOf(self, dim, i, 1);
             item.sizes.erase(item.sizes.begin() + dim);
             item.strides.erase(item.strides.begin() + dim);
             items.push_back(std::move(item));
         }
         return ValueType(std::move(items));
     },
     .eval = evalViews,
     .derive =
         [](Derivation& d) {
             std::vector<Argument> parts;
             const TupleType& types = *d.outType().tuple();
             for (size_t i = 0; i < types.size(); ++i) {
                 const TensorType& type = *types[i].tensor();
                 parts.push_back(d.dy(i) ? d.dy(i)
                                         : full(d.builder(), type.sizes, Scalar(int64_t{0}), type.dtype, type.device));
             }
             d.input(0) = d.call("aten.stack.default", {Argument(std::move(parts)), d.arg("dim")});
         },
     .lower =
         [](LowerContext& c) {
             std::vector<Expr> at = c.index();
             at.insert(at.begin() + c.dimOf("dim", c.in(size_t{0}).rank()),
                       Expr::integer(static_cast<int64_t>(c.resultNumber())));
             return c.loadAt(0, at);
         },
     .samples = "f32[3, 4]\nf32[3, 4], 1\ni64[2, 0, 2], -1\nf32[4, 2][1, 4], 0"},
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

std::span<const OpDef> sliceOps() { return kOps; }

}  // namespace cutaway
