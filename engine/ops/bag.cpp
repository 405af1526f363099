// Embedding bags: rows of a table summed, averaged or maximised over runs of indices, and their gradients.
#include <algorithm>
#include <bit>
#include <limits>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

enum class Mode : int64_t { Sum = 0, Mean = 1, Max = 2 };
Result<Mode> modeOf(const InferContext& c) {
    CT_TRY(const int64_t mode, c.integer("mode"));
    if (mode < 0 || mode > 2)
        return c.fail("unknown mode " + std::to_string(mode) + "; 0 sums, 1 averages, 2 maximises");
    return static_cast<Mode>(mode);
}

/// True where the CPU kernel sums whole rows at once and keeps no bookkeeping.
bool sumsRows(const InferContext& c, const TensorType& weight, Mode mode) {
    auto padding = c.integer("padding_idx", -1);
    const bool narrow = weight.dtype == DType::F32 || isHalf(weight.dtype);
    return mode == Mode::Sum && narrow && weight.strides[1] == SymInt(1) && padding && *padding < 0;
}
Result<ValueType> inferBag(const InferContext& c) {
    CT_TRY(const TensorType weight, c.tensor("weight"));
    CT_TRY(const TensorType indices, c.tensor("indices"));
    CT_TRY(const TensorType offsets, c.tensor("offsets"));
    CT_TRY(const Mode mode, modeOf(c));
    if (weight.rank() != 2 || !isFloating(weight.dtype)) return c.fail("the weight must be a floating-point matrix");
    if (indices.rank() != 1 || offsets.rank() != 1) return c.fail("indices and offsets must be vectors");
    for (const TensorType* type : {&indices, &offsets})
        if (type->dtype != DType::I64 && type->dtype != DType::I32)
            return c.fail("indices and offsets must be int64 or int32");
    if (c.has("per_sample_weights")) {
        CT_TRY(const TensorType factors, c.tensor("per_sample_weights"));
        if (mode != Mode::Sum) return c.fail("per_sample_weights go with mode 0 (sum) only");
        if (factors.dtype != weight.dtype) return c.fail("per_sample_weights and weight have different dtypes");
        if (!(factors.sizes == indices.sizes) && allInts(factors.sizes) && allInts(indices.sizes))
            return c.fail("per_sample_weights must have one element per index");
    }
    const bool last = c.flag("include_last_offset");
    const SymInt bags = last ? offsets.sizes[0] - SymInt(1) : offsets.sizes[0];
    if (exceeds(0, bags)) return c.fail("include_last_offset needs at least one offset");
    const DType dtype = promote(indices.dtype, offsets.dtype);
    const bool cpu = weight.device.type == DeviceType::Cpu;
    const SymInt tracked = cpu && sumsRows(c, weight, mode) ? SymInt(0) : indices.sizes[0];
    const SymInt counted = cpu ? bags : offsets.sizes[0];
    SymDims positions{cpu ? counted : SymInt(0)};
    if (mode == Mode::Max) positions = {bags, weight.sizes[1]};
    return ValueType(TupleType{TensorType::contiguous(weight.dtype, {bags, weight.sizes[1]}, weight.device),
                               TensorType::contiguous(dtype, {tracked}, weight.device),
                               TensorType::contiguous(dtype, {counted}, weight.device),
                               TensorType::contiguous(dtype, std::move(positions), weight.device)});
}

/// The bag of every index, by the offsets at which bags start.
Result<std::vector<int64_t>> bagsOf(const InferContext& c, const std::vector<int64_t>& offsets, int64_t count,
                                    int64_t bags) {
    std::vector<int64_t> out(static_cast<size_t>(count), 0);
    if (static_cast<int64_t>(offsets.size()) < bags)
        return c.fail(std::to_string(offsets.size()) + " offsets for " + std::to_string(bags) + " bags");
    if (bags > 0 && offsets[0] != 0) return c.fail("the first offset must be 0");
    for (int64_t bag = 0; bag < bags; ++bag) {
        const int64_t start = offsets[static_cast<size_t>(bag)],
                      end = bag + 1 < bags ? offsets[static_cast<size_t>(bag) + 1] : count;
        if (start > end || end > count)
            return c.fail("offset " + std::to_string(end) + " follows " + std::to_string(start) + " with " +
                          std::to_string(count) + " indices");
        for (int64_t i = start; i < end; ++i) out[static_cast<size_t>(i)] = bag;
    }
    return out;
}

