// Positions in sorted sequences: bucketize and searchsorted.
#include <cmath>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

Result<TensorType> foundType(const InferContext& c, const TensorType& values, const TensorType& sequence) {
    if (isComplex(values.dtype) || isComplex(sequence.dtype)) return c.fail("complex numbers have no order");
    TensorType type =
        TensorType::contiguous(c.flag("out_int32") ? DType::I32 : DType::I64, values.sizes, sequence.device);
    return type;
}
/// "left" finds the first place that keeps the order, "right" the last.
Result<bool> rightmost(const InferContext& c) {
    const std::string side = c.op().schema()->find("side") >= 0 ? c.text("side") : std::string();
    if (side != "" && side != "left" && side != "right") return c.fail("side must be 'left' or 'right'");
    if (side == "left" && c.flag("right")) return c.fail("side='left' contradicts right=True");
    return side == "right" || c.flag("right");
}
Result<ValueType> inferSearch(const InferContext& c) {
    CT_TRY(const TensorType sequence, c.tensor("sorted_sequence"));
    CT_TRY(const TensorType values, c.tensor("self"));
    CT_TRY_VOID(rightmost(c));
    if (sequence.rank() == 0) return c.fail("the sequence has no dim");
    if (sequence.rank() > 1) {
        if (values.rank() != sequence.rank()) return c.fail("a sequence of several dims needs values of as many");
        for (size_t i = 0; i + 1 < sequence.sizes.size(); ++i)
            if (differ(sequence.sizes[i], values.sizes[i]))
                return c.fail("sequence and values differ in dim " + std::to_string(i));
    }
    if (c.has("sorter")) {
        CT_TRY(const TensorType sorter, c.tensor("sorter"));
        if (sorter.dtype != DType::I64 || !(sorter.sizes == sequence.sizes))
            return c.fail("the sorter must be int64 and of the sequence's shape");
    }
    CT_TRY(TensorType type, foundType(c, values, sequence));
    return ValueType(std::move(type));
}
Result<ValueType> inferBucketize(const InferContext& c) {
    CT_TRY(const TensorType values, c.tensor("self"));
    CT_TRY(const TensorType boundaries, c.tensor("boundaries"));
    if (boundaries.rank() != 1) return c.fail("the boundaries must be a vector");
    CT_TRY(TensorType type, foundType(c, values, boundaries));
    return ValueType(std::move(type));
}

/// NaN sorts last.
template <class T>
bool before(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
        if (std::isnan(b)) return !std::isnan(a);
    return a < b;
}
template <class T>
std::vector<int64_t> positions(const std::vector<T>& sequence, const std::vector<int64_t>& sorter,
                               const std::vector<T>& values, size_t length, size_t perRow, bool right) {
    std::vector<int64_t> out;
    for (size_t i = 0; i < values.size(); ++i) {
        const size_t row = perRow == 0 ? 0 : i / perRow * length;
        const auto element = [&](size_t k) {
            return sequence[row + (sorter.empty() ? k : static_cast<size_t>(sorter[row + k]))];
        };
        size_t low = 0, high = length;
        while (low < high) {
            const size_t middle = (low + high) / 2;
            const bool goesRight = right ? !before(values[i], element(middle)) : before(element(middle), values[i]);
            if (goesRight) low = middle + 1;
            else high = middle;
        }
        out.push_back(static_cast<int64_t>(low));
    }
    return out;
}
EvalResult evalSearch(const EvalContext& c, std::string_view sequenceParam) {
    const Tensor sequence = c.in(sequenceParam), values = c.in("self");
    const Tensor sorter = c.op().schema()->find("sorter") >= 0 ? c.optional("sorter") : Tensor();
    std::vector<int64_t> order = sorter.defined() ? packElements<int64_t>(sorter) : std::vector<int64_t>();
    for (int64_t at : order)
        if (at < 0 || at >= sequence.size(-1))
            return c.fail("the sorter holds " + std::to_string(at) + ", outside the sequence");
    const bool right = *rightmost(c);
    const auto length = static_cast<size_t>(sequence.size(-1));
    const size_t perRow = sequence.rank() > 1 ? static_cast<size_t>(values.size(-1)) : 0;
    Tensor out = c.result();
    const DType dtype = values.dtype() == sequence.dtype()                      ? values.dtype()
                        : isFloating(promote(values.dtype(), sequence.dtype())) ? DType::F64
                                                                                : DType::I64;
    withCompute(dtype, [&](auto tag) {
        using T = decltype(tag);
        unpackElements(positions<T>(packElements<T>(sequence), order, packElements<T>(values), length, perRow, right),
                       out);
    });
    return out;
}
/// The steps of positions(), as many as a sequence of its length may take. Places are counted in i32, of which a
/// register holds twice as many as of indices.
Expr lowerSearch(LowerContext& c, std::string_view sequenceParam) {
    const auto sequenceAt = static_cast<size_t>(c.position(sequenceParam)),
               valuesAt = static_cast<size_t>(c.position("self"));
    const TensorType sequence = c.in(sequenceAt), values = c.in(valuesAt);
    const auto length = sequence.sizes.back().asInt();
    constexpr int64_t kLongest = int64_t{1} << 30;  // two places together fit into an i32
    if (!length || *length > kLongest || (c.op().schema()->find("sorter") >= 0 && c.has("sorter"))) return Expr();
    const DType common = values.dtype == sequence.dtype                      ? computeTypeOf(values.dtype)
                         : isFloating(promote(values.dtype, sequence.dtype)) ? DType::F64
                                                                             : DType::I64;
    const DType dtype = common == DType::Bool ? DType::I64 : common;
    const auto isNan = [](const Expr& x) {
        return isFloating(x->dtype) ? Expr::call("isnan", {x}, DType::Bool) : Expr::boolean(false);
    };
    const auto isBefore = [&](const Expr& a, const Expr& b) {
        return Expr::where(isNan(b), logicalNot(isNan(a)), compare(ExprKind::Lt, a, b));
    };
    const auto wide = [&](const Expr& x) { return Expr::cast(x, dtype); };
    const bool right = *rightmost(c);
    const Expr value = wide(c.loadAt(valuesAt, c.index()));
    const auto number = [](int64_t n) { return Expr::integer(n, DType::I32); };
    const auto make = [](ExprKind kind, const Expr& a, const Expr& b) { return Expr::make(kind, {a, b}, DType::I32); };
    Expr low = number(0), high = number(*length);
    for (int64_t left = *length; left > 0; left /= 2) {
        const Expr open = compare(ExprKind::Lt, low, high);
        const Expr middle = make(ExprKind::ShiftRight, make(ExprKind::Add, low, high), number(1));
        std::vector<Expr> at(sequence.sizes.size() > 1 ? c.index() : std::vector<Expr>(1));
        at.back() = Expr::cast(middle, DType::I64);
        const Expr further = c.guarded(
            open,
            [&] {
                const Expr element = wide(c.loadAt(sequenceAt, at));
                return right ? logicalNot(isBefore(value, element)) : isBefore(element, value);
            },
            Expr::boolean(false));
        low = Expr::where(further, make(ExprKind::Add, middle, number(1)), low);
        high = Expr::where(further || logicalNot(open), high, middle);
    }
    return Expr::cast(low, DType::I64);
}
/// The literal `self` of the overloads for numbers, as a 0-d tensor.
Value constantTensor(Decomposition& d, DType dtype, Device device) {
    return d.call("aten.scalar_tensor.default", {d.arg("self")},
                  {{"dtype", dtype}, {"layout", Layout::Strided}, {"device", device}});
}

