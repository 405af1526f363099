// Views that are lists: a dim cut into pieces (split, chunk) or into its elements (unbind).
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/ops/view_rules.h"

namespace cutaway {
namespace {

/// Tuple of consecutive parts of the given sizes.
Result<ValueType> splitInto(const InferContext& c, const TensorType& self, int64_t dim, const SymDims& sizes) {
    SymInt start = 0;
    TupleType parts;
    for (const SymInt& size : sizes) {
        if (exceeds(0, size)) return c.fail("negative split size " + size.text());
        parts.push_back(partOf(self, dim, start, size));
        start = start + size;
    }
    const SymInt& whole = self.sizes[static_cast<size_t>(dim)];
    if (differ(start, whole))
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

/// A symbolic size gives as many pieces as asked for. Fewer come only of sizes below (chunks - 1)^2, and a graph that
/// reads all pieces was not traced with such a size.
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
        // floor((size + sections - 1 - i) / sections) is one more for the first size % sections pieces.
        const SymInt end = start + floorDiv(size + SymInt(*sections - 1 - i), SymInt(*sections));
        parts.push_back(d.call("aten.slice.Tensor", {self, *dim, Argument(start), Argument(end)}));
        start = end;
    }
    return parts;
}

/// The parts that numbers in a tensor ask for: as many as a single number says, or cut at each of several.
EvalResult evalSplitByTensor(const EvalContext& c) {
    const Tensor self = c.in(size_t{0}), given = c.in(1);
    if (given.dtype() != DType::I64 || given.rank() > 1) return c.fail("needs int64 numbers in at most one dim");
    if (self.rank() == 0) return c.fail("needs a tensor of at least one dim");
    const int64_t dim = c.dimOf("dim", self.rank()), size = self.size(dim);
    const std::vector<int64_t> numbers = packElements<int64_t>(given);
    std::vector<int64_t> ends;
    if (given.rank() == 0) {
        const int64_t sections = numbers[0];
        if (sections < 1) return c.fail("needs at least one section, not " + std::to_string(sections));
        CT_TRY_VOID(checkPieces(c, sections));
        for (int64_t i = 0; i < sections; ++i)
            ends.push_back((i + 1) * (size / sections) + std::min(i + 1, size % sections));
    } else {
        ends = numbers;
        ends.push_back(size);
    }
    TensorList parts;
    int64_t start = 0;
    const auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    for (const int64_t end : ends) {
        Dims sizes = self.sizes();
        sizes[static_cast<size_t>(dim)] = std::max<int64_t>(place(end) - place(start), 0);
        parts.push_back(self.view(sizes, self.strides(), self.offset() + place(start) * self.stride(dim)));
        start = end;
    }
    return parts;
}

constexpr std::string_view kSplitSamples =
    "f32[7, 3], 3\nf32[2, 6], 2, 1\nf32[2, 6], 6, -1\ni64[0, 3], 2\nf32[4, 6][1, 4], 4, 1";
constexpr std::string_view kSizesSamples =
    "f32[7, 3], [3, 4]\nf32[2, 6], [1, 2, 3], 1\ni64[5], [0, 5]\nf32[4, 6][1, 4], [2, 2]";

constexpr OpDef kViewSplitOps[] = {
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
    {.schema =
         "aten.tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
     .tags = Tag::View | Tag::DataDependent,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         return unsupported(c.op().name() + ": the sizes of the parts depend on the values", {},
                            {"give sections or indices as numbers, or annotate the results with symbols (u0, u1)"});
     },
     .eval = evalSplitByTensor},
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
};

}  // namespace

std::span<const OpDef> splitOps() { return kViewSplitOps; }

}  // namespace cutaway