EvalResult evalBag(const EvalContext& c) {
    const Tensor weight = c.in("weight"), factors = c.optional("per_sample_weights");
    const std::vector<int64_t> indices = packElements<int64_t>(c.in("indices")),
                               offsets = packElements<int64_t>(c.in("offsets"));
    const Mode mode = *modeOf(c);
    const int64_t padding = c.integerOr("padding_idx", -1), rows = weight.size(0);
    TensorList out;
    for (size_t i = 0; i < 4; ++i) out.push_back(Tensor::zeros(c.resultType(i).dtype, c.resultSizes(i)));
    const auto width = static_cast<size_t>(weight.size(1)), bags = static_cast<size_t>(out[0].size(0));
    auto bagOf = bagsOf(c, offsets, static_cast<int64_t>(indices.size()), static_cast<int64_t>(bags));
    if (!bagOf) return std::move(bagOf).error();
    std::vector<int64_t> counts(bags, 0), positions(bags * width, 0);
    std::optional<int64_t> wrong;
    const std::vector<double> table = packElements<double>(weight),
                              scale = factors.defined() ? packElements<double>(factors) : std::vector<double>();
    std::vector<double> sums(bags * width, 0.0);
    for (size_t i = 0; i < indices.size() && !wrong && bags > 0; ++i) {
        if (indices[i] < 0 || indices[i] >= rows) wrong = indices[i];
        if (wrong || indices[i] == padding) continue;
        const auto bag = static_cast<size_t>((*bagOf)[i]);
        const bool first = counts[bag]++ == 0;
        for (size_t k = 0; k < width; ++k) {
            const double value = table[static_cast<size_t>(indices[i]) * width + k];
            double& sum = sums[bag * width + k];
            if (mode != Mode::Max) {
                sum += scale.empty() ? value : value * scale[i];
            } else if (first || value > sum) {
                sum = value;
                positions[bag * width + k] = indices[i];
            }
        }
    }
    if (mode == Mode::Mean)
        for (size_t i = 0; i < sums.size(); ++i)
            if (counts[i / width] > 0) sums[i] /= static_cast<double>(counts[i / width]);
    unpackElements(sums, out[0]);
    if (wrong)
        return c.fail("index " + std::to_string(*wrong) + " is out of range for a table of " + std::to_string(rows) +
                      " rows");
    if (out[1].numel() > 0) unpackElements(*bagOf, out[1]);
    if (mode == Mode::Sum) return out;
    counts.resize(static_cast<size_t>(out[2].numel()), 0);
    unpackElements(counts, out[2]);
    if (mode == Mode::Max) unpackElements(positions, out[3]);
    else if (out[3].numel() > 0) unpackElements(counts, out[3]);
    return out;
}

Values decomposeBag(Decomposition& d) {
    const Value weight = d.in("weight");
    std::vector<Argument> args;
    for (size_t i = 0; i < 8; ++i) args.push_back(d.arg(i));
    int64_t padding = -1;
    if (d.op().schema()->find("padding_idx") >= 0 && d.has("padding_idx")) {
        auto given = d.integer("padding_idx");
        const SymInt rows = weight.rank() == 2 ? weight.size(0) : SymInt(0);
        if (!given || !rows.isInt() || *given < -rows.value() || *given >= rows.value())
            return refuse(d, "padding_idx lies outside the table");
        padding = *given < 0 ? *given + rows.value() : *given;
    }
    args.push_back(padding);
    return itemsOf(
        d.call(weight.type().requiresGrad ? "aten._embedding_bag.default" : "aten._embedding_bag_forward_only.default",
               std::move(args)));
}

// -- gradients

