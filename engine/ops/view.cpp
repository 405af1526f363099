// Views that keep the order of elements: view, reshape, expand, squeeze and their kin. Their results share the
// operand's storage; where a copy may be needed (reshape, contiguous) the op is composite and says so in its expansion.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/view_rules.h"

namespace cutaway {

Value reshape(const Value& x, const SymDims& sizes) {
    if (!x) return x;
    // As PyTorch's reshape: the view is given the sizes as they were asked for, the copy the resolved ones.
    InferContext c(requireOp("aten.view.default"), {});
    auto resolved = resolveViewSizes(c, sizes, numel(x.sizes()));
    if (!resolved) {
        x.builder().fail(std::move(resolved).error());
        return Value(x.builder(), nullptr);
    }
    if (viewStrides(x.sizes(), x.type().strides, *resolved)) return view(x, sizes);
    const Value copy = x.builder().call("aten.clone.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
    return copy ? x.builder().call("aten._unsafe_view.default", {copy, Argument(*resolved)}) : copy;
}

namespace {

Result<ValueType> inferView(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const SymDims given, c.sizes("size"));
    CT_TRY(SymDims sizes, resolveViewSizes(c, given, numel(self.sizes)));
    auto strides = viewStrides(self.sizes, self.strides, sizes);
    if (!strides) return c.fail("the tensor's strides do not allow this view without a copy; use reshape");
    return ValueType(viewType(self, std::move(sizes), std::move(*strides), self.offset));
}

Result<ValueType> inferExpand(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(SymDims sizes, c.sizes("size"));
    if (sizes.size() < self.sizes.size())
        return c.fail(std::to_string(sizes.size()) + " sizes for a tensor of " + std::to_string(self.sizes.size()) +
                      " dims");
    SymDims strides(sizes.size());
    const size_t lead = sizes.size() - self.sizes.size();
    for (size_t i = sizes.size(); i-- > 0;) {
        const bool own = i >= lead;
        const SymInt size = own ? self.sizes[i - lead] : SymInt(1);
        strides[i] = own ? self.strides[i - lead] : i + 1 < sizes.size() ? sizes[i + 1] * strides[i + 1] : SymInt(1);
        if (sizes[i] == SymInt(-1)) {
            if (!own) return c.fail("-1 is not allowed in a new leading dim");
            sizes[i] = size;
        }
        if (sizes[i] == size) continue;
        if (!(size == SymInt(1))) {
            if (!differ(size, sizes[i])) continue;  // two symbols: equal at run time
            return c.fail("size " + size.text() + " at dim " + std::to_string(i) + " cannot become " + sizes[i].text());
        }
        strides[i] = 0;
    }
    if (self.sizes.empty()) std::fill(strides.begin(), strides.end(), SymInt(0));
    return ValueType(viewType(self, std::move(sizes), std::move(strides), self.offset));
}

/// Leaves out the dims for which `drop` is true.
template <class Drop>
TensorType withoutDims(const TensorType& self, Drop&& drop) {
    SymDims sizes, strides;
    for (size_t i = 0; i < self.sizes.size(); ++i) {
        if (drop(i)) continue;
        sizes.push_back(self.sizes[i]);
        strides.push_back(self.strides[i]);
    }
    return viewType(self, std::move(sizes), std::move(strides), self.offset);
}

Expr lowerReshape(LowerContext& c) { return c.loadAt(0, reindex(c.index(), c.out().sizes, c.in(size_t{0}).sizes)); }

Expr lowerExpand(LowerContext& c) {
    const SymDims own = c.in(size_t{0}).sizes;
    const size_t lead = c.index().size() - own.size();
    std::vector<Expr> at;
    for (size_t i = 0; i < own.size(); ++i) at.push_back(own[i] == SymInt(1) ? Expr::integer(0) : c.index()[lead + i]);
    return c.loadAt(0, at);
}

SymDims flattenedSizes(const SymDims& sizes, int64_t start, int64_t end) {
    SymDims out(sizes.begin(), sizes.begin() + start);
    SymInt merged = 1;
    for (int64_t i = start; i <= end; ++i) merged = merged * sizes[static_cast<size_t>(i)];
    out.push_back(merged);
    out.insert(out.end(), sizes.begin() + end + 1, sizes.end());
    return out;
}

Values decomposeFlatten(Decomposition& d) {
    const Value self = d.in(0);
    auto start = d.dim("start_dim", self.rank()), end = d.dim("end_dim", self.rank());
    for (const auto* dim : {&start, &end})
        if (!*dim) {
            d.builder().fail(dim->error());
            return self;
        }
    if (self.rank() == 0) return reshape(self, {SymInt(1)});
    if (*start > *end) {
        d.builder().fail(d.fail("start_dim comes after end_dim"));
        return self;
    }
    if (*start == *end) return self;
    return reshape(self, flattenedSizes(self.sizes(), *start, *end));
}

Values decomposeUnflatten(Decomposition& d) {
    const Value self = d.in(0);
    auto dim = d.dim("dim", self.rank());
    auto given = d.sizes("sizes");
    if (!dim || !given) {
        d.builder().fail(dim ? given.error() : dim.error());
        return self;
    }
    auto sizes = resolveViewSizes(d, *given, self.size(*dim));
    if (!sizes) {
        d.builder().fail(sizes.error());
        return self;
    }
    SymDims out(self.sizes().begin(), self.sizes().begin() + *dim);
    out.insert(out.end(), sizes->begin(), sizes->end());
    out.insert(out.end(), self.sizes().begin() + *dim + 1, self.sizes().end());
    return view(self, out);
}

/// Whether no two elements lie at one place.
bool apart(const Dims& sizes, const Dims& strides) {
    std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == 0) return true;
        if (sizes[i] > 1) dims.emplace_back(strides[i], sizes[i]);
    }
    std::sort(dims.begin(), dims.end());
    int64_t reach = 0;
    for (const auto& [stride, size] : dims)
        if (stride <= reach || __builtin_mul_overflow(stride, size - 1, &reach) ||
            __builtin_add_overflow(reach, stride - 1, &reach))
            return false;
    return true;
}

