// Fake quantization whose scale and zero point follow from a moving range of what was seen (quantization-aware
// training): with the observer on, the range moves; with quantization on, the scale follows from the range.
#include <cmath>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

constexpr std::string_view kState[] = {"running_min", "running_max", "scale", "zero_point"};
constexpr float kLeastScale = 6.1e-5f;  // PyTorch's limit: the reciprocal of smaller ones may overflow

struct ObservedRange {
    Value low, high;
};
/// The range moved towards that of the tensor, or of each of its rows; it starts with the first one seen.
ObservedRange moved(Decomposition& d, const ObservedRange& before, bool byRow) {
    Value x = unary("aten.detach.default", d.in(size_t{0}));
    if (byRow) x = d.call("aten.flatten.using_ints", {unsqueeze(x, -1), int64_t{1}, int64_t{-1}});
    const std::vector<Argument> dims = byRow ? std::vector<Argument>{Argument(1)} : std::vector<Argument>{};
    const auto towards = [&](const Value& running, std::string_view op) {
        const Value seen = view(d.call(op, {x, Argument(dims), false}), running.sizes());
        return where(unary("aten.isinf.default", running), seen,
                     running + (seen - running) * static_cast<double>(static_cast<float>(d.real("averaging_const"))));
    };
    return {towards(before.low, "aten.amin.default"), towards(before.high, "aten.amax.default")};
}

struct QuantizationGrid {
    Value scale, zero;  // f32 and i32
};
/// The grid of the integers from `least` to `most` over a range widened to 0; with `symmetric`, 0 is in its middle
/// where the range has both signs. In double, as PyTorch computes it (ChooseQuantizationParams).
QuantizationGrid gridOver(Decomposition& d, ObservedRange r, int64_t least, int64_t most, bool symmetric) {
    const auto wide = [](const Value& v) { return convert(v, DType::F64); };
    const auto narrow = [](const Value& v) { return convert(v, DType::F32); };
    const auto absolute = [](const Value& v) { return unary("aten.abs.default", v); };
    const auto both = [&](const Value& a, const Value& b) { return d.call("aten.bitwise_and.Tensor", {a, b}); };
    const auto number = [&](double n, const Value& like) { return scalarTensor(d, n, like); };
    const auto signs = [&] { return both(compareScalar("lt", r.low, 0.0), compareScalar("gt", r.high, 0.0)); };
    const auto steps = static_cast<double>(most - least);
    if (symmetric) {
        const auto below = static_cast<double>(-((most - least) / 2 + 1)),
                   above = static_cast<double>((most - least) / 2);
        const Value step = wide(d.call("aten.maximum.default", {absolute(r.low / below), absolute(r.high / above)}));
        const Value mixed = signs();
        r = {where(mixed, narrow(step * below), r.low), where(mixed, narrow(step * above), r.high)};
    }
    r = {d.call("aten.clamp_max.default", {r.low, 0.0}), d.call("aten.clamp_min.default", {r.high, 0.0})};
    Value scale = (wide(r.high) - wide(r.low)) / steps;
    const Value useless = d.call("aten.bitwise_or.Tensor",
                                 {compareScalar("eq", narrow(scale), 0.0),
                                  unary("aten.isinf.default", unary("aten.reciprocal.default", narrow(scale)))});
    scale = where(useless, number(0.1, scale), scale);
    const Value small = compareScalar("lt", scale, static_cast<double>(kLeastScale));
    const Value larger = number(static_cast<double>(kLeastScale), r.low) / narrow(scale);
    const Value fromZero = compareScalar("eq", r.low, 0.0), toZero = compareScalar("eq", r.high, 0.0);
    const double span = kLeastScale * static_cast<float>(most - least);
    const ObservedRange stretched{where(fromZero, r.low, where(toZero, number(-span, r.low), r.low * larger)),
                                  where(fromZero, number(span, r.high), where(toZero, r.high, r.high * larger))};
    r = {where(small, stretched.low, r.low), where(small, stretched.high, r.high)};
    scale = where(small, number(static_cast<double>(kLeastScale), scale), scale);
    // Of the two zero points that the ends give, the one with the smaller error.
    const Value low = wide(r.low) / scale, high = wide(r.high) / scale;
    const auto first = static_cast<double>(least), last = static_cast<double>(most);
    const Value nearer = d.call("aten.lt.Tensor", {subtractFrom(std::fabs(first), absolute(low)),
                                                   subtractFrom(std::fabs(last), absolute(high))});
    Value zero = where(nearer, subtractFrom(first, low), subtractFrom(last, high));
    if (symmetric) zero = where(signs(), number(static_cast<double>(least + most) / 2, zero), zero);
    zero = d.call("aten.clamp.default", {unary("aten.round.default", zero), first, last});
    return {narrow(scale), convert(zero, DType::I32)};
}

