// Elements in another order along dims: flip, roll, rot90.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

std::vector<int64_t> reversedDims(const InferContext& c, const TensorType& self) {
    auto dims = c.dims("dims", self.rank(), false);
    return dims ? *dims : std::vector<int64_t>();
}
Result<ValueType> inferFlip(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const std::vector<int64_t> dims, c.dims("dims", self.rank(), false));
    TensorType type = TensorType::contiguous(self.dtype, self.sizes, self.device);
    type.strides = preservedStrides(self);
    return ValueType(std::move(type));
}
EvalResult evalFlip(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    Tensor out = c.result();
    if (out.numel() == 0) return out;
    // Reading forwards and writing backwards.
    Dims strides = out.strides();
    int64_t offset = out.offset();
    for (int64_t dim : c.dimsOf("dims", self.rank(), false)) {
        const auto at = static_cast<size_t>(dim);
        offset += (out.sizes()[at] - 1) * strides[at];
        strides[at] = -strides[at];
    }
    Tensor backwards = out.view(out.sizes(), strides, offset);
    copyInto(backwards, self);
    return out;
}
Expr lowerFlip(LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    std::vector<Expr> at = c.index();
    for (int64_t dim : reversedDims(c, self)) {
        const auto i = static_cast<size_t>(dim);
        at[i] = Expr::make(ExprKind::Add,
                           {(self.sizes[i] - SymInt(1)).expr(), Expr::make(ExprKind::Mul, {at[i], Expr::integer(-1)})});
    }
    return c.loadAt(0, at);
}

Result<ValueType> inferRoll(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const SymDims shifts, c.sizes("shifts"));
    CT_TRY(const std::vector<int64_t> dims, c.integers("dims"));
    if (shifts.empty()) return c.fail("needs at least one shift");
    if (dims.empty() ? shifts.size() != 1 : dims.size() != shifts.size())
        return c.fail("shifts and dims are of different lengths");
    for (const int64_t dim : dims)
        if (dim < -self.rank() || dim >= self.rank())
            return c.fail("dim " + std::to_string(dim) + " is none of " + self.text());
    return ValueType(TensorType::contiguous(self.dtype, self.sizes, self.device));
}
/// One indexing per dim, by a range that starts in the middle and wraps around.
Values decomposeRoll(Decomposition& d) {
    const Value self = d.in(0);
    const SymDims shifts = d.sizesOf("shifts");
    const std::vector<int64_t> dims = d.integersOf("dims");
    if (numel(self.sizes()) == SymInt(0)) return unary("aten.clone.default", self);
    auto rolled = [&](const Value& x, int64_t dim, const SymInt& shift) {
        const SymInt size = x.size(dim);
        const SymInt start =
            mod(size - (size.isInt() && shift.isInt() ? SymInt(shift.value() % size.value()) : shift), size);
        const Value range = d.call(
            "prims.iota.default", {Argument(size)},
            {{"start", 0}, {"step", 1}, {"dtype", DType::I64}, {"device", x.type().device}, {"requires_grad", false}});
        const Value wrapped =
            d.call("aten.fmod.Scalar", {d.call("aten.add.Tensor", {range, Argument(start)}), Argument(size)});
        std::vector<Argument> indices(static_cast<size_t>(dim));
        indices.push_back(wrapped);
        return d.call("aten.index.Tensor", {x, Argument(std::move(indices))});
    };
    if (dims.empty()) return view(rolled(reshape(self, {numel(self.sizes())}), 0, shifts[0]), self.sizes());
    Value x = self;
    for (size_t i = 0; i < dims.size(); ++i) x = rolled(x, dims[i] < 0 ? dims[i] + self.rank() : dims[i], shifts[i]);
    return x;
}

