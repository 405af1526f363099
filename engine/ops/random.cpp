// Operators that draw random numbers. Numbers come from Philox under the run's key (eval.h, RandomState); they are not
// PyTorch's numbers, only its distributions.
#include <array>

#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/draw.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

constexpr Tag kRandomTags = Tag::Random | Tag::Factory;

Result<ValueType> inferSized(const InferContext& c, DType fallback) {
    CT_TRY(SymDims sizes, c.sizes("size"));
    return contiguousOf(c, std::move(sizes), c.dtype("dtype").value_or(fallback),
                        c.device("device").value_or(Device{}));
}
Result<ValueType> inferFloats(const InferContext& c) {
    CT_TRY(ValueType type, inferSized(c, DType::F32));
    if (!isFloating(type.tensor()->dtype)) return c.fail("needs a floating-point dtype");
    return type;
}

/// The largest float of the dtype below 1 where rounding would reach it.
double belowOne(DType dtype, double u) {
    const double most = dtype == DType::BF16  ? 1 - 0x1.0p-8
                        : dtype == DType::F16 ? 1 - 0x1.0p-11
                        : dtype == DType::F32 ? 1 - 0x1.0p-24
                                              : u;
    return std::min(u, most);
}
EvalResult evalRand(const EvalContext& c) {
    const DType dtype = c.resultType().dtype;
    return drawnFromRun(c, [dtype](const auto& bits) { return belowOne(dtype, uniform(bits)); });
}
EvalResult evalRandn(const EvalContext& c) {
    return drawnFromRun(c, [](const auto& bits) { return normal(bits); });
}
EvalResult evalRandint(const EvalContext& c) {
    const bool hasLow = c.op().schema()->find("low") >= 0;
    const int64_t low = hasLow ? toInt(c.number("low")) : 0, high = toInt(c.number("high"));
    if (high <= low) return c.fail("high must lie above low");
    return drawnFromRun(c, [=](const auto& bits) { return integerBetween(bits, low, high); });
}
Result<ValueType> inferRandint(const InferContext& c) { return inferSized(c, DType::I64); }

/// rand_like and its kin: drawn row-major in memory order, then permuted into the operand's layout.
template <class Make>
Values drawLike(Decomposition& d, Make make) {
    const TensorType self = d.in(size_t{0}).type();
    const auto format = d.memoryFormat("memory_format");
    NamedArguments keywords = {{"dtype", d.dtype("dtype").value_or(self.dtype)},
                               {"device", d.device("device").value_or(self.device)}};
    if (format && *format != MemoryFormat::Preserve) {
        const Value made = make(self.sizes, keywords);
        return *format == MemoryFormat::Contiguous ? made
                                                   : d.call("aten.clone.default", {made}, {{"memory_format", *format}});
    }
    const SymDims strides = preservedStrides(self);
    std::vector<int64_t> order(strides.size()), inverse(strides.size());
    std::iota(order.begin(), order.end(), 0);
    if (!self.isContiguous() && allInts(strides))
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            return strides[static_cast<size_t>(a)].value() > strides[static_cast<size_t>(b)].value();
        });
    if (std::is_sorted(order.begin(), order.end())) return make(self.sizes, keywords);
    SymDims sizes;
    for (size_t i = 0; i < order.size(); ++i) {
        sizes.push_back(self.sizes[static_cast<size_t>(order[i])]);
        inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    }
    return unary("aten.clone.default", permute(make(sizes, keywords), inverse));
}
Values randomLike(Decomposition& d, std::string_view op) {
    return drawLike(d, [&](const SymDims& sizes, NamedArguments keywords) {
        keywords.emplace_back("pin_memory", false);
        return d.call(op, {Argument(sizes)}, std::move(keywords));
    });
}
Values randintLike(Decomposition& d) {
    const Argument low = d.op().schema()->find("low") >= 0 ? d.arg("low") : Argument(0);
    return drawLike(d, [&](const SymDims& sizes, NamedArguments keywords) {
        return d.call("aten.randint.low", {low, d.arg("high"), Argument(sizes)}, std::move(keywords));
    });
}
Result<ValueType> inferFloatLike(const InferContext& c) {
    CT_TRY(ValueType type, inferLikeFactory(c));
    if (!isFloating(type.tensor()->dtype)) return c.fail("needs a floating-point dtype");
    return type;
}