/// output, mask, then the new running_min, running_max, scale and zero_point. Empty if the call is refused.
std::vector<Value> observed(Decomposition& d) {
    const auto refused = [&](std::string why) {
        refuse(d, std::move(why));
        return std::vector<Value>{};
    };
    const Value x = d.in(size_t{0});
    const bool byRow = d.flag("per_row_fake_quant");
    const auto least = read(d, d.integer("quant_min")), most = read(d, d.integer("quant_max")),
               axis = read(d, d.integer("ch_axis"));
    if (!least || !most || !axis) return {};
    if (*least >= *most) return refused("needs a quant_min that is less than quant_max");
    for (const std::string_view param : kState) {
        const Value v = d.in(param);
        const DType dtype = param == "zero_point" ? DType::I32 : DType::F32;
        const SymInt wanted = byRow && x.rank() > 0 ? x.size(0) : SymInt(1);
        // The range of a whole tensor is a number, or a vector of one.
        const bool number = !byRow && v.rank() == 0 && param.starts_with("running_");
        if (v.dtype() != dtype || !(number || (v.rank() == 1 && !differ(v.size(0), wanted))))
            return refused("needs '" + std::string(param) + "' as " +
                           TensorType::contiguous(dtype, {wanted}, x.type().device).text() + ", not " +
                           v.type().text() +
                           (byRow ? "; state without a size gets one from a first step in eager" : ""));
    }
    if (x.dtype() != DType::F32) return refused("takes float32, not " + x.type().text());
    if (x.rank() == 0 || (byRow && *axis != 0)) return refused("has a scale for each position of dim 0 only");
    if (*axis >= x.rank()) return refused("has no dim " + std::to_string(*axis));
    const auto isOn = [&](std::string_view param) {
        return view(compareScalar("ne", d.in(param), int64_t{0}), SymDims{});
    };
    const Value observes = isOn("observer_on"), quantizes = isOn("fake_quant_on");
    const ObservedRange before{d.in("running_min"), d.in("running_max")}, after = moved(d, before, byRow);
    const ObservedRange range{where(observes, after.low, before.low), where(observes, after.high, before.high)};
    const QuantizationGrid grid = gridOver(d, range, *least, *most, d.flag("symmetric_quant"));
    const Value scale = where(quantizes, grid.scale, d.in("scale")),
                zero = where(quantizes, grid.zero, d.in("zero_point"));
    if (!byRow) {
        const Value both = d.call("aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
                                  {x, scale, zero, convert(view(quantizes, {SymInt(1)}), DType::I64), *least, *most});
        return {both[0], both[1], range.low, range.high, scale, zero};
    }
    const Value both =
        d.call("aten.fake_quantize_per_channel_affine_cachemask.default", {x, scale, grid.zero, *axis, *least, *most});
    const Value inside = d.call("aten.bitwise_or.Tensor", {both[1], unary("aten.logical_not.default", quantizes)});
    return {where(quantizes, both[0], x), inside, range.low, range.high, scale, zero};
}
/// The same, the state being written.
Values observedInPlace(Decomposition& d) {
    std::vector<Argument> args;
    for (size_t i = 0; i < d.count(); ++i) args.push_back(d.arg(i));
    const Value made = d.call("aten._fused_moving_avg_obs_fq_helper_functional.default", std::move(args));
    if (!made) return made;
    for (size_t i = 0; i < std::size(kState); ++i)
        d.call("aten.copy_.default", {d.in(kState[i]), made[static_cast<int64_t>(i) + 2]});
    return {made[0], made[1]};
}
/// The first result alone, without a state for a tensor that has no elements.
Values observedOutput(Decomposition& d) {
    const Value x = d.in(size_t{0});
    for (const SymInt& size : x.sizes())
        if (size == SymInt(0)) return unary("aten.clone.default", x);
    std::vector<Argument> args;
    for (size_t i = 0; i < d.count(); ++i) args.push_back(d.arg(i));
    return d.call("aten._fused_moving_avg_obs_fq_helper.default", std::move(args))[0];
}