Result<ValueType> inferBagBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor("grad"));
    CT_TRY(const SymInt rows, c.size("num_weights"));
    CT_TRY_VOID(modeOf(c));
    if (gradient.rank() != 2 || !isFloating(gradient.dtype))
        return c.fail("the gradient must be a floating-point matrix, not " + gradient.text());
    if (c.op().schema()->find("sparse") >= 0 && c.flag("sparse"))
        return unsupported(c.op().name() + ": no sparse gradients", {}, {"use sparse=False"});
    return ValueType(TensorType::contiguous(gradient.dtype, {rows, gradient.sizes[1]}, gradient.device));
}
EvalResult evalBagBackward(const EvalContext& c) {
    const Tensor gradient = c.in("grad"), factors = c.optional("per_sample_weights"), indexTensor = c.in("indices");
    const std::vector<int64_t> indices = packElements<int64_t>(indexTensor),
                               counts = packElements<int64_t>(c.in("bag_size"));
    const Mode mode = *modeOf(c);
    const int64_t padding = c.integerOr("padding_idx", -1);
    if (gradient.size(0) == 0) return Tensor::zeros(c.resultType().dtype, c.resultSizes());  // no index is in a bag
    std::vector<int64_t> bagOf = packElements<int64_t>(c.in("offset2bag"));
    const auto bags = static_cast<size_t>(gradient.size(0)), width = static_cast<size_t>(gradient.size(1));
    // The forward op leaves the table of bags out where it sums whole rows.
    if (bagOf.size() != indices.size() && c.op().schema()->find("offsets") >= 0) {
        auto made = bagsOf(c, packElements<int64_t>(c.in("offsets")), static_cast<int64_t>(indices.size()),
                           static_cast<int64_t>(bags));
        if (!made) return std::move(made).error();
        bagOf = std::move(*made);
    }
    if (bagOf.size() != indices.size()) return c.fail("offset2bag does not name a bag for every index");
    Tensor out = c.result();
    const int64_t rows = out.size(0);
    std::vector<int64_t> frequency(static_cast<size_t>(rows), 0);
    for (int64_t index : indices) {
        if (index < 0 || index >= rows)
            return c.fail("index " + std::to_string(index) + " is out of range for a table of " + std::to_string(rows) +
                          " rows");
        ++frequency[static_cast<size_t>(index)];
    }
    const std::vector<double> g = packElements<double>(gradient),
                              scale = factors.defined() ? packElements<double>(factors) : std::vector<double>();
    if (counts.size() < bags && mode != Mode::Sum) return c.fail("bag_size does not have a number for every bag");
    if (!scale.empty() && scale.size() != indices.size())
        return c.fail("per_sample_weights does not have a number for every index");
    std::vector<double> sums(static_cast<size_t>(rows) * width, 0.0);
    if (mode == Mode::Max) {
        const std::vector<int64_t> positions = packElements<int64_t>(c.in("maximum_indices"));
        if (positions.size() < bags * width)
            return c.fail("maximum_indices does not have a row for every element of the gradient");
        if (std::any_of(positions.begin(), positions.end(), [&](int64_t at) { return at < 0 || at >= rows; }))
            return c.fail("maximum_indices names a row that the table does not have");
        for (size_t i = 0; i < bags * width; ++i)
            if (counts[i / width] > 0) sums[static_cast<size_t>(positions[i]) * width + i % width] += g[i];
    }
    for (size_t i = 0; i < indices.size() && mode != Mode::Max; ++i) {
        const auto row = static_cast<size_t>(indices[i]), bag = static_cast<size_t>(bagOf[i]);
        if (indices[i] == padding || bag >= bags) continue;
        double factor = scale.empty() ? 1 : scale[i];
        if (c.flag("scale_grad_by_freq")) factor /= static_cast<double>(frequency[row]);
        if (mode == Mode::Mean) factor /= static_cast<double>(std::max<int64_t>(counts[bag], 1));
        for (size_t k = 0; k < width; ++k) sums[row * width + k] += factor * g[bag * width + k];
    }
    unpackElements(sums, out);
    return out;
}
EvalResult evalFactorsBackward(const EvalContext& c) {
    const std::vector<double> g = packElements<double>(c.in("grad")), table = packElements<double>(c.in("weight"));
    const std::vector<int64_t> indices = packElements<int64_t>(c.in("indices"));
    const int64_t padding = c.integerOr("padding_idx", -1), bags = c.in("grad").size(0);
    if (bags == 0) return Tensor::zeros(c.resultType().dtype, c.resultSizes());  // no index is in a bag
    std::vector<int64_t> bagOf = packElements<int64_t>(c.in("offset2bag"));
    if (bagOf.size() != indices.size()) {
        auto made = bagsOf(c, packElements<int64_t>(c.in("offsets")), static_cast<int64_t>(indices.size()), bags);
        if (!made) return std::move(made).error();
        bagOf = std::move(*made);
    }
    const auto width = static_cast<size_t>(c.in("grad").size(1));
    const int64_t rows = c.in("weight").size(0);
    for (size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] < 0 || indices[i] >= rows)
            return c.fail("index " + std::to_string(indices[i]) + " is out of range for a table of " +
                          std::to_string(rows) + " rows");
        if (bagOf[i] < 0 || bagOf[i] >= bags)
            return c.fail("offset2bag names bag " + std::to_string(bagOf[i]) + " of " + std::to_string(bags));
    }
    std::vector<double> out(indices.size(), 0.0);
    for (size_t i = 0; i < indices.size(); ++i)
        for (size_t k = 0; k < width && indices[i] != padding; ++k)
            out[i] += g[static_cast<size_t>(bagOf[i]) * width + k] * table[static_cast<size_t>(indices[i]) * width + k];
    Tensor result = c.result();
    unpackElements(out, result);
    return result;
}
void deriveBag(Derivation& d) {
    const Value dy = d.dy(0);
    if (d.needs(6))
        d.input(6) = d.call(
            "aten._embedding_bag_per_sample_weights_backward.default",
            {dy, d.in("weight"), d.in("indices"), d.in("offsets"), d.out(1), d.arg("mode"), d.arg("padding_idx")});
    if (d.needs(0))
        d.input(0) = d.call("aten._embedding_bag_backward.default",
                            {dy, d.in("indices"), d.in("offsets"), d.out(1), d.out(2), d.out(3),
                             Argument(d.in(0).size(0)), d.arg("scale_grad_by_freq"), d.arg("mode"), d.arg("sparse"),
                             d.arg("per_sample_weights"), d.arg("padding_idx")});
}