Result<ValueType> inferNativeDropout(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    const double p = c.real("p");
    if (!(p >= 0 && p <= 1)) return c.fail("p lies between 0 and 1");
    if (!isFloating(self.dtype))
        return c.fail("needs a floating-point tensor, not " + std::string(info(self.dtype).torchName));
    TensorType output = self;
    output.strides = preservedStrides(self);
    output.offset = 0;
    return ValueType(TupleType{output, TensorType::contiguous(DType::Bool, self.sizes, self.device)});
}
Values decomposeNativeDropout(Decomposition& d) {
    const Value x = d.in(size_t{0});
    const Device device = x.type().device;
    const double p = d.real("p");
    if (!d.flag("train", true) || p == 0) return {x, full(d.builder(), x.sizes(), true, DType::Bool, device)};
    if (p == 1) {
        const Value zeros = unary("aten.zeros_like.default", x);
        return {zeros, d.call("aten.zeros_like.default", {x}, {{"dtype", DType::Bool}})};
    }
    const Value draws = d.call("aten.rand.default", {Argument(x.sizes())},
                               {{"dtype", x.dtype()}, {"device", device}, {"pin_memory", false}});
    const Value mask = compareScalar("gt", draws, p);
    return {mask * x * (1.0 / (1.0 - p)), mask};
}

double slopeOf(const CallView& c) { return (c.real("lower", 0.125) + c.real("upper", 1.0 / 3)) / 2; }
/// In training each negative element gets a slope of its own, drawn from [lower, upper]; `noise` are the slopes.
Values decomposeRandomRelu(Decomposition& d) {
    const Value x = d.in(size_t{0});
    if (!d.flag("training"))
        return {d.call("aten.leaky_relu.default", {x, slopeOf(d)}), unary("aten.clone.default", d.in(1))};
    const double lower = d.real("lower", 0.125), upper = d.real("upper", 1.0 / 3);
    const Value negative = d.call("aten.le.Scalar", {x, 0});
    const Value draws = d.call("aten.rand.default", {Argument(x.sizes())},
                               {{"dtype", x.dtype()}, {"device", x.type().device}, {"pin_memory", false}});
    const Value slopes = draws * (upper - lower) + lower;
    const Value one = d.call("aten.scalar_tensor.default", {1},
                             {{"dtype", x.dtype()}, {"layout", Layout::Strided}, {"device", x.type().device}});
    const Value out = where(negative, x * slopes, x);
    return {out, where(negative, slopes, one)};
}
Result<ValueType> inferRandomRelu(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType noise, c.tensor(1));
    if (!isFloating(self.dtype) || (c.flag("training") && noise.dtype != self.dtype))
        return c.fail("needs a tensor and noise of one floating-point dtype");
    if (!(noise.sizes == self.sizes))
        return c.fail("the noise " + noise.text() + " does not have the sizes of " + self.text());
    if (c.real("lower", 0.125) > c.real("upper", 1.0 / 3)) return c.fail("lower exceeds upper");
    TensorType out = self;
    out.strides = preservedStrides(self);
    out.offset = 0;
    out.requiresGrad = false;
    TensorType slopes = out;
    if (!c.flag("training")) {
        slopes.strides = preservedStrides(noise);
        slopes.dtype = noise.dtype;
    }
    return ValueType(TupleType{out, slopes});
}

// -- as kernels: Philox by element, in 64-bit integers that hold 32 bits each

Expr lowHalf(const Expr& x) { return Expr::make(ExprKind::BitAnd, {x, Expr::integer(0xFFFFFFFF)}, DType::I64); }
Expr shiftedRight(const Expr& x, int64_t bits) {
    return Expr::make(ExprKind::ShiftRight, {x, Expr::integer(bits)}, DType::I64);
}
Expr highHalf(const Expr& x) { return lowHalf(shiftedRight(x, 32)); }
Expr exclusiveOr(const Expr& a, const Expr& b) { return Expr::make(ExprKind::BitXor, {a, b}, DType::I64); }

