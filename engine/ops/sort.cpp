// Sorting and selection by rank along a dim. NaN is the largest value; equal elements keep their order.
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/ops/reduce_rules.h"

namespace cutaway {
namespace {

/// Of a tensor along a dim: `rows` groups of `length` elements, `inner` apart, in row-major order of the whole.
struct Lines {
    int64_t rows = 0, length = 1, inner = 1;
    Lines(const Dims& sizes, int64_t dim) {
        int64_t all = 1;
        for (size_t i = 0; i < sizes.size(); ++i) {
            all *= sizes[i];
            if (static_cast<int64_t>(i) > dim) inner *= sizes[i];
        }
        if (!sizes.empty()) length = sizes[static_cast<size_t>(dim)];
        rows = length > 0 ? all / length : 0;
    }
    int64_t start(int64_t row) const { return row / inner * inner * length + row % inner; }
};
template <class T>
bool ranksBelow(T a, T b) {
    if (isNan(a)) return false;
    return isNan(b) || a < b;
}
/// Positions of a line's elements in rank order.
template <class T>
void rankLine(const std::vector<T>& in, int64_t start, const Lines& lines, bool descending,
              std::vector<int64_t>& order) {
    order.resize(static_cast<size_t>(lines.length));
    std::iota(order.begin(), order.end(), 0);
    auto at = [&](int64_t i) { return in[static_cast<size_t>(start + i * lines.inner)]; };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return descending ? ranksBelow(at(b), at(a)) : ranksBelow(at(a), at(b));
    });
}
/// Ranks every line and keeps the elements `first .. first + count` of it: values and positions.
EvalResult ranked(const EvalContext& c, bool descending, int64_t first, int64_t count) {
    const Tensor self = c.in(size_t{0});
    const Lines lines(self.sizes(), self.rank() == 0 ? 0 : c.dimOf("dim", self.rank()));
    Tensor values = c.result(0), positions = c.result(1);
    withCompute(self.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> in = packElements<T>(self);
        std::vector<T> kept(static_cast<size_t>(values.numel()));
        std::vector<int64_t> at(kept.size()), order;
        for (int64_t row = 0; row < lines.rows; ++row) {
            const int64_t from = lines.start(row), to = row / lines.inner * lines.inner * count + row % lines.inner;
            rankLine(in, from, lines, descending, order);
            for (int64_t k = 0; k < count; ++k) {
                const int64_t position = order[static_cast<size_t>(first + k)];
                kept[static_cast<size_t>(to + k * lines.inner)] =
                    in[static_cast<size_t>(from + position * lines.inner)];
                at[static_cast<size_t>(to + k * lines.inner)] = position;
            }
        }
        unpackElements(kept, values);
        unpackElements(at, positions);
    });
    return TensorList{values, positions};
}

/// So many elements are found one after the other; more are sorted faster.
constexpr int64_t kMostFound = 8;