constexpr OpDef kViewOps[] = {
    // The same elements in row-major order under other sizes; one size may be -1. Never copies.
    {.schema = "aten.view.default(Tensor(a) self, SymInt[] size) -> Tensor(a)",
     .tags = Tag::View,
     .infer = inferView,
     .eval = evalView,
     .derive = [](Derivation& d) { d.input(0) = reshape(d.dy(), d.in(0).sizes()); },
     .lower = lowerReshape,
     .samples = R"(
f32[2, 3], [6]
f32[2, 3], [-1]
f32[2, 3], [3, -1]
f32[4, 6][1, 4], [2, 2, 6]
i64[2, 1, 3], [1, 6, 1]
f32[0, 3], [3, 0]
bf16[], [1, 1]
b8[8], [2, 2, 2]
f32[2, 3, 4][20, 4, 1], [2, 12]
)"},
    // view where strides allow, else a packed copy.
    {.schema = "aten.reshape.default(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         auto sizes = d.sizes("shape");
         if (!sizes) {
             d.builder().fail(sizes.error());
             return d.in(0);
         }
         return reshape(d.in(0), *sizes);
     },
     .lower = lowerReshape,
     .samples = R"(
f32[2, 3], [3, 2]
f32[3, 2][1, 3], [6]
f32[3, 2][1, 3], [2, -1]
i64[2, 3, 4], [-1, 4]
f32[0, 4], [0, 2, 2]
)"},
    // The tensor in exactly these strides: what a kernel or a caller outside relies on. A copy where it lies otherwise.
    {.schema = "prims.inductor_force_stride_order.default(Tensor input, SymInt[] stride) -> Tensor",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(TensorType type, c.tensor(size_t{0}));
         CT_TRY(const SymDims strides, c.sizes("stride"));
         if (strides.size() != type.sizes.size()) return c.fail("needs one stride per dim");
         if (allInts(type.sizes) && allInts(strides) && !apart(toInts(type.sizes), toInts(strides)))
             return c.fail("the strides do not give every element of " + type.text() + " a place of its own");
         type.strides = strides;
         type.offset = 0;
         type.requiresGrad = false;
         return ValueType(std::move(type));
     },
     .eval =
         [](const EvalContext& c) {
             Tensor out = c.result();
             copyInto(out, c.in(size_t{0}));
             return out;
         },
     .lower = [](LowerContext& c) { return c.loadAt(0, c.index()); },
     .samples = "f32[2, 3], [1, 2]\nf32[2, 3, 4, 5], [60, 1, 15, 3]\nf32[2, 3][1, 2], [3, 1]"},
    // view, promising that nobody writes through it.
    {.schema = "aten._unsafe_view.default(Tensor self, SymInt[] size) -> Tensor",
     .infer = inferView,
     .eval = evalView,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values { return view(d.in(0), d.sizesOf("size")); },
     .derive = [](Derivation& d) { d.input(0) = reshape(d.dy(), d.in(0).sizes()); },
     .lower = lowerReshape,
     .samples = "f32[2, 3], [6]\nf32[4, 6], [2, 2, -1]\ni32[0, 2], [2, 0]"},
    {.schema = "aten.view_as.default(Tensor(a) self, Tensor other) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values { return view(d.in(0), d.in(1).sizes()); },
     .samples = "f32[2, 3], f32[6]"},
    {.schema = "aten.reshape_as.default(Tensor(a) self, Tensor other) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values { return reshape(d.in(0), d.in(1).sizes()); },
     .samples = "f32[2, 3], f32[6]\nf32[2, 3][1, 2], i64[6]"},
    // Merges the dims start_dim..end_dim; a 0-d tensor becomes one of size 1.
    {.schema = "aten.flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeFlatten,
     .samples =
         "f32[2, 3, 4]\nf32[2, 3, 4], 1\nf32[2, 3, 4], 0, -2\nf32[]\nf32[2, 3, 4][12, 1, 3], 1\nf32[2, 3], 1, 1\ni64[0, 3]"},
    {.schema = "aten.ravel.default(Tensor(a) self) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return view(d.call("aten.contiguous.default", {d.in(0)}), {SymInt(-1)});
     },
     .samples = "f32[2, 3]\nf32[2, 3][1, 2]"},
    // Cuts one dim into several; one of them may be -1.
    {.schema = "aten.unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeUnflatten,
     .samples = "f32[6, 4], 0, [2, 3]\nf32[2, 8], -1, [2, -1]\ni64[12], 0, [3, 2, 2]"},
    // Repeats dims of size 1, and adds leading ones, by stride 0. -1 keeps a size.
    {.schema = "aten.expand.default(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
     .tags = Tag::View,
     .infer = inferExpand,
     .eval = evalView,
     .derive = [](Derivation& d) { d.input(0) = d.dy(); },  // summed to the operand's shape by the driver
     .lower = lowerExpand,
     .samples = R"(
f32[3, 1], [3, 4]
f32[3, 1], [-1, 4]
f32[3], [2, 3]
f32[1, 3], [2, -1, -1]
f32[], [2, 2]
i64[1, 3], [0, 3]
f32[3], [1, 3]
b8[2, 1][1, 1], [2, 5]
)"},
    {.schema = "aten.expand_as.default(Tensor(a) self, Tensor other) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values { return expand(d.in(0), d.in(1).sizes()); },
     .samples = "f32[3, 1], i64[3, 4]\nf32[1], f32[2, 3]"},
    {.schema = "aten.broadcast_to.default(Tensor(a) self, SymInt[] size) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         auto sizes = d.sizes("size");
         if (!sizes) {
             d.builder().fail(sizes.error());
             return d.in(0);
         }
         return expand(d.in(0), *sizes);
     },
     .samples = "f32[3, 1], [3, 4]\nf32[3], [2, 3]"},
    // A dim of size 1 before `dim`.
    {.schema = "aten.unsqueeze.default(Tensor(a) self, int dim) -> Tensor(a)",
     .tags = Tag::View | Tag::Inplace,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         CT_TRY(const int64_t dim, c.dim("dim", self.rank() + 1));
         SymDims sizes = self.sizes, strides = self.strides;
         const auto at = static_cast<size_t>(dim);
         strides.insert(strides.begin() + dim, at < sizes.size() ? sizes[at] * strides[at] : SymInt(1));
         sizes.insert(sizes.begin() + dim, SymInt(1));
         return ValueType(viewType(self, std::move(sizes), std::move(strides), self.offset));
     },
     .eval = evalView,
     .derive =
         [](Derivation& d) {
             const int64_t dim = d.dimOf("dim", d.in(0).rank() + 1);
             d.input(0) = d.call("aten.squeeze.dim", {d.dy(), dim});
         },
     .lower = lowerReshape,
     .samples = "f32[2, 3], 0\nf32[2, 3], 1\nf32[2, 3], -1\nf32[], 0\nf32[2, 3][1, 2], 1\ni64[0], -1\nf32[2, 3], -3"},
    // Drops the dim if its size is 1.
    {.schema = "aten.squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
     .tags = Tag::View | Tag::Inplace,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
         return ValueType(
             withoutDims(self, [&](size_t i) { return static_cast<int64_t>(i) == dim && self.sizes[i] == SymInt(1); }));
     },
     .eval = evalView,
     .derive =
         [](Derivation& d) {
             const int64_t rank = d.in(0).rank(), dim = d.dimOf("dim", rank);
             d.input(0) = rank > 0 && d.in(0).size(dim) == SymInt(1) ? unsqueeze(d.dy(), dim) : d.dy();
         },
     .lower = lowerReshape,
     .samples = "f32[2, 1, 3], 1\nf32[2, 1, 3], 0\nf32[2, 3, 1], -1\nf32[], 0\nf32[2, 1, 3][1, 5, 2], 1\ni64[1, 0], 0"},
    // Drops those of the given dims whose size is 1.
    {.schema = "aten.squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
     .tags = Tag::View | Tag::Inplace,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         CT_TRY(const std::vector<int64_t> dims, c.dims("dim", self.rank(), false));
         return ValueType(withoutDims(self, [&](size_t i) {
             return self.sizes[i] == SymInt(1) &&
                    std::find(dims.begin(), dims.end(), static_cast<int64_t>(i)) != dims.end();
         }));
     },
     .eval = evalView,
     .derive =
         [](Derivation& d) {
             std::vector<int64_t> dims = d.dimsOf("dim", d.in(0).rank(), false);
             std::sort(dims.begin(), dims.end());
             Value gradient = d.dy();
             for (int64_t dim : dims)
                 if (d.in(0).size(dim) == SymInt(1)) gradient = unsqueeze(gradient, dim);
             d.input(0) = gradient;
         },
     .lower = lowerReshape,
     .samples = "f32[1, 2, 1], [0, 2]\nf32[1, 2, 1], [0, 1]\nf32[1, 2, 1], [-1]\nf32[1, 2], []\ni64[1, 1], [0, 1]"},
    // Drops every dim of size 1.
    {.schema = "aten.squeeze.default(Tensor(a) self) -> Tensor(a)",
     .tags = Tag::View | Tag::Inplace,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         return ValueType(withoutDims(self, [&](size_t i) { return self.sizes[i] == SymInt(1); }));
     },
     .eval = evalView,
     .derive =
         [](Derivation& d) {
             Value gradient = d.dy();
             for (int64_t dim = 0; dim < d.in(0).rank(); ++dim)
                 if (d.in(0).size(dim) == SymInt(1)) gradient = unsqueeze(gradient, dim);
             d.input(0) = gradient;
         },
     .lower = lowerReshape,
     .samples = "f32[1, 2, 1]\nf32[2, 3]\nf32[1]\nf32[]\ni64[1, 0, 1]"},
};

}  // namespace

std::span<const OpDef> viewOps() { return kViewOps; }

}  // namespace cutaway