// -- as kernels

Expr integerAt(LowerContext& c, std::string_view param, const Expr& at) {
    return Expr::cast(c.loadAt(static_cast<size_t>(c.position(param)), {at}), DType::I64);
}

/// The run of indices that a bag holds. Offsets that bagsOf() refuses fail the run.
struct BagRange {
    Expr start, count;
};
BagRange bagRange(LowerContext& c, const SymInt& bags, const Expr& bag) {
    const SymInt total = c.in("indices").sizes[0];
    const Expr zero = Expr::integer(0), one = Expr::integer(1), given = integerAt(c, "offsets", bag);
    const Expr late = compare(ExprKind::Eq, bag, zero) && compare(ExprKind::Ne, given, zero);
    const Expr start = LowerContext::checkedIndex(Expr::where(late, Expr::integer(-1), given), total + SymInt(1));
    const Expr next = c.guarded(
        compare(ExprKind::Lt, bag + one, bags.expr()), [&] { return integerAt(c, "offsets", bag + one); },
        total.expr());
    const Expr end = LowerContext::checkedIndex(next, total + SymInt(1));
    return {start, LowerContext::checkedIndex(end - start, total + SymInt(1))};
}

/// The bag that index number `i` lies in: the last one that begins at or before it, by binary search. Null if the
/// number of bags is symbolic, since the number of steps follows from it.
Expr bagHolding(LowerContext& c, const SymInt& bags, const Expr& i) {
    if (!bags.isInt()) return Expr();
    Expr bag = Expr::integer(0);
    for (int64_t step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(bags.value(), 1))));
         step > 0; step /= 2) {
        const Expr further = bag + Expr::integer(step);
        const Expr begun = c.guarded(
            compare(ExprKind::Lt, further, bags.expr()),
            [&] { return compare(ExprKind::Le, integerAt(c, "offsets", further), i); }, Expr::boolean(false));
        bag = Expr::where(begun, further, bag);
    }
    return bag;
}

/// Elements and counts of one bag.
class BagRule {
  public:
    BagRule(LowerContext& c, const Expr& bag)
        : m_c(&c),
          m_range(bagRange(c, c.out(0).sizes[0], bag)),
          m_padding(c.integerOr("padding_idx", -1)),
          m_scaled(c.has("per_sample_weights")) {}

