// Random numbers of distributions: normal, exponential and their kin, counts, and classes by their weights. Those that
// PyTorch's compiler leaves to a kernel are one call here, too.
#include <random>

#include "engine/ops/build.h"
#include "engine/ops/draw.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/ops/view_rules.h"

namespace cutaway {
namespace {

/// The distance from 1 to the next larger number of the dtype.
double distributionEpsilon(DType dtype) {
    switch (dtype) {
        case DType::F64: return 0x1p-52;
        case DType::F16: return 0x1p-10;
        case DType::BF16: return 0x1p-7;
        default: return 0x1p-23;
    }
}

/// Normal numbers whose mean or deviation, or both, are tensors.
Result<ValueType> inferNormalAround(const InferContext& c) {
    std::vector<TensorType> given;
    for (const char* param : {"mean", "std"}) {
        if (c.arg(param).node() == nullptr) continue;
        CT_TRY(const TensorType type, c.tensor(param));
        if (!isFloating(type.dtype)) return c.fail("needs floating-point tensors, not " + type.text());
        given.push_back(type);
    }
    if (given.size() == 2) {
        const SymDims shapes[] = {given[0].sizes, given[1].sizes};
        CT_TRY(SymDims sizes, broadcastSizes(shapes));
        return contiguousOf(c, std::move(sizes), given[0].dtype, given[0].device);
    }
    return contiguousOf(c, given[0].sizes, given[0].dtype, given[0].device);
}
EvalResult evalNormalAround(const EvalContext& c) {
    Tensor out = c.result();
    const auto given = [&](const char* param) {
        if (c.arg(param).node() == nullptr) return std::vector<double>(static_cast<size_t>(out.numel()), c.real(param));
        return spread(c, c.in(param));
    };
    const std::vector<double> mean = given("mean"), deviation = given("std");
    for (const double one : deviation)
        if (!(one >= 0)) return c.fail("the standard deviations must not be negative");
    const uint64_t key = nextKey(c);
    std::vector<double> numbers(mean.size());
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = mean[i] + deviation[i] * normal(philox(key, i));
    unpackElements(numbers, out);
    return out;
}

/// A distribution's parameter; the default is an integer literal, as PyTorch's decompositions write it.
OperandValue distributionParameter(Decomposition& d, const char* name, int64_t fallback) {
    const double value = d.real(name, static_cast<double>(fallback));
    return value == static_cast<double>(fallback) ? OperandValue(fallback) : OperandValue(value);
}

Result<ValueType> inferMultinomial(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor("self"));
    CT_TRY(const SymInt count, c.size("num_samples"));
    if (!isFloating(self.dtype)) return c.fail("needs floating-point weights, not " + self.text());
    if (self.rank() != 1 && self.rank() != 2)
        return c.fail("needs one row of weights or a matrix of them, not " + self.text());
    if (exceeds(1, count)) return c.fail("needs at least one sample");
    const SymInt& classes = self.sizes.back();
    if (!c.flag("replacement") && exceeds(count, classes))
        return c.fail("cannot take " + count.text() + " of " + classes.text() + " without replacement");
    SymDims sizes = self.sizes;
    sizes.back() = count;
    return contiguousOf(c, std::move(sizes), DType::I64, self.device);
}
/// Without replacement by a race: each class arrives after an exponential time, the faster the heavier it is.
EvalResult evalMultinomial(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor self = c.in("self");
    const std::vector<double> weights = packElements<double>(self);
    const auto classes = static_cast<size_t>(self.sizes().back()), count = static_cast<size_t>(out.sizes().back());
    const size_t rows = classes == 0 ? 0 : weights.size() / classes;
    const uint64_t key = nextKey(c);
    uint64_t draws = 0;
    const auto next = [&] { return uniform(philox(key, draws++)); };
    std::vector<int64_t> taken(static_cast<size_t>(out.numel()));
    for (size_t row = 0; row < rows; ++row) {
        const double* weight = weights.data() + row * classes;
        double total = 0;
        size_t possible = 0;
        for (size_t i = 0; i < classes; ++i) {
            if (!(weight[i] >= 0) || std::isinf(weight[i]))
                return c.fail("the weights must be finite and not negative");
            total += weight[i];
            possible += weight[i] > 0;
        }
        if (!(total > 0)) return c.fail("the weights of a row add up to nothing");
        if (c.flag("replacement")) {
            for (size_t k = 0; k < count; ++k) {
                double rest = next() * total;
                size_t chosen = 0, last = 0;
                for (size_t i = 0; i < classes; ++i) last = weight[i] > 0 ? i : last;
                for (; chosen < last && (weight[chosen] == 0 || rest >= weight[chosen]); ++chosen)
                    rest -= weight[chosen];
                taken[row * count + k] = static_cast<int64_t>(chosen);
            }
            continue;
        }
        if (possible < count) return c.fail("fewer classes have a weight than samples are taken without replacement");
        std::vector<std::pair<double, int64_t>> arrivals;
        for (size_t i = 0; i < classes; ++i) {
            const double time = -std::log(1 - next());
            if (weight[i] > 0) arrivals.emplace_back(time / weight[i], static_cast<int64_t>(i));
        }
        std::sort(arrivals.begin(), arrivals.end());
        for (size_t k = 0; k < count; ++k) taken[row * count + k] = arrivals[k].second;
    }
    unpackElements(taken, out);
    return out;
}

// -- numbers of the operand's shape, whatever its values: what uniform_ and its kin write

Result<ValueType> inferAnew(const InferContext& c) {
    CT_TRY(TensorType self, c.tensor(size_t{0}));
    self.strides = preservedStrides(self);
    self.offset = 0;
    self.requiresGrad = false;
    return ValueType(std::move(self));
}
Result<ValueType> inferFloatsAnew(const InferContext& c) {
    CT_TRY(ValueType type, inferAnew(c));
    if (!isFloating(type.tensor()->dtype)) return c.fail("draws floating-point numbers, not " + type.tensor()->text());
    return type;
}
Result<ValueType> inferUniform(const InferContext& c) {
    if (!(c.real("from") <= c.real("to", 1))) return c.fail("'from' must not lie above 'to'");
    if (!std::isfinite(c.real("to", 1) - c.real("from"))) return c.fail("the range must be finite");
    return inferFloatsAnew(c);
}
EvalResult evalUniform(const EvalContext& c) {
    const double from = c.real("from"), to = c.real("to", 1);
    return drawnFromRun(c, [=](const auto& bits) { return from + uniform(bits) * (to - from); });
}
Result<ValueType> inferNormal(const InferContext& c) {
    if (!(c.real("std", 1) >= 0)) return c.fail("the standard deviation must not be negative");
    return inferFloatsAnew(c);
}
EvalResult evalNormal(const EvalContext& c) {
    const double mean = c.real("mean"), deviation = c.real("std", 1);
    return drawnFromRun(c, [=](const auto& bits) { return mean + deviation * normal(bits); });
}

/// The integers that random_ draws from: `low` and how many follow. Without bounds, all from 0 on that the dtype can
/// tell apart.
struct Integers {
    int64_t low = 0;
    uint64_t count = 0;  // 0: 2^64
};
int64_t greatestInteger(DType dtype) {
    switch (dtype) {
        case DType::Bool: return 1;
        case DType::U8: return 0xff;
        case DType::I8: return 0x7f;
        case DType::I16: return 0x7fff;
        case DType::I32: return 0x7fffffff;
        case DType::BF16: return int64_t{1} << 8;
        case DType::F16: return int64_t{1} << 11;
        case DType::F32: return int64_t{1} << 24;
        case DType::F64: return int64_t{1} << 53;
        default: return std::numeric_limits<int64_t>::max();
    }
}
Result<Integers> integersOf(const InferContext& c, DType dtype) {
    Integers range;
    if (c.op().schema()->find("from") >= 0) {
        CT_TRY(const int64_t from, c.integer("from"));
        range.low = from;
    }
    if (c.op().schema()->find("to") >= 0 && !c.arg("to").isNone()) {
        CT_TRY(const int64_t to, c.integer("to"));
        if (to <= range.low) return c.fail("'to' must lie above 'from'");
        range.count = integersBetween(range.low, to);
        return range;
    }
    if (range.low > greatestInteger(dtype)) return c.fail("'from' is not a number of the tensor's dtype");
    range.count = integersBetween(range.low, greatestInteger(dtype)) + 1;
    return range;
}
Result<ValueType> inferIntegers(const InferContext& c) {
    CT_TRY(ValueType type, inferAnew(c));
    if (isComplex(type.tensor()->dtype)) return c.fail("draws real numbers, not " + type.tensor()->text());
    CT_TRY_VOID(integersOf(c, type.tensor()->dtype));
    return type;
}
EvalResult evalIntegers(const EvalContext& c) {
    CT_TRY(const Integers range, integersOf(c, c.resultType().dtype));
    return drawnFromRun(c, [range](const auto& bits) { return integerFrom(bits, range.low, range.count); });
}

// -- numbers whose distribution the operands' elements give

Result<ValueType> inferBernoulli(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType p, c.tensor("p"));
    if (!isFloating(p.dtype)) return c.fail("needs floating-point probabilities, not " + p.text());
    const SymDims shapes[] = {self.sizes, p.sizes};
    CT_TRY(const SymDims sizes, broadcastSizes(shapes));
    if (!(sizes == self.sizes)) return c.fail("the probabilities " + p.text() + " do not broadcast to " + self.text());
    return inferAnew(c);
}
EvalResult evalBernoulli(const EvalContext& c) {
    const std::vector<double> chances = spread(c, c.in("p"));
    for (const double p : chances)
        if (!(p >= 0 && p <= 1)) return c.fail("the probabilities must lie between 0 and 1");
    const uint64_t key = nextKey(c);
    std::vector<double> numbers(chances.size());
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = uniform(philox(key, i)) < chances[i] ? 1.0 : 0.0;
    Tensor out = c.result();
    unpackElements(numbers, out);
    return out;
}