/// philox(key, counter), the counter being below 2^32.
std::array<Expr, 4> philoxOf(const Expr& key, const Expr& counter) {
    const Expr zero = Expr::integer(0);
    std::array<Expr, 4> c = {counter, zero, zero, zero};
    for (int64_t round = 0; round < 10; ++round) {
        const Expr k0 = lowHalf(lowHalf(key) + Expr::integer(round * 0x9E3779B9));
        const Expr k1 = lowHalf(highHalf(key) + Expr::integer(round * 0xBB67AE85));
        const Expr a = Expr::integer(0xD2511F53) * c[0], b = Expr::integer(0xCD9E8D57) * c[2];
        c = {exclusiveOr(exclusiveOr(highHalf(b), c[1]), k0), lowHalf(b),
             exclusiveOr(exclusiveOr(highHalf(a), c[3]), k1), lowHalf(a)};
    }
    return c;
}
/// uniform() of two halves.
Expr uniformOf(const Expr& high, const Expr& low) {
    const Expr bits = high * Expr::integer(int64_t{1} << 21) + shiftedRight(low, 11);
    return Expr::cast(bits, DType::F64) * Expr::real(0x1.0p-53, DType::F64);
}
Expr lowerRandom(LowerContext& c) {
    const auto elements = numel(c.out().sizes).asInt();
    if (!elements || *elements > int64_t{0xFFFFFFFF}) return Expr();
    Expr at = Expr::integer(0);
    for (size_t d = 0; d < c.index().size(); ++d) at = at * c.out().sizes[d].expr() + c.index()[d];
    const std::array<Expr, 4> bits = philoxOf(c.numberAt("seed", DType::I64), at);
    const Expr first = uniformOf(bits[0], bits[1]);
    if (c.text("mode") == "rand") {
        const Expr drawn = Expr::cast(first, DType::F32), most = Expr::real(1 - 0x1.0p-24, DType::F32);
        return Expr::where(compare(ExprKind::Lt, drawn, constantLike(drawn, 1)), drawn, most);
    }
    const Expr one = constantLike(first, 1);
    const Expr radius = call1("sqrt", constantLike(first, -2) * call1("log", one - first));
    return radius * call1("cos", constantLike(first, 6.283185307179586) * uniformOf(bits[2], bits[3]));
}