#define CUTAWAY_OBSERVED(name, a, b, c, z, results)                                         \
    "aten." name ".default(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor" a \
    " running_min, "                                                                        \
    "Tensor" b " running_max, Tensor" c " scale, Tensor" z                                  \
    " zero_point, float averaging_const, int quant_min, "                                   \
    "int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> " results
constexpr std::string_view kObservedSamples = R"(
f32[3, 4], i64[1]>0, i64[1]>0, f32[1], f32[1]>0, f32[1]>0, i32[1]<7, 0.25, -128, 127, 0
f32[3, 4], i64[1]>0, i64[1]>0, f32[1], f32[1]>0, f32[1]>0, i32[1]<7, 0.25, -8, 7, 1, False, True
f32[3, 4, 2], i64[1]>0, i64[1]>0, f32[3], f32[3]>0, f32[3]>0, i32[3]<7, 0.5, 0, 255, 0, True
f32[3, 4], i64[1]>0, i64[1]>0, f32[3], f32[3]>0, f32[3]>0, i32[3]<7, 0.5, -128, 127, 0, True, True
f32[3, 4], i64[1]<1, i64[1]<1, f32[1], f32[1]>0, f32[1]>0, i32[1]<7, 0.25, -128, 127, 0
f32[3, 4], i64[1]<1, i64[1]>0, f32[3], f32[3]>0, f32[3]>0, i32[3]<7, 0.5, -128, 127, 0, True
f32[3, 4], i64[1]>0, i64[1]<1, f32[3], f32[3]>0, f32[3]>0, i32[3]<7, 0.5, -128, 127, 0, True
f32[3, 4], i64[1]>0, u8[1]>0, f32[], f32[]>0, f32[1]>0, i32[1]<7, 0.25, 0, 255, -1)";

constexpr OpDef kFakeQuantizeObservedOps[] = {
    shorthand(CUTAWAY_OBSERVED("fused_moving_avg_obs_fake_quant", "(a!)", "(b!)", "(c!)", "(d!)", "Tensor"),
              observedOutput, kObservedSamples),
    shorthand(CUTAWAY_OBSERVED("_fused_moving_avg_obs_fq_helper", "(a!)", "(b!)", "(c!)", "(d!)",
                               "(Tensor output, Tensor mask)"),
              observedInPlace, kObservedSamples),
    // Stays one call, as in PyTorch's compiler.
    {.schema = CUTAWAY_OBSERVED("_fused_moving_avg_obs_fq_helper_functional", "", "", "", "",
                                "(Tensor output, Tensor mask, Tensor running_min_out, Tensor running_max_out, "
                                "Tensor scale_out, Tensor zero_point_out)"),
     .infer = inferExpanded,
     .eval = evalExpanded,
     .decompose = [](Decomposition& d) -> Values {
         std::vector<Value> made = observed(d);
         return made.empty() ? Values(Value(d.builder(), nullptr)) : Values(std::move(made));
     },
     .derive =
         [](Derivation& d) {
             if (d.dy())
                 d.input(0) =
                     d.call("aten.fake_quantize_per_tensor_affine_cachemask_backward.default", {d.dy(), d.out(1)});
         },
     .samples = kObservedSamples},
};

}  // namespace

std::span<const OpDef> fakeQuantizeObservedOps() { return kFakeQuantizeObservedOps; }

}  // namespace cutaway