constexpr double kMostTrials = 9e15;  // beyond it floats tell counts no longer apart
EvalResult evalPoisson(const EvalContext& c) {
    std::vector<double> numbers = spread(c, c.in(size_t{0}));
    KeyBits bits(nextKey(c));
    for (double& number : numbers) {
        if (!(number >= 0)) return c.fail("the rates must not be negative");
        if (number > kMostTrials) return c.fail("a rate of " + std::to_string(number) + " is too large to draw from");
        if (number > 0) number = static_cast<double>(std::poisson_distribution<int64_t>(number)(bits));
    }
    Tensor out = c.result();
    unpackElements(numbers, out);
    return out;
}
EvalResult evalBinomial(const EvalContext& c) {
    std::vector<double> counts = spread(c, c.in("count"));
    const std::vector<double> chances = spread(c, c.in("prob"));
    KeyBits bits(nextKey(c));
    for (size_t i = 0; i < counts.size(); ++i) {
        if (!(chances[i] >= 0 && chances[i] <= 1) || !(counts[i] >= 0 && counts[i] <= kMostTrials))
            return c.fail(
                "counts must not be negative or beyond what floats tell apart, and probabilities must lie between 0 "
                "and 1");
        counts[i] =
            static_cast<double>(std::binomial_distribution<int64_t>(static_cast<int64_t>(counts[i]), chances[i])(bits));
    }
    Tensor out = c.result();
    unpackElements(counts, out);
    return out;
}
/// What is drawn does not follow the operands smoothly: PyTorch gives them zeros.
void deriveNothing(Derivation& d) {
    for (size_t i = 0; i < d.node().args().size(); ++i)
        if (d.node().arg(i).node() && d.in(i).type().requiresGrad)
            d.input(i) = unary("aten.zeros_like.default", d.in(i));
}
constexpr Tag kDrawn = Tag::Random | Tag::Inplace;

