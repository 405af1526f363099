// What quantization learns from data: scales and zero points, and numbers rounded to the grid of quantized ones.
#include <vector>

#include "engine/runtime/portable/elementwise.h"

namespace cutaway::portable {
namespace {

/// The least and the largest number, and 0.
struct Range {
    float least = 0, most = 0;
    void add(float value) {
        least = std::min(least, value);
        most = std::max(most, value);
    }
};
bool isHalf(int32_t dtype) { return dtype == CT_F16 || dtype == CT_BF16; }

/// (input, quant_min, quant_max, eps, dtype): one pair for all. Rounded to the data's dtype after each step.
template <bool symmetric>
void chooseForAll(const Run& run) {
    const CtCall& call = *run.call;
    const Strided x = run.in(0);
    Range range;
    std::vector<float> values(static_cast<size_t>(x.elements()));
    loadAll(x, values.data());
    for (const float value : values) range.add(value);
    const auto round = [&](float value) { return rounded(x.dtype, value); };
    const auto low = static_cast<double>(integerOf(call, 1)), high = static_cast<double>(integerOf(call, 2));
    const auto eps = static_cast<float>(numberOf<double>(call.args[3]));
    double step;
    int64_t zero = 0;
    if (symmetric) {
        step = std::max(round(std::max(-range.least, range.most) / static_cast<float>((high - low) / 2)), eps);
        if (call.args[4].integer == CT_U8) zero = 128;
    } else {
        const float narrow = std::max(round(round(range.most - range.least) / static_cast<float>(high - low)), eps);
        const double wanted = low - std::nearbyint(static_cast<double>(range.least / narrow));
        zero = std::isnan(wanted) ? integerOf(call, 2) : static_cast<int64_t>(std::clamp(wanted, low, high));
        step = narrow;
    }
    if (run.wants(0)) storeRange(run.out(0), 0, 1, &step);
    if (run.wants(1)) storeRange(run.out(1), 0, 1, &zero);
}
/// (input, dtype): a pair for each row. Half floats are rounded after each step.
template <bool symmetric>
void chooseForRows(const Run& run) {
    const Strided x = run.in(0);
    const int32_t last = x.rank - 1;
    const int64_t width = x.sizes[last];
    const auto round = [&](float value) { return isHalf(x.dtype) ? rounded(x.dtype, value) : value; };
    run.share(rowsOf(x), [&](int64_t, int64_t begin, int64_t end) {
        std::vector<float> values(static_cast<size_t>(width));
        for (int64_t row = begin; row < end; ++row) {
            load(x.dtype, x.at(x.offsetOf(row, last)), x.strides[last], width, values.data());
            Range range;
            for (const float value : values) range.add(value);
            float step = std::max(std::max(-range.least, range.most), 1e-5f) / 127.0f, zero = 0;
            if (!symmetric) {
                step = std::max(round(round(range.most - range.least) / 255.0f), std::numeric_limits<float>::epsilon());
                const float low = round(range.least / step), high = round(range.most / step);
                zero = round(round(-128 + low) + round(127 + high)) > 0 ? round(-128 - low) : round(127 - high);
                zero = std::nearbyint(std::clamp(zero, -128.0f, 127.0f));
            }
            if (run.wants(0)) storeRange(run.out(0), row, row + 1, &step);
            if (run.wants(1)) storeRange(run.out(1), row, row + 1, &zero);
        }
    });
}

/// Where each argument of a fake quantization stands; -1: the operator has none.
struct Fake {
    int32_t axis, low, enabled;
    bool checked;  // zero points must lie within the bounds
};
/// One number, or one for each position of the axis, as the tensor's sizes.
Strided along(const Run& run, int32_t parameter, const Strided& like, int32_t axis) {
    Strided given = run.in(parameter), wide = like;
    wide.data = given.data;
    wide.dtype = given.dtype;
    std::fill_n(wide.strides, wide.rank, int64_t{0});
    if (axis < 0) return wide;
    const int32_t dim = dimOf(*run.call, axis, like);
    wide.strides[dim] = given.sizes[0] == 1 ? 0 : given.strides[0];
    return wide;
}
void checkZeros(const Run& run, int64_t low, int64_t high) {
    const Strided zeros = run.in(2);
    if (isFloating(zeros.dtype)) return;
    const Indices values(zeros);
    for (int64_t i = 0; i < zeros.elements(); ++i)
        if (const int64_t value = values[zeros.offsetOf(i)]; value < low || value > high)
            throw Failure("zero_point " + std::to_string(value) + " is not between quant_min and quant_max");
}
/// The value on the grid, and where the number lies within the bounds. The scale is taken in float also where the
/// tensor is double.
template <class T>
void fakeAs(const Run& run, const Fake& where, bool enabled) {
    const CtCall& call = *run.call;
    const Strided like = run.wants(0) ? run.out(0) : run.out(1);
    const auto low = static_cast<float>(integerOf(call, where.low)),
               high = static_cast<float>(integerOf(call, where.low + 1));
    Spread x(run, 0, like), scale(run, 1, like), zero(run, 2, like);
    if (call.args[1].kind == CT_OPERAND) scale.elements = along(run, 1, like, where.axis);
    if (call.args[2].kind == CT_OPERAND) zero.elements = along(run, 2, like, where.axis);
    const auto quantized = [](T a, T s, T z) {
        return std::nearbyint(a * static_cast<T>(1.0f / static_cast<float>(s))) + z;
    };
    if (run.wants(0))
        elementwise<T, 3>(run, run.out(0), {&x, &scale, &zero}, [=](T a, T s, T z) {
            if (!enabled) return a;
            return (std::min(std::max(quantized(a, s, z), T(low)), T(high)) - z) *
                   static_cast<T>(static_cast<float>(s));
        });
    if (call.resultCount < 2 || !run.wants(1)) return;
    elementwise<T, 3>(run, run.out(1), {&x, &scale, &zero}, [=](T a, T s, T z) {
        const T q = quantized(a, s, z);
        return static_cast<T>(!enabled || (q >= low && q <= high));
    });
}
void fake(const Run& run, const Fake& where) {
    const CtCall& call = *run.call;
    if (where.checked) checkZeros(run, integerOf(call, where.low), integerOf(call, where.low + 1));
    const bool enabled = where.enabled < 0 || Indices(run.in(where.enabled))[0] != 0;
    withFloat(run.in(0).dtype, [&](auto tag) { fakeAs<decltype(tag)>(run, where, enabled); });
}

// -- one scale and zero point for each group of a row: (input, scales, zero_points, quant_min, quant_max, dtype,
// group_size)

template <class T>
T ofGroup(const Strided& numbers, int64_t group) {
    const auto value = loadOne<T>(numbers.dtype, numbers.at(numbers.offsetOf(group)));
    return value;
}
/// result = f(element, scale, zero point), computed in T.
template <class T, class F>
void overGroups(const Run& run, F f) {
    const Strided x = run.in(0), out = run.out(), scales = run.in(1);
    const bool given = isGiven(*run.call, 2);
    const Strided zeros = given ? run.in(2) : scales;
    const int64_t size = integerOf(*run.call, 6), groups = size > 0 ? x.sizes[1] / size : 0;
    if (out.elements() == 0) return;
    run.share(x.sizes[0] * groups, [&](int64_t, int64_t begin, int64_t end) {
        std::vector<T> elements(static_cast<size_t>(size));
        for (int64_t group = begin; group < end; ++group) {
            const T scale = ofGroup<T>(scales, group), zero = given ? ofGroup<T>(zeros, group) : T(0);
            const int64_t row = group / groups, column = group % groups * size;
            load(x.dtype, x.at(row * x.strides[0] + column * x.strides[1]), x.strides[1], size, elements.data());
            for (T& element : elements) element = f(element, scale, zero);
            store(out.dtype, out.at(row * out.strides[0] + column * out.strides[1]), out.strides[1], size,
                  elements.data());
        }
    });
}
void quantizeGroups(const Run& run) {
    const auto low = static_cast<double>(integerOf(*run.call, 3)), high = static_cast<double>(integerOf(*run.call, 4));
    withFloat(run.in(1).dtype, [&](auto tag) {
        using T = decltype(tag);
        overGroups<T>(run, [=](T x, T scale, T zero) {
            const T number = std::nearbyint(x * (T(1) / scale) + zero);
            return std::min(std::max(number, static_cast<T>(low)), static_cast<T>(high));
        });
    });
}
void dequantizeGroups(const Run& run) {
    const bool wide = run.out().dtype == CT_F64 || run.in(1).dtype == CT_F64;
    withFloat(wide ? CT_F64 : CT_F32, [&](auto tag) {
        using T = decltype(tag);
        overGroups<T>(run, [](T q, T scale, T zero) { return (q - zero) * scale; });
    });
}

constexpr Function kObserveFunctions[] = {
    {"quantized_decomposed.quantize_per_channel_group.default", quantizeGroups},
    {"quantized_decomposed.dequantize_per_channel_group.default", dequantizeGroups},
    {"quantized_decomposed.choose_qparams.tensor", chooseForAll<false>},
    {"quantized_decomposed.choose_qparams_symmetric.tensor", chooseForAll<true>},
    {"quantized_decomposed.choose_qparams_per_token.default", chooseForRows<true>},
    {"quantized_decomposed.choose_qparams_per_token_asymmetric.default", chooseForRows<false>},
    {"quantized_decomposed.fake_quant_per_channel.default",
     [](const Run& run) {
         fake(run, {3, 4, -1, false});
     }},
    {"aten.fake_quantize_per_channel_affine_cachemask.default",
     [](const Run& run) {
         fake(run, {3, 4, -1, true});
     }},
    {"aten.fake_quantize_per_tensor_affine_cachemask.default",
     [](const Run& run) {
         fake(run, {-1, 3, -1, false});
     }},
    {"aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
     [](const Run& run) {
         fake(run, {-1, 4, 3, false});
     }},
};

}  // namespace

std::span<const Function> observeFunctions() { return kObserveFunctions; }

}  // namespace cutaway::portable