/// An element of a line, and where it stands in it (I32).
struct RankedElement {
    Expr value, position;
};
/// The first of a line by rank, or the one that follows `last`: the first of equals, NaN the largest.
RankedElement nextByRank(LowerContext& c, size_t dim, bool descending, const std::optional<RankedElement>& last) {
    const SymInt length = c.in(size_t{0}).sizes[dim];
    const auto elementAt = [&](const Expr& r) {
        std::vector<Expr> at = c.index();
        at[dim] = r;
        const Expr x = c.loadAt(0, at);
        return isFloating(x->dtype) ? x : Expr::cast(x, DType::I64);
    };
    const auto isNan = [](const Expr& x) {
        return isFloating(x->dtype) ? Expr::call("isnan", {x}, DType::Bool) : Expr::boolean(false);
    };
    const auto follows = [&](const Expr& x, const Expr& r) {
        if (!last) return Expr::boolean(true);
        const Expr &value = last->value, later = compare(ExprKind::Gt, r, last->position);
        const Expr farther = compare(descending ? ExprKind::Lt : ExprKind::Gt, x, value);
        Expr behind = farther || (compare(ExprKind::Eq, x, value) && later);
        if (!isFloating(x->dtype)) return behind;
        return descending ? Expr::where(isNan(value), logicalNot(isNan(x)) || later, behind)
                          : Expr::where(isNan(x), logicalNot(isNan(value)) || later, behind);
    };
    const Expr best = c.reduce(descending ? ReduceKind::Max : ReduceKind::Min, {length}, [&](const auto& r) {
        const Expr x = elementAt(r[0]), left = follows(x, Expr::cast(r[0], DType::I32));
        using Numbers = std::numeric_limits<int64_t>;
        const double end = descending ? -INFINITY : INFINITY;
        const Expr worst =
            isFloating(x->dtype) ? constantLike(x, end) : Expr::integer(descending ? Numbers::min() : Numbers::max());
        return Expr::where(descending ? left : left && logicalNot(isNan(x)), x, worst);
    });
    // From the smallest on, what is not a number comes behind all numbers.
    const Expr size = constantOf(Scalar(length.value()), DType::I32), beyond = size + size;
    const Expr place = c.reduce(ReduceKind::Min, {length}, [&](const auto& at) {
        const Expr r = Expr::cast(at[0], DType::I32), x = elementAt(at[0]);
        const Expr nan = Expr::where(isNan(x), descending ? r : r + size, beyond);
        const Expr ranked = Expr::where(compare(ExprKind::Eq, x, best), r, nan);
        return Expr::where(follows(x, r), ranked, beyond);
    });
    if (descending) return {best, place};
    const Expr none = compare(ExprKind::Ge, place, size);
    const Expr notANumber = constantLike(best, std::numeric_limits<double>::quiet_NaN());
    return {isFloating(best->dtype) ? Expr::where(none, notANumber, best) : best,
            Expr::where(none, place - size, place)};
}
/// Values and positions of the first `count` elements by rank; null if they are many or their number is not known.
Expr lowerRanked(LowerContext& c, bool descending, const SymInt& count) {
    const TensorType self = c.in(size_t{0});
    if (self.rank() == 0) return c.resultNumber() == 1 ? Expr::integer(0) : c.loadAt(0, {});
    const auto dim = static_cast<size_t>(c.dimOf("dim", self.rank()));
    const auto length = self.sizes[dim].asInt();
    if (!count.isInt() || count.value() > kMostFound || !length || *length > std::numeric_limits<int32_t>::max() / 2)
        return Expr();
    std::optional<RankedElement> last;
    Expr wanted = Expr::integer(0);
    for (int64_t k = 0; k < count.value(); ++k) {
        last = nextByRank(c, dim, descending, last);
        const Expr expr = c.resultNumber() == 0 ? last->value : last->position;
        const Expr here = compare(ExprKind::Eq, c.index()[dim], Expr::integer(k));
        wanted = k == 0 ? expr : Expr::where(here, expr, wanted);
    }
    return wanted;
}
Expr lowerSort(LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    const SymInt length = self.rank() == 0 ? SymInt(1) : self.sizes[static_cast<size_t>(c.dimOf("dim", self.rank()))];
    return lowerRanked(c, c.flag("descending"), length);
}