/// Numbers from 0 to below 1 for all that the strides span, moved to the range, with the operand's strides.
Values uniformOfRand(Decomposition& d) {
    const TensorType& type = d.out();
    const Value drawn = d.call("aten.rand.default", {Argument(SymDims{extentOf(type)})},
                               {{"dtype", type.dtype}, {"device", type.device}, {"pin_memory", false}});
    const double low = d.real("from", 0.0), high = d.real("to", 1.0);
    return d.call("aten.as_strided.default",
                  {drawn * (high - low) + low, Argument(type.sizes), Argument(type.strides)});
}
Value standardNormal(Decomposition& d, const Argument& sizes, DType dtype, Device device) {
    return d.call("prims.normal.default", {sizes},
                  {{"mean", 0.0}, {"std", 1.0}, {"dtype", dtype}, {"device", device}, {"requires_grad", false}});
}
/// Row by row, and then with the operand's strides.
Values normalOfPrim(Decomposition& d) {
    const TensorType& type = d.out();
    const Value result =
        standardNormal(d, Argument(type.sizes), type.dtype, type.device) * d.real("std", 1.0) + d.real("mean", 0.0);
    if (result.type().strides == type.strides) return result;
    return d.call("aten.as_strided.default", {result, Argument(type.sizes), Argument(type.strides)});
}