constexpr OpDef kRandomOps[] = {
    {.schema =
         "aten.rrelu_with_noise_functional.default(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
         "Generator? generator=None) -> (Tensor, Tensor)",
     .tags = Tag::Random,
     .infer = inferRandomRelu,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeRandomRelu,
     .derive =
         [](Derivation& d) {
             if (!d.dy(0)) return;
             const bool random = d.flag("training") && d.real("upper", 1.0 / 3) - d.real("lower", 0.125) > 1e-6;
             d.input(0) =
                 random ? d.dy(0) * d.out(1)
                        : d.call("aten.leaky_relu_backward.default", {d.dy(0), d.in(size_t{0}), slopeOf(d), false});
         },
     .samples = "f32[2, 3], f32[2, 3], 0.125, 0.5\nf32[2, 3], f32[2, 3], 0.1, 0.3, True\nf64[4], f64[4]"},
    // Zeroes elements with probability p and scales the rest by 1/(1-p); also returns which were kept.
    {.schema = "aten.native_dropout.default(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
     .tags = Tag::Random,
     .infer = inferNativeDropout,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeNativeDropout,
     .derive =
         [](Derivation& d) {
             const double p = d.real("p");
             const double scale = !d.flag("train", true) || p == 1 ? 1.0 : 1.0 / (1.0 - p);
             d.input(0) = d.call("aten.native_dropout_backward.default", {d.dy(), d.out(1), scale});
         },
     .samples = "f32[2, 3], 0.25, True\nbf16[4], 0.5, True\nf32[2, 3], 0.5, False\nf32[2, 3], 1.0, True"},
    // Uniform in [0, 1).
    {.schema =
         "aten.rand.default(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = kRandomTags,
     .infer = inferFloats,
     .eval = evalRand,
     .samples = "[2, 3]\n[4], dtype = torch.bfloat16\n[0, 2]"},
    // Standard normal.
    {.schema =
         "aten.randn.default(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = kRandomTags,
     .infer = inferFloats,
     .eval = evalRandn,
     .samples = "[2, 3]\n[4], dtype = torch.float64"},
    // Integers in [low, high).
    {.schema =
         "aten.randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = kRandomTags,
     .infer = inferRandint,
     .eval = evalRandint,
     .samples = "1, 5, [2, 3]\n-2, 3, [4], dtype = torch.int32"},
    {.schema =
         "aten.randint.default(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = kRandomTags,
     .infer = inferRandint,
     .eval = evalRandint,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         NamedArguments keywords;
         for (const char* key : {"dtype", "layout", "device", "pin_memory"})
             if (d.has(key)) keywords.emplace_back(key, d.arg(key));
         return d.call("aten.randint.low", {0, d.arg("high"), d.arg("size")}, std::move(keywords));
     },
     .samples = "5, [2, 3]"},
    // A permutation of 0..n-1.
    {.schema =
         "aten.randperm.default(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = kRandomTags,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const SymInt n, c.size("n"));
         return contiguousOf(c, {n}, c.dtype("dtype").value_or(DType::I64), c.device("device").value_or(Device{}));
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         const uint64_t key = nextKey(c);
         Tensor out = c.result();
         std::vector<int64_t> order(static_cast<size_t>(out.numel()));
         std::iota(order.begin(), order.end(), 0);
         for (size_t i = order.size(); i > 1; --i)
             std::swap(order[i - 1],
                       order[static_cast<size_t>(integerBetween(philox(key, i), 0, static_cast<int64_t>(i)))]);
         storeElements(out.dtype(), out.data(), 1, out.numel(), order.data());
         return out;
     },
     .samples = "5\n0\n4, dtype = torch.int32"},
    {.schema =
         "aten.rand_like.default(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .tags = Tag::Random | Tag::NoGradient,
     .infer = inferFloatLike,
     .eval = evalRand,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return randomLike(d, "aten.rand.default"); },
     .samples = "f32[2, 3]\nf32[2, 3][1, 2]"},
    {.schema =
         "aten.randn_like.default(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .tags = Tag::Random | Tag::NoGradient,
     .infer = inferFloatLike,
     .eval = evalRandn,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return randomLike(d, "aten.randn.default"); },
     .samples = "f32[2, 3]\nf32[2, 3][1, 2]"},
    {.schema =
         "aten.randint_like.default(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .tags = Tag::Random | Tag::NoGradient,
     .infer = inferLikeFactory,
     .eval = evalRandint,
     .expand = Expand::Decompose,
     .decompose = randintLike,
     .samples = "f32[2, 3], 5\ni64[2], 3"},
    {.schema =
         "aten.randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .tags = Tag::Random | Tag::NoGradient,
     .infer = inferLikeFactory,
     .eval = evalRandint,
     .expand = Expand::Decompose,
     .decompose = randintLike,
     .samples = "f32[2, 3], 1, 5"},
    // 1 with the probability that the operand says.
    shorthand(
        "aten.bernoulli.default(Tensor self, *, Generator? generator=None) -> Tensor",
        [](Decomposition& d) -> Values {
            const Value x = d.in(size_t{0});
            const Value draws = d.call("aten.rand.default", {Argument(x.sizes())},
                                       {{"dtype", DType::F32}, {"device", x.type().device}, {"pin_memory", false}});
            return convert(d.call("aten.lt.Tensor", {draws, x}), x.dtype());
        },
        "f32[2, 3]\nbf16[4]", Tag::Random),
    // 1 with probability p, whatever the operand's values; on the CPU PyTorch keeps the kernel.
    {.schema = "aten.bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
     .tags = Tag::Random | Tag::Inplace,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         const double p = c.real("p");
         if (!(p >= 0 && p <= 1)) return c.fail("p lies between 0 and 1");
         return contiguousOf(c, self.sizes, self.dtype, self.device);
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         const double p = c.real("p");
         return drawnFromRun(c, [p](const auto& bits) { return uniform(bits) < p ? 1.0 : 0.0; });
     },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = d.in(size_t{0});
         const Device device = x.type().device;
         if (device.type == DeviceType::Cpu) return Values::notHandled();
         const Value draws = d.call("aten.rand.default", {Argument(x.sizes())},
                                    {{"dtype", DType::F32}, {"device", device}, {"pin_memory", false}});
         return convert(compareScalar("lt", draws, d.real("p")), x.dtype());
     },
     .derive =
         [](Derivation& d) {
             if (d.in(size_t{0}).type().requiresGrad) d.input(0) = unary("aten.zeros_like.default", d.in(size_t{0}));
         },
     .samples = "f32[2, 3], 0.5\ni64[4], 0.25"},
    // What the joint-graph pass makes of rand and its kin: one seed tensor per device and graph, and draws from it.
    {.schema = "prims.inductor_seeds.default(int count, Device device) -> Tensor",
     .tags = kRandomTags,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const int64_t count, c.integer("count"));
         return contiguousOf(c, {count}, DType::I64, c.device("device").value_or(Device{}));
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         Tensor out = c.result();
         std::vector<int64_t> seeds(static_cast<size_t>(out.numel()));
         for (int64_t& seed : seeds) seed = static_cast<int64_t>(nextKey(c));
         storeElements(out.dtype(), out.data(), 1, out.numel(), seeds.data());
         return out;
     },
     .samples = "3, device(type='cpu')"},
    {.schema = "prims.inductor_lookup_seed.default(Tensor seeds, int index) -> Tensor",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType seeds, c.tensor(size_t{0}));
         CT_TRY(const int64_t at, c.integer("index"));
         if (seeds.rank() != 1 || at < 0 || (seeds.sizes[0].isInt() && at >= seeds.sizes[0].value()))
             return c.fail("seed " + std::to_string(at) + " of " + seeds.text());
         return contiguousOf(c, {}, DType::I64, seeds.device);
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         return Tensor::scalar(DType::I64, c.in(size_t{0}).item(c.integerOr("index", 0)));
     },
     .lower = [](LowerContext& c) { return c.loadAt(0, {Expr::integer(c.integerOr("index", 0))}); },
     .samples = "i64[3], 1"},
    {.schema = "prims.inductor_random.default(SymInt[] size, Tensor seed, str mode) -> Tensor",
     .tags = Tag::Random,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(SymDims sizes, c.sizes("size"));
         CT_TRY(const TensorType seed, c.tensor("seed"));
         if (differ(numel(seed.sizes), 1)) return c.fail("needs one number as seed, not " + seed.text());
         if (c.text("mode") != "rand" && c.text("mode") != "randn")
             return c.fail("mode is 'rand' or 'randn', not '" + c.text("mode") + "'");
         return contiguousOf(c, std::move(sizes), DType::F32, seed.device);
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         const auto seed = static_cast<uint64_t>(toInt(c.in("seed").item()));
         if (c.text("mode") == "randn") return drawn(c, seed, [](const auto& bits) { return normal(bits); });
         return drawn(c, seed, [](const auto& bits) { return belowOne(DType::F32, uniform(bits)); });
     },
     .lower = lowerRandom,
     .samples = "[2, 3], i64[], 'rand'\n[2, 3], i64[], 'randn'"},
    {.schema = "prims.inductor_randint.default(SymInt low, SymInt high, SymInt[] size, Tensor seed) -> Tensor",
     .tags = Tag::Random,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(SymDims sizes, c.sizes("size"));
         CT_TRY(const TensorType seed, c.tensor("seed"));
         if (differ(numel(seed.sizes), 1)) return c.fail("needs one number as seed, not " + seed.text());
         return contiguousOf(c, std::move(sizes), DType::I64, seed.device);
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         const int64_t low = toInt(c.number("low")), high = toInt(c.number("high"));
         if (high <= low) return c.fail("high must lie above low");
         return drawn(c, static_cast<uint64_t>(toInt(c.in("seed").item())),
                      [=](const auto& bits) { return integerBetween(bits, low, high); });
     },
     .samples = "0, 5, [2, 3], i64[]"},
};

}  // namespace

std::span<const OpDef> randomOps() { return kRandomOps; }

}  // namespace cutaway
