#include "engine/loops/reducers.h"

#include <limits>

#include "engine/support/check.h"

namespace cutaway {
namespace {

using States = std::vector<Expr>;

Expr lowest(DType dtype) {
    if (dtype == DType::Bool) return Expr::boolean(false);
    if (isFloating(dtype)) return Expr::real(-std::numeric_limits<double>::infinity(), dtype);
    if (isUnsigned(dtype)) return Expr::integer(0, dtype);
    return Expr::integer(std::numeric_limits<int64_t>::min() >> (64 - 8 * byteSize(dtype)), dtype);
}
Expr highest(DType dtype) {
    if (dtype == DType::Bool) return Expr::boolean(true);
    if (isFloating(dtype)) return Expr::real(std::numeric_limits<double>::infinity(), dtype);
    // All ones; a u64 is kept in the same 64 bits.
    if (isUnsigned(dtype))
        return Expr::integer(byteSize(dtype) == 8 ? -1 : (int64_t{1} << (8 * byteSize(dtype))) - 1, dtype);
    return Expr::integer(std::numeric_limits<int64_t>::max() >> (64 - 8 * byteSize(dtype)), dtype);
}

using Types = std::vector<DType>;

DType summed(DType body, DType sums) { return body == DType::F32 ? sums : body; }
DType same(DType body) { return body; }
DType toI64(DType) { return DType::I64; }
DType toBool(DType) { return DType::Bool; }
States zero(const Types& states) { return {constantOf(Scalar(int64_t{0}), states[0])}; }
States one(const Types& states) { return {constantOf(Scalar(int64_t{1}), states[0])}; }

template <ExprKind kind>
Expr two(const Expr& a, const Expr& b) {
    return Expr::make(kind, {a, b}, a->dtype);
}
/// A reducer of one state whose step and combine are one operation.
template <ExprKind kind>
States fold(const States& a, const Expr& value, const Expr&) {
    return {two<kind>(a[0], Expr::cast(value, a[0]->dtype))};
}
template <ExprKind kind>
States join(const States& a, const States& b) {
    return {two<kind>(a[0], b[0])};
}
Expr first(const States& states, DType body) { return Expr::cast(states[0], body); }
Expr second(const States& states, DType) { return states[1]; }

/// (best, position of it), the first of equal ones; NaN beats everything. Position -1: nothing was seen.
template <ExprKind better>
States bestOf(const States& a, const Expr& value, const Expr& at, const Expr& otherwise) {
    const Expr none = compare(ExprKind::Lt, a[1], Expr::integer(0));
    Expr wins = compare(better, value, a[0]);
    if (isFloating(value->dtype)) {
        const Expr bestIsNumber = compare(ExprKind::Eq, a[0], a[0]), valueIsNan = compare(ExprKind::Ne, value, value);
        wins = (wins || valueIsNan) && bestIsNumber;
    }
    const Expr take = otherwise ? none || wins || otherwise : none || wins;
    return {Expr::where(take, value, a[0]), Expr::where(take, at, a[1])};
}
template <ExprKind better>
States bestStep(const States& a, const Expr& value, const Expr& at) {
    return bestOf<better>(a, value, at, Expr());
}
/// Lanes and parts hold positions in any order, so equal ones are told apart by position.
template <ExprKind better>
States bestMerge(const States& a, const States& b) {
    Expr equal = compare(ExprKind::Eq, a[0], b[0]);
    if (isFloating(a[0]->dtype))
        equal = equal || (compare(ExprKind::Ne, a[0], a[0]) && compare(ExprKind::Ne, b[0], b[0]));
    const States best = bestOf<better>(a, b[0], b[1], equal && compare(ExprKind::Lt, b[1], a[1]));
    const Expr empty = compare(ExprKind::Lt, b[1], Expr::integer(0));
    return {Expr::where(empty, a[0], best[0]), Expr::where(empty, a[1], best[1])};
}
template <Expr (*worst)(DType)>
States nothingSeen(const Types& states) {
    return {worst(states[0]), Expr::integer(-1)};
}
template <Expr (*worst)(DType)>
States onlyWorst(const Types& states) {
    return {worst(states[0])};
}
template <DType (*type)(DType)>
Types oneState(DType body, DType) {
    return {type(body)};
}
Types oneSum(DType body, DType sums) { return {summed(body, sums)}; }
Types valueAndPosition(DType body, DType) { return {body, DType::I64}; }

// sum(exp(x - max(x))): the largest element so far, and the sum of what has been seen relative to it.
Types valueAndSum(DType body, DType sums) { return {body, summed(body, sums)}; }
States nothingSummed(const Types& states) { return {lowest(states[0]), constantOf(Scalar(int64_t{0}), states[1])}; }
Expr isLowest(const Expr& e) { return compare(ExprKind::Eq, e, lowest(e->dtype)); }
Expr expOf(const Expr& a, const Expr& b) { return call1("exp", two<ExprKind::Sub>(a, b)); }
States sumExpStep(const States& a, const Expr& value, const Expr&) {
    const Expr larger = compare(ExprKind::Gt, value, a[0]);
    // exp(low - high) serves both cases: it rescales the sum if the element is larger, else it is what is added.
    const Expr low = Expr::where(larger, a[0], value), high = Expr::where(larger, value, a[0]);
    const Expr scale = Expr::cast(
        Expr::where(isLowest(low), constantOf(Scalar(int64_t{0}), value->dtype), expOf(low, high)), a[1]->dtype);
    const Expr one = constantOf(Scalar(int64_t{1}), a[1]->dtype);
    const Expr grown = two<ExprKind::Add>(two<ExprKind::Mul>(a[1], scale), one);
    return {two<ExprKind::Max>(a[0], value), Expr::where(larger, grown, two<ExprKind::Add>(a[1], scale))};
}
States sumExpMerge(const States& a, const States& b) {
    const Expr most = two<ExprKind::Max>(a[0], b[0]), zero = constantOf(Scalar(int64_t{0}), a[1]->dtype);
    const auto part = [&](const States& s) {
        const Expr scaled = two<ExprKind::Mul>(s[1], Expr::cast(expOf(s[0], most), s[1]->dtype));
        return Expr::where(isLowest(s[0]), zero, scaled);
    };
    return {most, two<ExprKind::Add>(part(a), part(b))};
}
/// NaN where the maximum is infinite or NaN, since x - max(x) is NaN then.
Expr sumExpResult(const States& states, DType body) {
    const Expr finite = compare(ExprKind::Lt, call1("abs", states[0]), highest(body));
    const Expr nan = Expr::real(std::numeric_limits<double>::quiet_NaN(), body);
    return Expr::where(finite, Expr::cast(states[1], body), nan);
}

using K = ExprKind;
constexpr Reducer kRows[] = {
    {"sum", oneSum, same, zero, fold<K::Add>, join<K::Add>, first},
    {"prod", oneState<same>, same, one, fold<K::Mul>, join<K::Mul>, first},
    {"max", oneState<same>, same, onlyWorst<lowest>, fold<K::Max>, join<K::Max>, first, false, true},
    {"min", oneState<same>, same, onlyWorst<highest>, fold<K::Min>, join<K::Min>, first, false, true},
    {"argmax", valueAndPosition, toI64, nothingSeen<lowest>, bestStep<K::Gt>, bestMerge<K::Gt>, second, true, true},
    {"argmin", valueAndPosition, toI64, nothingSeen<highest>, bestStep<K::Lt>, bestMerge<K::Lt>, second, true, true},
    {"any", oneState<toBool>, toBool, onlyWorst<lowest>, fold<K::Or>, join<K::Or>, first},
    {"all", oneState<toBool>, toBool, onlyWorst<highest>, fold<K::And>, join<K::And>, first},
    {"sum_exp", valueAndSum, same, nothingSummed, sumExpStep, sumExpMerge, sumExpResult},
};
static_assert(std::size(kRows) == static_cast<size_t>(ReduceKind::All) + 2);  // sum_exp has no ReduceKind

}  // namespace

const Reducer& reducer(int number) {
    CT_CHECK(number >= 0 && static_cast<size_t>(number) < std::size(kRows), "reductions name rows of the table");
    return kRows[number];
}

std::optional<int> reducerByName(std::string_view name) {
    for (size_t i = 0; i < std::size(kRows); ++i)
        if (kRows[i].name == name) return static_cast<int>(i);
    return std::nullopt;
}

}  // namespace cutaway