constexpr OpDef kDistributionsOps[] = {
    {.schema = "aten.uniform.default(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
     .tags = kDrawn,
     .infer = inferUniform,
     .eval = evalUniform,
     .expand = Expand::Decompose,
     .decompose = uniformOfRand,
     .decomposedIn = sinceRelease(Release::V2_14),
     .derive = deriveNothing,
     .samples = "f32[2, 3]\nbf16[4], -1.0, 2.0\nf64[2, 2], 3.0, 3.0"},
    // normal_ is its in-place form.
    {.schema = "aten.normal_functional.default(Tensor self, float mean=0., float std=1., *, Generator? generator=None) "
               "-> Tensor",
     .tags = kDrawn,
     .infer = inferNormal,
     .eval = evalNormal,
     .expand = Expand::Decompose,
     .decompose = normalOfPrim,
     .decomposedIn = sinceRelease(Release::V2_14),
     .derive = deriveNothing,
     .samples = "f32[2, 3]\nf64[4], 1.0, 0.0"},
    // Integers: all that the dtype tells apart, those below `to`, those from `from` to below `to`.
    {.schema = "aten.random.default(Tensor self, *, Generator? generator=None) -> Tensor",
     .tags = kDrawn,
     .infer = inferIntegers,
     .eval = evalIntegers,
     .derive = deriveNothing,
     .samples = "f32[2, 3]\ni64[4]\nb8[5]\nu8[3]"},
    {.schema = "aten.random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor",
     .tags = kDrawn,
     .infer = inferIntegers,
     .eval = evalIntegers,
     .derive = deriveNothing,
     .samples = "f32[2, 3], 7\ni32[4], 1"},
    {.schema = "aten.random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
     .tags = kDrawn,
     .infer = inferIntegers,
     .eval = evalIntegers,
     .derive = deriveNothing,
     .samples = "f32[2, 3], -2, 7\ni64[4], 5, None"},
    // 1 with the probabilities that a tensor gives.
    {.schema = "aten.bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
     .tags = kDrawn,
     .infer = inferBernoulli,
     .eval = evalBernoulli,
     .derive = deriveNothing,
     .samples = "f32[2, 3], f32[3]%\ni64[4], f64[4]%"},
    // Counts: of events at the rate `self` (poisson), of successes in `count` trials at the chance `prob` (binomial).
    {.schema = "aten.poisson.default(Tensor self, Generator? generator=None) -> Tensor",
     .tags = Tag::Random,
     .infer = inferDrawnFloats,
     .eval = evalPoisson,
     .derive = deriveNothing,
     .samples = "f32[2, 3]>0\nbf16[4]%"},
    {.schema = "aten.binomial.default(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
     .tags = Tag::Random,
     .infer = inferDrawnFloats,
     .eval = evalBinomial,
     .derive = deriveNothing,
     .samples = "f32[2, 3]>0, f32[3]%\nf64[4]>0, f64[1]%"},
    // -log(u) / lambd. For u within half an epsilon of 1 the logarithm is taken as -epsilon / 2: no result is 0.
    shorthand(
        "aten.exponential.default(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor",
        [](Decomposition& d) -> Values {
            const Value x = d.in(size_t{0});
            const double rate = d.real("lambd");
            if (!(rate > 0)) return refuse(d, "the rate is above zero");
            const double half = distributionEpsilon(x.dtype()) / 2;
            const Device device = x.type().device;
            const Value draws = d.call("aten.rand_like.default", {x});
            const Value one = compareScalar("ge", draws, 1 - half), logarithm = unary("aten.log.default", draws);
            const Value least = d.call("aten.scalar_tensor.default", {Argument(-half)},
                                       {{"dtype", x.dtype()}, {"layout", Layout::Strided}, {"device", device}});
            return where(one, least, logarithm) * (-1 / rate);
        },
        "f32[2, 3]\nf64[4], 0.5", Tag::Random | Tag::Inplace),
    // Other distributions, each from uniform or normal numbers of the operand's shape.
    shorthand(
        "aten.cauchy.default(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor",
        [](Decomposition& d) -> Values {
            if (!isFloating(d.in(0).dtype())) return refuse(d, "needs a floating-point dtype");
            if (!(d.real("sigma", 1) > 0)) return refuse(d, "sigma must be positive");
            const Value angle =
                d.call("aten.sub.Tensor", {unary("aten.rand_like.default", d.in(0)), 0.5}) * 3.141592653589793;
            return unary("aten.tan.default", angle) * distributionParameter(d, "sigma", 1) +
                   distributionParameter(d, "median", 0);
        },
        "f32[2, 3]\nf64[4], 1.0, 0.5", Tag::Random | Tag::Inplace),
    shorthand(
        "aten.log_normal.default(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor",
        [](Decomposition& d) -> Values {
            if (!isFloating(d.in(0).dtype())) return refuse(d, "needs a floating-point dtype");
            if (!(d.real("std", 2) > 0)) return refuse(d, "std must be positive");
            return unary("aten.exp.default",
                         unary("aten.randn_like.default", d.in(0)) * distributionParameter(d, "std", 2) +
                             distributionParameter(d, "mean", 1));
        },
        "f32[2, 3]\nf64[4], 0.0, 0.5", Tag::Random | Tag::Inplace),
    shorthand(
        "aten.geometric.default(Tensor self, float p, *, Generator? generator=None) -> Tensor",
        [](Decomposition& d) -> Values {
            const double p = d.real("p");
            if (!isFloating(d.in(0).dtype())) return refuse(d, "draws floating-point numbers only");
            if (!(p > 0 && p < 1)) return refuse(d, "p must lie between 0 and 1");
            const Value logarithm = unary("aten.log1p.default", -unary("aten.rand_like.default", d.in(0)));
            return unary("aten.floor.default", logarithm / std::log1p(-p)) + 1;
        },
        "f32[2, 3], 0.25", Tag::Random | Tag::Inplace),
    // Classes by their weights.
    {.schema = "aten.multinomial.default(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? "
               "generator=None) -> Tensor",
     .tags = Tag::Random | Tag::NoGradient,
     .infer = inferMultinomial,
     .eval = evalMultinomial,
     .samples = "f32[3, 4]>0, 2\nf64[5]>0, 7, True\nf32[4]>0, 4"},
    shorthand(
        "aten.normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        [](Decomposition& d) -> Values {
            if (!(d.real("std") >= 0)) return refuse(d, "std must not be negative");
            const DType dtype = d.dtype("dtype").value_or(DType::F32);
            if (!isFloating(dtype)) return refuse(d, "draws floating-point numbers only");
            const Device device = d.device("device").value_or(Device());
            return standardNormal(d, d.arg("size"), dtype, device) * d.real("std") + d.real("mean");
        },
        "0.5, 2.0, [2, 3]\n-1.0, 0.5, [4], dtype=torch.float64", Tag::Random),
    {.schema = "aten.normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
     .tags = Tag::Random | Tag::NoGradient,
     .infer = inferNormalAround,
     .eval = evalNormalAround,
     .samples = "f32[2, 3], f32[3]>0"},
    {.schema = "aten.normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
     .tags = Tag::Random | Tag::NoGradient,
     .infer = inferNormalAround,
     .eval = evalNormalAround,
     .samples = "f32[2, 3]\nf64[4], 0.5"},
    {.schema = "aten.normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
     .tags = Tag::Random | Tag::NoGradient,
     .infer = inferNormalAround,
     .eval = evalNormalAround,
     .samples = "0.5, f32[2, 3]>0"},
};

}  // namespace

std::span<const OpDef> distributionOps() { return kDistributionsOps; }

}  // namespace cutaway
