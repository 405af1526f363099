// Views that reorder dims: permute, transpose and their kin.
#include <numeric>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/view_rules.h"

namespace cutaway {
namespace {

TensorType permutedType(const TensorType& self, const std::vector<int64_t>& order) {
    SymDims sizes, strides;
    for (int64_t dim : order) {
        sizes.push_back(self.sizes[static_cast<size_t>(dim)]);
        strides.push_back(self.strides[static_cast<size_t>(dim)]);
    }
    return viewType(self, std::move(sizes), std::move(strides), self.offset);
}

Expr lowerPermuted(LowerContext& c, const std::vector<int64_t>& order) {
    std::vector<Expr> at(order.size());
    for (size_t i = 0; i < order.size(); ++i) at[static_cast<size_t>(order[i])] = c.index()[i];
    return c.loadAt(0, at);
}

std::vector<int64_t> identity(int64_t rank) {
    std::vector<int64_t> order(static_cast<size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    return order;
}
std::vector<int64_t> swapped(int64_t rank, int64_t a, int64_t b) {
    std::vector<int64_t> order = identity(rank);
    if (rank > 0) std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
    return order;
}

Result<std::vector<int64_t>> swappedDims(const InferContext& c, int64_t rank, std::string_view first,
                                         std::string_view second) {
    CT_TRY(const int64_t a, c.dim(first, rank));
    CT_TRY(const int64_t b, c.dim(second, rank));
    return swapped(rank, a, b);
}

/// The order of dims after moving `source` to `destination`; the others keep theirs.
Result<std::vector<int64_t>> movedDims(const InferContext& c, int64_t rank) {
    CT_TRY(const std::vector<int64_t> source, c.dims("source", rank, false));
    CT_TRY(const std::vector<int64_t> destination, c.dims("destination", rank, false));
    if (source.size() != destination.size()) return c.fail("source and destination are of different lengths");
    std::vector<int64_t> order(static_cast<size_t>(rank), -1);
    for (size_t i = 0; i < source.size(); ++i) order[static_cast<size_t>(destination[i])] = source[i];
    int64_t next = 0;
    for (int64_t& slot : order) {
        if (slot >= 0) continue;
        while (std::find(source.begin(), source.end(), next) != source.end()) ++next;
        slot = next++;
    }
    return order;
}

Values permuteBy(Decomposition& d, const Result<std::vector<int64_t>>& order) {
    if (!order) {
        d.builder().fail(order.error());
        return d.in(0);
    }
    return permute(d.in(0), *order);
}

/// transpose of a dim with itself is an alias, as is any transpose of fewer than two dims.
Values decomposeTranspose(Decomposition& d) {
    const int64_t rank = d.in(0).rank();
    const int64_t a = d.dimOf("dim0", rank), b = d.dimOf("dim1", rank);
    if (rank <= 1 || a == b) return d.call("aten.alias.default", {d.in(0)});
    return permute(d.in(0), swapped(rank, a, b));
}

constexpr OpDef kViewPermuteOps[] = {
    // Result dim i is operand dim dims[i].
    {.schema = "aten.permute.default(Tensor(a) self, int[] dims) -> Tensor(a)",
     .tags = Tag::View,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         CT_TRY(const std::vector<int64_t> given, c.integers("dims"));
         if (given.size() != self.sizes.size())
             return c.fail(std::to_string(given.size()) + " dims for a tensor of " + std::to_string(self.rank()));
         CT_TRY(const std::vector<int64_t> dims, c.dims("dims", self.rank(), false));
         return ValueType(permutedType(self, dims));
     },
     .eval = evalView,
     .derive =
         [](Derivation& d) {
             const std::vector<int64_t> dims = d.dimsOf("dims", d.in(0).rank(), false);
             std::vector<int64_t> inverse(dims.size());
             for (size_t i = 0; i < dims.size(); ++i) inverse[static_cast<size_t>(dims[i])] = static_cast<int64_t>(i);
             d.input(0) = permute(d.dy(), inverse);
         },
     .lower = [](LowerContext& c) { return lowerPermuted(c, c.dimsOf("dims", c.in(size_t{0}).rank(), false)); },
     .samples = R"(
f32[2, 3, 4], [2, 0, 1]
f32[2, 3, 4], [0, -1, 1]
f32[2, 3][1, 2], [1, 0]
f32[], []
i64[0, 3], [1, 0]
b8[2, 3, 4, 5], [0, 2, 1, 3]
)"},
    {.schema = "aten.transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
     .tags = Tag::View | Tag::Inplace,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         CT_TRY(const std::vector<int64_t> order, swappedDims(c, self.rank(), "dim0", "dim1"));
         return ValueType(permutedType(self, order));
     },
     .eval = evalView,
     .expand = Expand::Decompose,
     .decompose = decomposeTranspose,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.transpose.int", {d.dy(), d.integerOr("dim0", 0), d.integerOr("dim1", 0)});
         },
     .lower =
         [](LowerContext& c) {
             const int64_t rank = c.in(size_t{0}).rank();
             return lowerPermuted(c, swapped(rank, c.dimOf("dim0", rank), c.dimOf("dim1", rank)));
         },
     .samples = "f32[2, 3, 4], 0, 2\nf32[2, 3], -1, -2\nf32[2, 3], 0, 0\nf32[], 0, 0\nbf16[0, 3], 0, 1"},
    // The transpose of a matrix; a vector or a 0-d tensor is its own.
    {.schema = "aten.t.default(Tensor(a) self) -> Tensor(a)",
     .tags = Tag::View | Tag::Inplace,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         if (self.rank() > 2) return c.fail("needs a tensor of at most two dims, not " + std::to_string(self.rank()));
         return ValueType(permutedType(self, self.rank() == 2 ? swapped(2, 0, 1) : identity(self.rank())));
     },
     .eval = evalView,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         if (d.in(0).rank() < 2) return d.call("aten.alias.default", {d.in(0)});
         return permute(d.in(0), {1, 0});
     },
     .derive = [](Derivation& d) { d.input(0) = d.call("aten.t.default", {d.dy()}); },
     .lower =
         [](LowerContext& c) {
             const int64_t rank = c.in(size_t{0}).rank();
             return lowerPermuted(c, rank == 2 ? swapped(2, 0, 1) : identity(rank));
         },
     .samples = "f32[2, 3]\nf32[3]\nf32[]\ni64[2, 3][1, 2]"},
    // All dims reversed.
    {.schema = "aten.numpy_T.default(Tensor(a) self) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         std::vector<int64_t> order = identity(d.in(0).rank());
         std::reverse(order.begin(), order.end());
         return permute(d.in(0), order);
     },
     .samples = "f32[2, 3]\nf32[2, 3, 4]"},
    // The last two dims swapped.
    {.schema = "aten.mT.default(Tensor(a) self) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         if (d.in(0).rank() == 0) return unary("aten.alias.default", d.in(0));
         if (d.in(0).rank() == 1) d.builder().fail(d.fail("needs at least two dims"));
         return d.call("aten.transpose.int", {d.in(0), -2, -1});
     },
     .samples = "f32[2, 3]\nf32[2, 3, 4]"},
    {.schema = "aten.swapaxes.default(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.transpose.int", {d.in(0), d.arg(1), d.arg(2)});
     },
     .samples = "f32[2, 3, 4], 0, 1\nf32[2, 3], -1, 0"},
    {.schema = "aten.swapdims.default(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.transpose.int", {d.in(0), d.arg(1), d.arg(2)});
     },
     .samples = "f32[2, 3, 4], 0, 1"},
    {.schema = "aten.movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values { return permuteBy(d, movedDims(d, d.in(0).rank())); },
     .samples = "f32[2, 3, 4], 0, 2\nf32[2, 3, 4], -1, 0"},
    {.schema = "aten.movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values { return permuteBy(d, movedDims(d, d.in(0).rank())); },
     .samples = "f32[2, 3, 4], [0, 1], [2, 0]\nf32[2, 3, 4], [-1], [0]"},
};

}  // namespace

std::span<const OpDef> permuteOps() { return kViewPermuteOps; }

}  // namespace cutaway
