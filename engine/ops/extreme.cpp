// Extremes with their positions, over a dim or the whole tensor. NaN counts as extreme; the first of equals wins.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/kernels_reduce.h"
#include "engine/ops/lower_reduce.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/reduce_rules.h"

namespace cutaway {

void deriveSelected(Derivation& d, bool keepDim) {
    const Value self = d.in(size_t{0});
    Value gradient = d.dy(0), positions = d.out(1);
    const int64_t dim = d.dimOf("dim", self.rank());
    if (!keepDim && self.rank() > 0) {
        gradient = unsqueeze(gradient, dim);
        positions = unsqueeze(positions, dim);
    }
    const Value zeros = d.call("aten.zeros.default", {Argument(self.sizes())},
                               {{"dtype", self.dtype()}, {"layout", Layout::Strided}, {"device", self.type().device}});
    d.input(0) = d.call("aten.scatter.src", {zeros, dim, positions, gradient});
}
void deriveShared(Derivation& d) {
    const Value self = d.in(size_t{0}), result = d.out();
    const Value selfNan = unary("aten.isnan.default", self), resultNan = unary("aten.isnan.default", result);
    const Value bothNan = d.call("aten.logical_and.default", {selfNan, resultNan});
    const Value equal = d.call("aten.eq.Tensor", {self, result});
    const Value mask = d.call("aten.logical_or.default", {equal, bothNan});
    d.input(0) = mask * (d.dy() / unary("aten.sum.default", mask));
}

namespace {

Result<TensorType> inferOrdered(const InferContext& c, std::optional<DType> dtype) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (isComplex(self.dtype)) return c.fail("complex numbers have no order");
    CT_TRY(const std::vector<int64_t> dims, reductionDims(c, self.rank()));
    for (int64_t dim : dims)
        if (self.sizes[static_cast<size_t>(dim)] == SymInt(0))
            return c.fail("dim " + std::to_string(dim) + " has no elements to choose from");
    return reducedType(c, dtype.value_or(self.dtype));
}
Result<ValueType> inferExtremeValue(const InferContext& c) {
    CT_TRY(TensorType type, inferOrdered(c, std::nullopt));
    return ValueType(std::move(type));
}
Result<ValueType> inferPosition(const InferContext& c) {
    CT_TRY(TensorType type, inferOrdered(c, DType::I64));
    return ValueType(std::move(type));
}
Result<ValueType> inferPair(const InferContext& c) {
    CT_TRY(const TensorType values, inferOrdered(c, std::nullopt));
    TensorType positions = values;
    positions.dtype = DType::I64;
    return ValueType(TupleType{values, positions});
}

template <class T>
struct Extremes {
    std::vector<T> values;
    std::vector<int64_t> positions;
};
/// The extreme of each group and its position in the group.
template <class T, bool largest>
Extremes<T> extremesOf(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    Extremes<T> found;
    // Unsigned numbers of 64 bits are held as signed ones; without their first bit these have the same order.
    const auto ordered = [unsignedWide = self.dtype() == DType::U64](T value) {
        if constexpr (std::is_integral_v<T>) return unsignedWide ? value ^ std::numeric_limits<T>::min() : value;
        else return value;
    };
    forEachReduced<T>(self, reducedDims(c, self.rank()), [&](int64_t, const ReducedElements<T>& elements) {
        T best{};
        int64_t at = 0, bestAt = -1;
        elements.forEachRun([&](const T* run, int64_t n) {
            for (int64_t i = 0; i < n; ++i, ++at) {
                const bool better =
                    bestAt < 0 || (!isNan(best) && (isNan(run[i]) || (largest ? ordered(run[i]) > ordered(best)
                                                                              : ordered(run[i]) < ordered(best))));
                if (!better) continue;
                best = run[i];
                bestAt = at;
            }
        });
        found.values.push_back(best);
        found.positions.push_back(bestAt);
    });
    return found;
}
enum class Keep { Value, Position, Both };
template <bool largest, Keep keep>
EvalResult evalExtremes(const EvalContext& c) {
    EvalResult result = TensorList{};
    auto run = [&](auto tag) {
        const auto found = extremesOf<decltype(tag), largest>(c);
        if constexpr (keep != Keep::Position) result.tensors().push_back(storeReduced(c, found.values));
        if constexpr (keep != Keep::Value)
            result.tensors().push_back(storeReduced(c, found.positions, keep == Keep::Both ? 1 : 0));
    };
    if (isFloating(c.in(size_t{0}).dtype())) run(double{});
    else run(int64_t{});
    return result;
}
Expr lowerOrdered(LowerContext& c, bool largest, bool position) {
    const DType dtype = computeTypeOf(c.in(size_t{0}).dtype);
    if (position)
        return lowerReduction(c, largest ? ReduceKind::ArgMax : ReduceKind::ArgMin,
                              dtype == DType::Bool ? DType::I64 : dtype);
    if (dtype == DType::Bool) return lowerReduction(c, largest ? ReduceKind::Any : ReduceKind::All, dtype);
    return lowerReduction(c, largest ? ReduceKind::Max : ReduceKind::Min, dtype);
}

constexpr std::string_view kExtremeDimSamples = R"(
f32[2, 3, 4]!, 1
f32[2, 3, 4]!, -1, True
f32[2, 3][1, 2]!, 0
f64[5]!, 0
f32[], 0
f32[], -1, True
bf16[4, 5]!, 1
f16[4, 5]!, 0
i64[3, 4]!, 0
i32[3, 4], -1
u8[2, 3], 1
i8[2, 3], 1, True
b8[2, 3], 1
f32[0, 3], 1
f32[2, 3, 4, 5][60, 1, 15, 3]!, 1
f32[3, 4], 1
f32[2, 1, 3]!, 1
)";
constexpr std::string_view kAllSamples =
    "f32[2, 3]!\nf64[4]!\nf32[]\nbf16[3, 2]!\ni64[5]\nb8[3]\nf32[2, 3][1, 2]!\nu8[2, 2]\nf16[7]!";