constexpr OpDef kSearchOps[] = {
    // The bucket of each value: how many boundaries lie before it.
    {.schema =
         "aten.bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferBucketize,
     .eval = [](const EvalContext& c) { return evalSearch(c, "boundaries"); },
     .lower = [](LowerContext& c) { return lowerSearch(c, "boundaries"); },
     .samples = R"(
f32[4, 5], f32[1]
f32[4, 5], f32[1], right=True
i64[7], i64[1], out_int32=True
f32[3, 2][1, 3], f32[1]
f32[], f32[1]
f32[0], f32[1]
bf16[4], bf16[1]
f32[4], i64[1]
f32[4], f32[0]
f32[4, 3], f32[5][0]
i64[9], i64[4]<1, right=True
)"},
    shorthand(
        "aten.bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        [](Decomposition& d) -> Values {
            const Value boundaries = d.in("boundaries");
            return d.call("aten.bucketize.Tensor",
                          {constantTensor(d, boundaries.dtype(), boundaries.type().device), boundaries},
                          {{"out_int32", d.arg("out_int32")}, {"right", d.arg("right")}});
        },
        "0.5, f32[1]\n2, i64[1], right=True"),
    {.schema =
         "aten.searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferSearch,
     .eval = [](const EvalContext& c) { return evalSearch(c, "sorted_sequence"); },
     .lower = [](LowerContext& c) { return lowerSearch(c, "sorted_sequence"); },
     .samples = R"(
f32[1], f32[4, 5]
f32[3, 1], f32[3, 4], right=True
f32[3, 1], f32[3, 4], side='right'
i64[1], i64[3], out_int32=True
f32[1], f32[]
f64[2, 0], f64[2, 3]
f32[2], f32[5], sorter=i64[2]<1
i64[5]<1, i64[3, 4]
i64[2, 5]<1, i64[2, 7], right=True
i32[5]<1, f32[7]
)"},
    shorthand(
        "aten.searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
        [](Decomposition& d) -> Values {
            const Value sequence = d.in(0);
            return d.call("aten.searchsorted.Tensor",
                          {sequence, constantTensor(d, sequence.dtype(), sequence.type().device)},
                          {{"out_int32", d.arg("out_int32")},
                           {"right", d.arg("right")},
                           {"side", d.arg("side")},
                           {"sorter", d.arg("sorter")}});
        },
        "f32[1], 0.25\nf32[1], -9.0, right=True"),
};

}  // namespace

std::span<const OpDef> searchOps() { return kSearchOps; }

}  // namespace cutaway