    Expr row(const Expr& r) {
        return LowerContext::checkedIndex(integerAt(*m_c, "indices", m_range.start + r), m_c->in("weight").sizes[0]);
    }
    /// How many of its indices are not padding.
    Expr counted() {
        if (m_padding < 0) return m_range.count;
        return m_c->reduceUpTo(ReduceKind::Sum, m_range.count,
                               [&](const Expr& r) { return Expr::cast(logicalNot(isPadding(r)), DType::I64); });
    }
    Expr sum(const Expr& k) {
        return m_c->reduceUpTo(ReduceKind::Sum, m_range.count, [&](const Expr& r) {
            Expr value = element(row(r), k);
            if (m_scaled) {
                const auto factors = static_cast<size_t>(m_c->position("per_sample_weights"));
                value = value * m_c->loadAt(factors, {m_range.start + r});
            }
            return m_padding < 0 ? value : Expr::where(isPadding(r), constantLike(value, 0), value);
        });
    }
    /// The first element, or the largest if that is greater: a NaN stays where it comes first, and never replaces.
    struct Largest {
        Expr value, row;
    };
    Largest largest(const Expr& k) {
        const Expr& count = m_range.count;
        const Expr zero = Expr::integer(0);
        const Expr first = m_padding < 0 ? zero : m_c->reduceUpTo(ReduceKind::Min, count, [&](const Expr& r) {
            return Expr::where(isPadding(r), count, r);
        });
        const Expr any = compare(ExprKind::Lt, first, count);
        auto candidate = [&](const Expr& r) {
            const Expr value = element(row(r), k);
            Expr skipped = Expr::call("isnan", {value}, DType::Bool);
            if (m_padding >= 0) skipped = skipped || isPadding(r);
            return Expr::where(skipped, constantLike(value, -std::numeric_limits<double>::infinity()), value);
        };
        const Expr most = m_c->reduceUpTo(ReduceKind::Max, count, candidate);
        const Expr before = m_c->guarded(
            any, [&] { return element(row(first), k); }, constantLike(most, 0));
        const Expr greater = compare(ExprKind::Gt, most, before);
        Largest found{Expr::where(greater, most, before), Expr()};
        if (m_c->resultNumber() != 3) return found;
        const Expr at = Expr::where(greater, m_c->reduceUpTo(ReduceKind::ArgMax, count, candidate), first);
        found.row = m_c->guarded(
            any, [&] { return row(at); }, zero);
        return found;
    }

  private:
    Expr isPadding(const Expr& r) { return compare(ExprKind::Eq, row(r), Expr::integer(m_padding)); }
    Expr element(const Expr& row, const Expr& k) {
        return m_c->loadAt(static_cast<size_t>(m_c->position("weight")), {row, k});
    }

    LowerContext* m_c;
    BagRange m_range;
    int64_t m_padding;
    bool m_scaled;
};

Expr lowerBag(LowerContext& c) {
    const Mode mode = *modeOf(c);
    const size_t result = c.resultNumber();
    const std::vector<Expr>& at = c.index();
    const SymInt bags = c.out(0).sizes[0];
    const Expr zero = Expr::integer(0);
    if (c.out(result).sizes[0] == SymInt(0)) return zero;
    if (result == 1) {
        const Expr bag = bagHolding(c, bags, at[0]);
        if (!bag) return Expr();
        const BagRange range = bagRange(c, bags, bag);
        const Expr inside = compare(ExprKind::Lt, at[0] - range.start, range.count);
        return LowerContext::checkedIndex(Expr::where(inside, bag, Expr::integer(-1)), bags);
    }
    if (mode == Mode::Sum && result > 1) return zero;
    if (result == 2 || (result == 3 && mode == Mode::Mean))
        return c.guarded(
            compare(ExprKind::Lt, at[0], bags.expr()), [&] { return BagRule(c, at[0]).counted(); }, zero);
    BagRule rule(c, at[0]);
    if (mode == Mode::Max) return result == 3 ? rule.largest(at[1]).row : rule.largest(at[1]).value;
    const Expr sum = rule.sum(at[1]);
    if (mode == Mode::Sum) return sum;
    return sum / Expr::cast(Expr::make(ExprKind::Max, {rule.counted(), Expr::integer(1)}), sum->dtype);
}

Expr lowerFactorsBackward(LowerContext& c) {
    const Expr i = c.index()[0], row = LowerContext::checkedIndex(integerAt(c, "indices", i), c.in("weight").sizes[0]);
    const SymInt bags = c.in("grad").sizes[0];
    const bool known = c.in("offset2bag").sizes[0] == c.in("indices").sizes[0];
    Expr bag = known ? integerAt(c, "offset2bag", i) : bagHolding(c, bags, i);
    if (!bag) return Expr();
    bag = LowerContext::checkedIndex(bag, bags);
    const Expr sum = c.reduce(ReduceKind::Sum, {c.in("grad").sizes[1]}, [&](const std::vector<Expr>& k) {
        return c.loadAt(static_cast<size_t>(c.position("grad")), {bag, k[0]}) *
               c.loadAt(static_cast<size_t>(c.position("weight")), {row, k[0]});
    });
    const int64_t padding = c.integerOr("padding_idx", -1);
    if (padding < 0) return sum;
    return Expr::where(compare(ExprKind::Eq, row, Expr::integer(padding)), constantLike(sum, 0), sum);
}