Result<ValueType> valuesAndPositions(const InferContext& c, TensorType values) {
    if (isComplex(values.dtype)) return c.fail("complex numbers have no order");
    TensorType positions = values;
    positions.dtype = DType::I64;
    return ValueType(TupleType{std::move(values), std::move(positions)});
}
Result<ValueType> inferSort(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY_VOID(c.dim("dim", self.rank()));
    TensorType type = TensorType::contiguous(self.dtype, self.sizes, self.device);
    type.strides = preservedStrides(self);
    return valuesAndPositions(c, std::move(type));
}
EvalResult evalSort(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    return ranked(c, c.flag("descending"), 0, self.rank() == 0 ? 1 : self.size(c.dimOf("dim", self.rank())));
}
Result<ValueType> inferTopk(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    CT_TRY(const SymInt k, c.size("k"));
    const SymInt size = self.rank() == 0 ? SymInt(1) : self.sizes[static_cast<size_t>(dim)];
    if (exceeds(0, k) || exceeds(k, size))
        return c.fail("k = " + k.text() + " of a dim of " + size.text() + " elements");
    SymDims sizes = self.sizes;
    if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = k;
    return valuesAndPositions(c, TensorType::contiguous(self.dtype, sizes, self.device));
}
/// The values and positions of one element per line.
Result<ValueType> inferSelected(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    const SymInt size = self.rank() == 0 ? SymInt(1) : self.sizes[static_cast<size_t>(dim)];
    if (size == SymInt(0)) return c.fail("dim " + std::to_string(dim) + " has no elements to choose from");
    if (c.op().schema()->find("k") >= 0) {
        CT_TRY(const SymInt k, c.size("k"));
        if (exceeds(1, k) || exceeds(k, size))
            return c.fail("k = " + k.text() + " of a dim of " + size.text() + " elements");
    }
    CT_TRY(TensorType type, reducedType(c, self.dtype));
    return valuesAndPositions(c, std::move(type));
}
/// The lower median's rank among `length` elements; with a NaN in the line that is the answer, unless NaN is skipped.
template <bool skipsNan>
EvalResult evalMedian(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    const bool whole = c.op().schema()->find("dim") < 0;
    const Lines lines =
        whole ? Lines({self.numel()}, 0) : Lines(self.sizes(), self.rank() == 0 ? 0 : c.dimOf("dim", self.rank()));
    Tensor values = c.result(0);
    Tensor positions = whole ? Tensor() : c.result(1);
    withCompute(self.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> in = packElements<T>(self);
        std::vector<T> kept(static_cast<size_t>(values.numel()));
        std::vector<int64_t> at(kept.size()), order;
        for (int64_t row = 0; row < lines.rows; ++row) {
            rankLine(in, lines.start(row), lines, false, order);
            auto element = [&](int64_t i) { return in[static_cast<size_t>(lines.start(row) + i * lines.inner)]; };
            int64_t given = lines.length;
            while (skipsNan && given > 1 && isNan(element(order[static_cast<size_t>(given - 1)]))) --given;
            int64_t chosen = order[static_cast<size_t>((given - 1) / 2)];
            if (!skipsNan && isNan(element(order.back())))
                for (chosen = 0; !isNan(element(chosen));) ++chosen;
            kept[static_cast<size_t>(row)] = element(chosen);
            at[static_cast<size_t>(row)] = chosen;
        }
        if (in.empty() && whole)
            kept[0] = std::is_integral_v<T> ? std::numeric_limits<T>::min() : std::numeric_limits<T>::quiet_NaN();
        unpackElements(kept, values);
        if (!whole) unpackElements(at, positions);
    });
    if (whole) return values;
    return TensorList{values, positions};
}

Result<ValueType> inferWhole(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (isComplex(self.dtype)) return c.fail("complex numbers have no order");
    return ValueType(TensorType::contiguous(self.dtype, {}, self.device));
}
/// The smallest of a line's most frequent elements, and the last place where it stands.
EvalResult evalMode(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    const Lines lines(self.sizes(), self.rank() == 0 ? 0 : c.dimOf("dim", self.rank()));
    Tensor values = c.result(0), positions = c.result(1);
    withCompute(self.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> in = packElements<T>(self);
        std::vector<T> kept(static_cast<size_t>(values.numel()));
        std::vector<int64_t> at(kept.size()), order;
        for (int64_t row = 0; row < lines.rows; ++row) {
            rankLine(in, lines.start(row), lines, false, order);
            const auto element = [&](size_t rank) {
                return in[static_cast<size_t>(lines.start(row) + order[rank] * lines.inner)];
            };
            size_t most = 0, chosen = 0, run = 0;
            for (size_t rank = 0; rank < order.size(); ++rank) {
                run = rank > 0 && element(rank) == element(rank - 1) ? run + 1 : 1;
                if (run > most) {
                    most = run;
                    chosen = rank;
                }
            }
            kept[static_cast<size_t>(row)] = element(chosen);
            at[static_cast<size_t>(row)] = order[chosen];
        }
        unpackElements(kept, values);
        unpackElements(at, positions);
    });
    return TensorList{values, positions};
}

constexpr std::string_view kSortSamples = R"(
f32[2, 3, 4]!
f32[2, 3, 4]!, 1
f32[2, 3, 4]!, -2, True
f32[3, 4], 1
f32[2, 3][1, 2]!, 0
f64[5]!
f32[]
f32[], 0, True
bf16[4, 5]!, 1
f16[4]!
i64[3, 4], 0
i32[6], 0, True
u8[6]
i8[2, 3], 1
b8[6]
f32[0, 3], 1
f32[2, 0], 1
f32[2, 3, 4, 5][60, 1, 15, 3]!, 1
)";

