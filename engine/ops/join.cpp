// Shorthands that join, split and broadcast tensors: hstack and its kin, tensor_split, meshgrid, diff, block_diag.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/view_rules.h"

namespace cutaway {
namespace {

/// At least `rank` dims, added as numpy adds them: before a vector's dim, and behind a matrix for the third.
Value atLeast(const Value& x, int64_t rank) {
    if (x.rank() >= rank) return x;
    if (x.rank() == 0) return reshape(x, SymDims(static_cast<size_t>(rank), SymInt(1)));
    if (x.rank() == 2) return unsqueeze(x, -1);
    const Value row = unsqueeze(x, 0);
    return rank == 2 ? row : unsqueeze(row, -1);
}
std::vector<Value> allAtLeast(std::vector<Value> tensors, int64_t rank) {
    for (Value& x : tensors) x = atLeast(x, rank);
    return tensors;
}
/// The tensors of a list; empty lists are refused.
std::vector<Value> tensorsOf(Decomposition& d, std::string_view param = "tensors") {
    auto types = read(d, d.tensors(param));
    if (types && types->empty()) d.builder().fail(d.fail("needs at least one tensor"));
    return types && !types->empty() ? d.list(param) : std::vector<Value>();
}
Values joined(Decomposition& d, const std::vector<Value>& tensors, int64_t dim) {
    return tensors.empty() ? Value(d.builder(), nullptr) : cat(d.builder(), tensors, dim);
}
Values sameAs(Decomposition& d, std::string_view op) { return d.call(op, {d.arg("tensors"), d.arg("dim")}); }

template <int64_t Rank, int64_t Dim>
Values decomposeStacked(Decomposition& d) {
    return joined(d, allAtLeast(tensorsOf(d), Rank), Dim);
}
Values decomposeHstack(Decomposition& d) {
    const std::vector<Value> tensors = allAtLeast(tensorsOf(d), 1);
    return joined(d, tensors, !tensors.empty() && tensors[0].rank() == 1 ? 0 : 1);
}
Values decomposeColumnStack(Decomposition& d) {
    std::vector<Value> tensors = tensorsOf(d);
    for (Value& x : tensors)
        if (x.rank() <= 1) x = reshape(x, {numel(x.sizes()), SymInt(1)});
    return joined(d, tensors, 1);
}

// -- pieces along a dim

Values pieces(Decomposition& d, int64_t dim, const std::vector<SymInt>& bounds) {
    std::vector<Value> parts;
    SymInt start = 0;
    for (const SymInt& end : bounds) {
        parts.push_back(d.call("aten.slice.Tensor", {d.in(0), dim, Argument(start), Argument(end)}));
        start = end;
    }
    parts.push_back(d.call("aten.slice.Tensor", {d.in(0), dim, Argument(start), Argument(d.in(0).size(dim))}));
    return parts;
}
Values decomposeSplitAt(Decomposition& d, std::optional<int64_t> dim) {
    const auto indices = read(d, d.sizes("indices"));
    if (!indices || !dim) return std::vector<Value>();
    if (d.in(0).rank() == 0) return refuse(d, "a 0-d tensor cannot be split");
    return pieces(d, *dim, *indices);
}
Values decomposeSections(Decomposition& d, int64_t dim) {
    const auto sections = read(d, d.integer("sections"));
    if (!sections) return std::vector<Value>();
    const SymInt size = d.in(0).size(dim);
    // A size that is known at run time only was divided evenly when it was traced.
    if (*sections <= 0 || leavesRemainder(size, *sections))
        return refuse(
            d, "the dim's size " + size.text() + " does not divide into " + std::to_string(*sections) + " sections");
    if (const auto few = checkPieces(d, *sections); !few) {
        d.builder().fail(few.error());
        return std::vector<Value>();
    }
    std::vector<SymInt> bounds;
    for (int64_t i = 1; i < *sections; ++i) bounds.push_back(floorDiv(size, SymInt(*sections)) * SymInt(i));
    return pieces(d, dim, bounds);
}
/// Each tensor cut into `num_chunks` pieces along the dim, the last filled up with zeros, and the pieces of all tensors
/// with the same number behind each other.
Values decomposeChunkCat(Decomposition& d) {
    const std::vector<Value> tensors = tensorsOf(d);
    const auto chunks = read(d, d.integer("num_chunks"));
    if (tensors.empty() || !chunks) return Value(d.builder(), nullptr);
    if (*chunks < 1) return refuse(d, "needs at least one chunk");
    int64_t dim = 0;
    std::vector<Value> parts;
    for (const Value& x : tensors) {
        const auto own = read(d, d.dim("dim", x.rank()));
        if (!own) return Value(d.builder(), nullptr);
        if (x.rank() == 0 || (!parts.empty() && *own != dim))
            return refuse(d, "the tensors have no such dim in common");
        if (numel(x.sizes()) == SymInt(0)) return refuse(d, "one of the tensors has no elements");
        if (x.dtype() != tensors[0].dtype()) return refuse(d, "the tensors differ in dtype");
        dim = *own;
        const SymInt size = x.size(dim), count = SymInt(*chunks);
        const SymInt length = floorDiv(size + count - SymInt(1), count), missing = length * count - size;
        Value whole = x;
        if (!(missing == SymInt(0))) {
            std::vector<Argument> pad(static_cast<size_t>(2 * (x.rank() - dim)), Argument(int64_t{0}));
            pad.back() = Argument(missing);
            whole = d.call("aten.constant_pad_nd.default", {x, Argument(pad), int64_t{0}});
        }
        SymDims sizes(x.sizes().begin(), x.sizes().begin() + dim);
        sizes.insert(sizes.end(), {count, SymInt(-1)});
        parts.push_back(reshape(whole, sizes));
    }
    return joined(d, parts, dim + 1);
}
/// hsplit splits the second dim (a vector's only one), vsplit the first of at least two, dsplit the third.
template <int64_t Rank, int64_t Dim, bool AtIndices>
Values decomposeNumpySplit(Decomposition& d) {
    const int64_t rank = d.in(0).rank();
    if (rank < Rank) return refuse(d, "needs at least " + std::to_string(Rank) + " dims");
    const int64_t dim = rank == 1 ? 0 : Dim;
    return AtIndices ? decomposeSplitAt(d, dim) : decomposeSections(d, dim);
}

// -- broadcasting

Values decomposeBroadcastTensors(Decomposition& d) {
    std::vector<Value> tensors = tensorsOf(d);
    std::vector<SymDims> shapes;
    for (const Value& x : tensors) shapes.push_back(x.sizes());
    const auto sizes = read(d, broadcastSizes(shapes));
    if (!sizes) return std::vector<Value>();
    for (Value& x : tensors)
        if (!(x.sizes() == *sizes)) x = expand(x, *sizes);
    return tensors;
}
Values decomposeMeshgrid(Decomposition& d, std::string_view indexing) {
    std::vector<Value> tensors = tensorsOf(d);
    if (indexing != "ij" && indexing != "xy")
        return refuse(d, "unknown indexing '" + std::string(indexing) + "'; ij and xy are known");
    const bool swapped = indexing == "xy" && tensors.size() >= 2;
    if (swapped) std::swap(tensors[0], tensors[1]);
    SymDims sizes;
    for (const Value& x : tensors) {
        if (x.rank() > 1) return refuse(d, "needs tensors of at most one dim");
        if (x.dtype() != tensors[0].dtype()) return refuse(d, "tensors of different dtypes");
        sizes.push_back(numel(x.sizes()));
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
        SymDims shape(sizes.size(), SymInt(1));
        shape[i] = -1;
        const Value value = view(tensors[i], shape);
        tensors[i] = expand(value, sizes);
    }
    if (swapped) std::swap(tensors[0], tensors[1]);
    return tensors;
}
/// All combinations, one per row.
Values decomposeCartesian(Decomposition& d) {
    const std::vector<Value> tensors = tensorsOf(d);
    for (const Value& x : tensors)
        if (x.rank() != 1) return refuse(d, "needs vectors");
    if (tensors.size() < 2) return tensors.empty() ? Value(d.builder(), nullptr) : tensors[0];
    const std::vector<Value> grids = itemsOf(d.call("aten.meshgrid.default", {d.arg("tensors")}));
    std::vector<Argument> columns;
    for (const Value& grid : grids) columns.push_back(d.call("aten.flatten.using_ints", {grid}));
    return d.call("aten.stack.default", {Argument(std::move(columns)), 1});
}

/// Each matrix between zeros, row block by row block.
Values decomposeBlockDiag(Decomposition& d) {
    std::vector<Value> tensors = tensorsOf(d);
    SymInt columns = 0, before = 0;
    for (Value& x : tensors) {
        if (x.rank() > 2) return refuse(d, "needs tensors of at most two dims");
        x = x.rank() < 2 ? d.call("aten.view.default", {x, Argument(std::vector<int64_t>{1, -1})}) : x;
        columns = columns + x.size(1);
    }
    std::vector<Value> rows;
    for (const Value& x : tensors) {
        const auto zeros = [&](const SymInt& width) {
            return full(d.builder(), {x.size(0), width}, Scalar(int64_t{0}), x.dtype(), x.type().device);
        };
        const Value left = zeros(before), right = zeros(columns - before - x.size(1));
        rows.push_back(cat(d.builder(), {left, x, right}, 1));
        before = before + x.size(1);
    }
    return joined(d, rows, 0);
}

/// Differences of neighbours, n times; bools differ where they are not equal.
Values decomposeDiff(Decomposition& d) {
    Value x = d.in(0);
    if (x.rank() == 0) return refuse(d, "a 0-d tensor has no neighbours to subtract");
    const auto wrapped = read(d, d.dim("dim", x.rank()));
    const auto times = read(d, d.integer("n", 1));
    if (!wrapped || !times) return Value(d.builder(), nullptr);
    if (*times < 0) return refuse(d, "n is negative");
    if (d.has("prepend") || d.has("append")) {
        std::vector<Value> parts;
        if (d.has("prepend")) parts.push_back(d.in("prepend"));
        parts.push_back(x);
        if (d.has("append")) parts.push_back(d.in("append"));
        x = d.call("aten.cat.default", {Argument(std::vector<Argument>(parts.begin(), parts.end())), d.arg("dim")});
    }
    if (*times == 0) return unary("aten.clone.default", x);
    for (int64_t i = 0; x && i < *times; ++i) {
        const SymInt size = x.size(*wrapped);
        if (size == SymInt(0)) break;
        const SymInt rest = size - SymInt(1);
        const Value first = d.call("aten.slice.Tensor", {x, d.arg("dim"), 0, Argument(rest)});
        const Value second = d.call("aten.slice.Tensor", {x, d.arg("dim"), 1, Argument(size)});
        x = x.dtype() == DType::Bool ? d.call("aten.logical_xor.default", {second, first}) : second - first;
    }
    return x;
}

constexpr std::string_view kStackSamples = R"(
[f32[2, 3], f32[2, 3]]
[f32[3], f32[3]]
[f32[], f32[]]
[f32[2, 3, 2], f32[2, 3, 2]]
[f32[2, 3], i64[2, 3]]
[bf16[3]]
)";
constexpr std::string_view kCatSamples = "[f32[2, 3], f32[4, 3]]\n[f32[2, 3], f32[2, 1]], -1\n[i64[2], f32[0], i64[3]]";

constexpr OpDef kJoinOps[] = {
    shorthand("aten._chunk_cat.default(Tensor[] tensors, int dim, int num_chunks) -> Tensor", decomposeChunkCat,
              "[f32[5, 2], f32[3, 4]], 0, 2\n[f64[2, 5], f64[2, 3, 2]], 1, 3\n[f32[4, 3], f32[2]], 0, 2"),
    shorthand(
        "aten.concat.default(Tensor[] tensors, int dim=0) -> Tensor",
        [](Decomposition& d) { return sameAs(d, "aten.cat.default"); }, kCatSamples),
    shorthand(
        "aten.concatenate.default(Tensor[] tensors, int dim=0) -> Tensor",
        [](Decomposition& d) { return sameAs(d, "aten.cat.default"); }, kCatSamples),
    shorthand("aten.hstack.default(Tensor[] tensors) -> Tensor", decomposeHstack, kStackSamples),
    shorthand("aten.vstack.default(Tensor[] tensors) -> Tensor", decomposeStacked<2, 0>, kStackSamples),
    shorthand("aten.row_stack.default(Tensor[] tensors) -> Tensor", decomposeStacked<2, 0>, kStackSamples),
    shorthand("aten.dstack.default(Tensor[] tensors) -> Tensor", decomposeStacked<3, 2>, kStackSamples),
    shorthand("aten.column_stack.default(Tensor[] tensors) -> Tensor", decomposeColumnStack, kStackSamples),
    shorthand(
        "aten.atleast_1d.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return atLeast(d.in(0), 1); }, "f32[]\nf32[3]"),
    shorthand(
        "aten.atleast_2d.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return atLeast(d.in(0), 2); }, "f32[]\ni64[3]\nf32[2, 3]"),
    shorthand(
        "aten.atleast_3d.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return atLeast(d.in(0), 3); }, "f32[]\nf32[3]\nb8[2, 3]\nf32[2, 3, 4]"),
    shorthand(
        "aten.atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]",
        [](Decomposition& d) -> Values { return allAtLeast(tensorsOf(d), 1); }, "[f32[], f32[3]]"),
    shorthand(
        "aten.atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]",
        [](Decomposition& d) -> Values { return allAtLeast(tensorsOf(d), 2); }, "[f32[], f32[3]]"),
    shorthand(
        "aten.atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]",
        [](Decomposition& d) -> Values { return allAtLeast(tensorsOf(d), 3); }, "[f32[], f32[3], f32[2, 3]]"),
    // Pieces that start at the given positions.
    shorthand(
        "aten.tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
        [](Decomposition& d) { return decomposeSplitAt(d, read(d, d.dim("dim", d.in(0).rank()))); },
        "f32[7, 3], [1, 4]\nf32[2, 6], [2], -1\nf32[5], [3, 2, 9]\nf32[5], []"),
    shorthand("aten.hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", decomposeNumpySplit<1, 1, false>,
              "f32[2, 6], 3\nf32[6], 2"),
    shorthand("aten.hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", decomposeNumpySplit<1, 1, true>,
              "f32[2, 6], [1, 3]\nf32[6], [2]"),
    shorthand("aten.vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", decomposeNumpySplit<2, 0, false>,
              "f32[4, 3], 2"),
    shorthand("aten.vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", decomposeNumpySplit<2, 0, true>,
              "f32[4, 3], [1]"),
    shorthand("aten.dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", decomposeNumpySplit<3, 2, false>,
              "f32[2, 3, 4], 2"),
    shorthand("aten.dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", decomposeNumpySplit<3, 2, true>,
              "f32[2, 3, 4], [1, 2]"),
    shorthand("aten.broadcast_tensors.default(Tensor[] tensors) -> Tensor[]", decomposeBroadcastTensors,
              "[f32[2, 1], f32[3]]\n[f32[2, 3], f32[2, 3]]\n[f32[], i64[2, 1, 3]]\n[f32[0, 1], f32[3]]"),
    // The coordinates of a grid, one tensor per axis.
    shorthand(
        "aten.meshgrid.default(Tensor[] tensors) -> Tensor[]",
        [](Decomposition& d) { return decomposeMeshgrid(d, "ij"); },
        "[f32[2], f32[3]]\n[i64[2], i64[], i64[4]]\n[f32[3]]\n[f32[0], f32[2]]"),
    shorthand(
        "aten.meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
        [](Decomposition& d) { return decomposeMeshgrid(d, d.text("indexing")); },
        "[f32[2], f32[3]], indexing='xy'\n[f32[2], f32[3]], indexing='ij'\n[f32[2], f32[3], f32[4]], indexing='xy'"),
    shorthand("aten.cartesian_prod.default(Tensor[] tensors) -> Tensor", decomposeCartesian,
              "[f32[2], f32[3]]\n[i64[2], i64[1], i64[3]]\n[f32[3]]"),
    shorthand("aten.block_diag.default(Tensor[] tensors) -> Tensor", decomposeBlockDiag,
              "[f32[2, 3], f32[3, 2]]\n[f32[2, 3], f32[2], f32[]]\n[f32[2, 3]]"),
    shorthand(
        "aten.diff.default(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
        decomposeDiff, R"(
f32[2, 5]
f32[2, 5], 2
f32[5, 2], 1, 0
f32[2, 5], 1, -1, f32[2, 1], f32[2, 2]
b8[2, 5]
i64[5]
f32[2, 3], 5
f32[0, 3], 1, 0
f64[2, 5][1, 2]
)"),
    // Calls that PyTorch's patterns make and the stage "lowering" decides (passes/lowering_calls.h), under the names
    // that FX prints for them. Their results have memory of their own, whatever becomes of the calls. This one: the
    // list concatenated along dim 1, then the first `size` columns of that once more.
    {.schema = "torch__inductor_fx_passes_post_grad_cat_slice_cat(Tensor[] cat_input, SymInt size) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose = [](Decomposition& d) -> Values {
         const Value whole = cat(d.builder(), d.list("cat_input"), 1);
         const Value beginning = d.call("aten.slice.Tensor", {whole, 1, 0, d.arg("size")});
         return cat(d.builder(), {whole, beginning}, 1);
     }},
    // A concatenation of all pieces of a split of the tensor.
    {.schema = "torch__inductor_fx_passes_post_grad_splitwithsizes_cat_replace(Tensor input_) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose = [](Decomposition& d) -> Values { return cat(d.builder(), {d.in("input_")}, 0); }},
    // The pieces of a split of their concatenation.
    {.schema = "torch__inductor_fx_passes_post_grad_cat_splitwithsizes_replace(Tensor[] input_) -> Tensor[]",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose = [](Decomposition& d) -> Values {
         std::vector<Value> items;
         for (const Value& item : d.list("input_")) items.push_back(unary("aten.clone.default", item));
         return items;
     }},
};

}  // namespace

std::span<const OpDef> joinOps() { return kJoinOps; }

}  // namespace cutaway