Result<std::vector<int64_t>> rotationDims(const InferContext& c, const TensorType& self) {
    CT_TRY(std::vector<int64_t> dims, c.dims("dims", self.rank(), false));
    if (dims.size() != 2) return c.fail("needs two dims to rotate in");
    return dims;
}
Result<ValueType> inferRot90(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const std::vector<int64_t> dims, rotationDims(c, self));
    CT_TRY(const int64_t turns, c.integer("k", 1));
    TensorType type = self;
    type.strides = turns % 4 == 0 ? contiguousStrides(self.sizes) : preservedStrides(self);
    type.offset = 0;
    type.requiresGrad = false;
    if (turns % 2 != 0) {
        std::swap(type.sizes[static_cast<size_t>(dims[0])], type.sizes[static_cast<size_t>(dims[1])]);
        std::swap(type.strides[static_cast<size_t>(dims[0])], type.strides[static_cast<size_t>(dims[1])]);
    }
    return ValueType(std::move(type));
}
Values decomposeRot90(Decomposition& d) {
    const Value self = d.in(0);
    const std::vector<int64_t> dims = *rotationDims(d, self.type());
    const int64_t turns = (d.integerOr("k", 1) % 4 + 4) % 4;
    auto flip = [&](std::vector<int64_t> along) { return d.call("aten.flip.default", {self, Argument(along)}); };
    if (turns == 0) return d.call("aten.clone.default", {self}, {{"memory_format", MemoryFormat::Contiguous}});
    if (turns == 2) return flip(dims);
    return d.call("aten.transpose.int", {flip({turns == 1 ? dims[1] : dims[0]}), dims[0], dims[1]});
}

constexpr OpDef kReorderOps[] = {
    // Order of elements reversed along dims.
    {.schema = "aten.flip.default(Tensor self, int[] dims) -> Tensor",
     .infer = inferFlip,
     .eval = evalFlip,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("prims.rev.default", {d.in(0), Argument(d.dimsOf("dims", d.in(0).rank(), false))});
     },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.flip.default", {d.dy(), d.arg("dims")});
         },
     .lower = lowerFlip,
     .samples = "f32[2, 3], [0]\nf32[2, 3], [0, -1]\ni64[4], [0]\nf32[2, 3][1, 2], [1]\nf32[0, 3], [1]\nf32[2, 3], []"},
    {.schema = "prims.rev.default(Tensor a, int[] dims) -> Tensor",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const std::vector<int64_t> dims, c.integers("dims"));
         if (std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 0; }))
             return c.fail("dims are counted from the front here");
         return inferFlip(c);
     },
     .eval = evalFlip,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("prims.rev.default", {d.dy(), d.arg("dims")});
         },
     .lower = lowerFlip,
     .samples = "f32[2, 3], [0]\nf32[2, 3], [0, 1]\nbf16[4], [0]"},
    // Elements shifted along dims, those that fall off the end coming back at the start. Without dims: of the flat
    // tensor.
    {.schema = "aten.roll.default(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
     .infer = inferRoll,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeRoll,
     .derive =
         [](Derivation& d) {
             SymDims back = d.sizesOf("shifts");
             for (SymInt& shift : back) shift = SymInt(0) - shift;
             d.input(0) = d.call("aten.roll.default", {d.dy(), Argument(back), d.arg("dims")});
         },
     .samples =
         "f32[3, 4], [1], [0]\nf32[3, 4], [1, -2], [0, 1]\nf32[3, 4], [5]\ni64[5], [-7], [0]\nf32[0, 3], [1], [1]"},
    // k quarter turns from the first towards the second dim.
    {.schema = "aten.rot90.default(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
     .infer = inferRot90,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeRot90,
     .derive =
         [](Derivation& d) {
             const int64_t back = checkedSub(0, d.integerOr("k", 1));
             d.input(0) = d.call("aten.rot90.default", {d.dy(), back, d.arg("dims")});
         },
     .samples =
         "f32[2, 3]\nf32[2, 3, 4], 2, [1, 2]\nf32[2, 3, 4], 3, [-1, 0]\nf32[2, 3], 4\nf32[2, 3], -1\ni64[2, 3][1, 2], 1\nb8[0, 3]"},
    shorthand(
        "aten.fliplr.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.in(0).rank() < 2 ? refuse(d, "needs at least two dims")
                                      : d.call("aten.flip.default", {d.in(0), Argument(std::vector<Argument>{1})});
        },
        "f32[2, 3]\ni64[2, 3, 2]"),
    shorthand(
        "aten.flipud.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.in(0).rank() < 1 ? refuse(d, "needs at least one dim")
                                      : d.call("aten.flip.default", {d.in(0), Argument(std::vector<Argument>{0})});
        },
        "f32[2, 3]\nf32[3]"),
};

}  // namespace

std::span<const OpDef> reorderOps() { return kReorderOps; }

}  // namespace cutaway