constexpr OpDef kSortOps[] = {
    {.schema = "aten.sort.default(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
     .infer = inferSort,
     .eval = evalSort,
     .derive = [](Derivation& d) { deriveSelected(d, true); },
     .lower = lowerSort,
     .samples = kSortSamples},
    {.schema =
         "aten.sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
     .infer = inferSort,
     .eval = evalSort,
     .derive = [](Derivation& d) { deriveSelected(d, true); },
     .lower = lowerSort,
     .samples =
         "f32[2, 3], stable = True\nf32[2, 4], stable = True, dim = 0, descending = True\ni64[8], stable = True\ni64[8], stable = True, descending = True\nf32[], stable = False\nb8[5], stable = True"},
    {.schema = "aten.argsort.default(Tensor self, int dim=-1, bool descending=False) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.sort.default", {d.arg(0), d.arg("dim"), d.arg("descending")})[1];
     },
     .samples = "f32[2, 3]!\nf32[2, 3]!, 0, True\ni64[4]!"},
    {.schema = "aten.argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.sort.stable", {d.arg(0)},
                       {{"stable", d.arg("stable")}, {"dim", d.arg("dim")}, {"descending", d.arg("descending")}})[1];
     },
     .samples = "f32[2, 3], stable = True\nf32[2, 3]!, stable = True, dim = 0, descending = True"},
    // The k largest (or smallest), always in rank order, which `sorted` only asks for.
    {.schema =
         "aten.topk.default(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
     .infer = inferTopk,
     .eval =
         [](const EvalContext& c) {  // of a single number itself, whatever k says
             const int64_t count = c.in(size_t{0}).rank() == 0 ? 1 : toInt(c.number("k"));
             return ranked(c, c.flag("largest", true), 0, count);
         },
     .derive = [](Derivation& d) { deriveSelected(d, true); },
     .lower = [](LowerContext& c) { return lowerRanked(c, c.flag("largest", true), *c.size("k")); },
     .samples = R"(
f32[2, 3, 4]!, 2
f32[2, 3, 4]!, 2, 1
f32[2, 3, 4]!, 1, -3, False
f32[2, 3][1, 2]!, 2, 0
f64[5]!, 5
f32[], 1
bf16[4, 5]!, 3
f16[8]!, 2
i64[8]!, 3
i32[4, 3]!, 2, 0, False
f32[3, 4], 0
f32[0, 3], 2
)"},
    {.schema =
         "aten.kthvalue.default(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .infer = inferSelected,
     .eval = [](const EvalContext& c) { return ranked(c, false, toInt(c.number("k")) - 1, 1); },
     .derive = [](Derivation& d) { deriveSelected(d, keepsDims(d)); },
     .samples =
         "f32[2, 3, 4]!, 2\nf32[2, 3]!, 3, 1, True\nf64[5]!, 1, 0\nf32[], 1\ni64[6]!, 4\nf32[2, 3][1, 2]!, 2, 0"},
    // The lower of two middle elements.
    {.schema = "aten.median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .infer = inferSelected,
     .eval = evalMedian<false>,
     .derive = [](Derivation& d) { deriveSelected(d, keepsDims(d)); },
     .samples =
         "f32[2, 3, 4]!, 1\nf32[2, 4]!, -1, True\nf64[5]!, 0\nf32[], 0\ni64[6]!, 0\nf32[2, 3][1, 2]!, 0\nbf16[3, 4]!, 1"},
    {.schema = "aten.median.default(Tensor self) -> Tensor",
     .infer = inferWhole,
     .eval = evalMedian<false>,
     .derive = deriveShared,
     .samples = "f32[2, 3]!\nf64[5]!\nf32[]\ni64[4]!\nf32[2, 3][1, 2]!\nbf16[7]!"},
    {.schema = "aten.nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .infer = inferSelected,
     .eval = evalMedian<true>,
     .derive = [](Derivation& d) { deriveSelected(d, keepsDims(d)); },
     .samples = "f32[2, 3, 4]!, 1\nf32[2, 4]!, -1, True\ni64[6]!, 0"},
    {.schema = "aten.nanmedian.default(Tensor self) -> Tensor",
     .infer = inferWhole,
     .eval = evalMedian<true>,
     .derive = deriveShared,
     .samples = "f32[2, 3]!\ni64[4]!"},
    {.schema = "aten.mode.default(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
     .infer = inferSelected,
     .eval = evalMode,
     .derive = [](Derivation& d) { deriveSelected(d, keepsDims(d)); },
     .samples = "f32[2, 3, 4]!, 1\ni64[3, 8]<3\nf64[2, 4]!, 0, True\nb8[7]"},
};

}  // namespace

std::span<const OpDef> sortOps() { return kSortOps; }

}  // namespace cutaway