// Offsets are drawn from 0..0 or have one element, so that they start at 0 and do not fall.
constexpr std::string_view kBags = R"(
f32[10, 4], i64[8]<10, i64[1]<1
f32[10, 4], i64[8]<10, i64[3]<1, False, 1
f32[10, 4], i64[8]<10, i64[2]<1, False, 2
f64[10, 4], i64[8]<10, i64[2]<1, False, 0
f32[10, 4], i64[8]<10, i64[2]<1, False, 0, False, f32[8]
f32[10, 4], i32[8]<10, i32[2]<1, True, 1
f32[10, 4][1, 10], i64[3]<10, i64[1]<1, False, 0
f32[10, 4], i64[0]<10, i64[2]<1, False, 1
)";
#define CUTAWAY_BAG_PARAMS \
    "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False"

constexpr OpDef kBagOps[] = {
    // One row per bag; then the bag of each index, the size of each bag, and where maxima came from, as far as the
    // gradient needs them.
    {.schema =
         "aten._embedding_bag.default(" CUTAWAY_BAG_PARAMS ", int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
     .infer = inferBag,
     .eval = evalBag,
     .derive = deriveBag,
     .lower = lowerBag,
     .samples = kBags},
    {.schema = "aten._embedding_bag_forward_only.default(" CUTAWAY_BAG_PARAMS
               ", int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
     .infer = inferBag,
     .eval = evalBag,
     .lower = lowerBag,
     .samples = kBags},
    shorthand("aten.embedding_bag.default(" CUTAWAY_BAG_PARAMS ") -> (Tensor, Tensor, Tensor, Tensor)", decomposeBag,
              kBags),
    shorthand(
        "aten.embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, "
        "bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
        decomposeBag,
        "f32[10, 4], i64[8]<10, i64[2]<1, False, 1, False, None, False, None\nf32[5, 4], i64[8]<5, i64[2]<1, False, 1, False, None, False, 3\nf32[5, 4], i64[8]<5, i64[2]<1, False, 2, False, None, False, -2"),
    {.schema =
         "aten._embedding_bag_backward.default(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, "
         "bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
     .infer = inferBagBackward,
     .eval = evalBagBackward,
     .samples =
         "f32[2, 4], i64[8]<10, i64[2]<1, i64[8]<2, i64[2]>0, i64[2], 10, False, 1, False, None\nf32[2, 4], i64[8]<10, i64[2]<1, i64[8]<2, i64[2]>0, i64[2, 4]<10, 10, False, 2, False, None"},
    {.schema =
         "aten._embedding_bag_dense_backward.default(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, "
         "bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
     .infer = inferBagBackward,
     .eval = evalBagBackward,
     .samples =
         "f32[2, 4], i64[8]<10, i64[8]<2, i64[2]>0, i64[2], 10, False, 1, None\nf32[2, 4], i64[8]<10, i64[8]<2, i64[2]>0, i64[2], 10, False, 0, f32[8], 3"},
    {.schema =
         "aten._embedding_bag_per_sample_weights_backward.default(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType gradient, c.tensor("grad"));
         CT_TRY(const TensorType weight, c.tensor("weight"));
         CT_TRY(const TensorType indices, c.tensor("indices"));
         CT_TRY(const Mode mode, modeOf(c));
         CT_TRY(const TensorType offsets, c.tensor("offsets"));
         CT_TRY(const TensorType bagOf, c.tensor("offset2bag"));
         if (gradient.rank() != 2 || weight.rank() != 2 || !(gradient.sizes[1] == weight.sizes[1]) ||
             indices.rank() != 1 || offsets.rank() != 1 || bagOf.rank() != 1)
             return c.fail("needs a gradient and a table of rows of one width, and lists of indices, offsets and bags");
         if (gradient.dtype != weight.dtype)
             return c.fail("the gradient " + gradient.text() + " does not have the dtype of " + weight.text());
         if (mode != Mode::Sum) return c.fail("per_sample_weights go with mode 0 (sum) only");
         return ValueType(TensorType::contiguous(gradient.dtype, indices.sizes, gradient.device));
     },
     .eval = evalFactorsBackward,
     .lower = lowerFactorsBackward,
     .samples = "f32[2, 4], f32[10, 4], i64[8]<10, i64[2]<1, i64[8]<1, 0"},
};
#undef CUTAWAY_BAG_PARAMS

}  // namespace

std::span<const OpDef> bagOps() { return kBagOps; }

}  // namespace cutaway