constexpr std::string_view kPositionSamples = R"(
f32[2, 3, 4]!, 1
f32[2, 3, 4]!, -1, True
f32[2, 3, 4]!
f32[2, 3]!, None, True
f32[2, 3][1, 2]!, 0
f32[2, 3][1, 2]!
f64[5]!, 0
f32[], 0
f32[]
bf16[4, 5]!, 1
i64[3, 4]!, 0
u8[2, 3], 1
f32[0, 3], 1
f32[3, 4], 1
)";

constexpr OpDef kExtremeOps[] = {
    {.schema = "aten.max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .tags = Tag::Reduction,
     .infer = inferPair,
     .eval = evalExtremes<true, Keep::Both>,
     .derive = [](Derivation& d) { deriveSelected(d, keepsDims(d)); },
     .lower = [](LowerContext& c) { return lowerOrdered(c, true, c.resultNumber() == 1); },
     .samples = kExtremeDimSamples},
    {.schema = "aten.min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .tags = Tag::Reduction,
     .infer = inferPair,
     .eval = evalExtremes<false, Keep::Both>,
     .derive = [](Derivation& d) { deriveSelected(d, keepsDims(d)); },
     .lower = [](LowerContext& c) { return lowerOrdered(c, false, c.resultNumber() == 1); },
     .samples = kExtremeDimSamples},
    {.schema = "aten.max.default(Tensor self) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferExtremeValue,
     .eval = evalExtremes<true, Keep::Value>,
     .derive = deriveShared,
     .lower = [](LowerContext& c) { return lowerOrdered(c, true, false); },
     .samples = kAllSamples},
    {.schema = "aten.min.default(Tensor self) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferExtremeValue,
     .eval = evalExtremes<false, Keep::Value>,
     .derive = deriveShared,
     .lower = [](LowerContext& c) { return lowerOrdered(c, false, false); },
     .samples = kAllSamples},
    {.schema = "aten.max.other(Tensor self, Tensor other) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.maximum.default", {d.arg(0), d.arg(1)});
     },
     .samples = "f32[2, 3], f32[3]\ni64[2], i32[2]"},
    {.schema = "aten.min.other(Tensor self, Tensor other) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.minimum.default", {d.arg(0), d.arg(1)});
     },
     .samples = "f32[2, 3], f32[3]\ni64[2], i32[2]"},
    // Without a dim: the position in the flattened tensor.
    {.schema = "aten.argmax.default(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferPosition,
     .eval = evalExtremes<true, Keep::Position>,
     .lower = [](LowerContext& c) { return lowerOrdered(c, true, true); },
     .samples = kPositionSamples},
    {.schema = "aten.argmin.default(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferPosition,
     .eval = evalExtremes<false, Keep::Position>,
     .lower = [](LowerContext& c) { return lowerOrdered(c, false, true); },
     .samples = kPositionSamples},
    {.schema = "aten.aminmax.default(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
     .tags = Tag::Reduction,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType type, inferOrdered(c, std::nullopt));
         return ValueType(TupleType{type, type});
     },
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         const Argument dims =
             d.has("dim") ? Argument(std::vector<int64_t>{d.integerOr("dim", 0)}) : Argument(std::vector<int64_t>{});
         const Value least = d.call("aten.amin.default", {d.arg(0), dims, d.flag("keepdim")});
         return {least, d.call("aten.amax.default", {d.arg(0), dims, d.flag("keepdim")})};
     },
     .samples = "f32[2, 3]\nf32[2, 3], dim = 1\nf32[2, 3], dim = -2, keepdim = True\ni64[4], dim = 0\nf32[]"},
};

}  // namespace

std::span<const OpDef> extremeOps() { return kExtremeOps; }

}  // namespace cutaway
