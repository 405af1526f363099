// Clamps that keep NaN, as eager does. The library's clip and its relu without a slope give a bound where an element is
// NaN (versions 2 and 3): they take maxima of registers, which are the second operand where the first is NaN.
#include <algorithm>
#include <bit>

#include "engine/runtime/libraries/onednn_plan.h"
#include "engine/runtime/portable/elements.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

using Type = dnnl::memory::data_type;

struct Clamp {
    float low, high;
};
std::optional<Clamp> clampOf(const CallReader& call, std::string_view name) {
    if (name == "hardsigmoid") return Clamp{0, 1};
    if (name != "hardtanh") return std::nullopt;
    const std::vector<float> bounds = call.reals("scalars");
    return Clamp{std::min(bounds[0], bounds[1]), bounds[1]};  // where the bounds cross, all is the upper one
}

void clampFloats(const Clamp& clamp, float* elements, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const float raised = elements[i] < clamp.low ? clamp.low : elements[i];
        elements[i] = raised > clamp.high ? clamp.high : raised;
    }
}
/// Elements of bfloat16. The bounds are given in both forms.
void clampBfloats(const Clamp& clamp, uint16_t low, uint16_t high, uint16_t* elements, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const auto value = std::bit_cast<float>(static_cast<uint32_t>(elements[i]) << 16);
        const uint16_t raised = value < clamp.low ? low : elements[i];
        elements[i] = value > clamp.high ? high : raised;
    }
}

/// Where elements lie: runs of neighbours, at the offsets that the outer dims give.
struct Runs {
    Dims sizes, strides;  // of the outer dims
    int64_t length = 1;   // of a run

    int64_t count() const {
        int64_t runs = 1;
        for (const int64_t size : sizes) runs *= size;
        return runs;
    }
    int64_t offset(int64_t run) const {
        int64_t at = 0;
        for (size_t d = sizes.size(); d-- > 0; run /= sizes[d]) at += run % sizes[d] * strides[d];
        return at;
    }
};
Runs runsOf(const DnnlLayout& layout) {
    std::vector<std::pair<int64_t, int64_t>> dims;  // stride and size
    for (size_t d = 0; d < layout.sizes.size(); ++d)
        if (layout.sizes[d] != 1) dims.emplace_back(layout.strides[d], layout.sizes[d]);
    std::sort(dims.begin(), dims.end());
    Runs runs;
    for (const auto& [stride, size] : dims)
        if (runs.sizes.empty() && stride == runs.length) runs.length *= size;
        else {
            runs.sizes.insert(runs.sizes.begin(), size);
            runs.strides.insert(runs.strides.begin(), stride);
        }
    return runs;
}

}  // namespace

void appendUnary(dnnl::post_ops& ops, const CallReader& call, std::string_view name) {
    using dnnl::algorithm;
    const std::vector<float> numbers = call.reals("scalars");
    const auto append = [&](algorithm function, float a = 0, float b = 0) { appendFunction(ops, function, a, b); };
    if (name.empty() || name == "none") return;
    if (name == "relu") {
        append(algorithm::eltwise_elu, 0);        // chooses by a comparison; -0 for what is not above 0
        append(algorithm::eltwise_linear, 1, 0);  // 0 in its place
    } else if (name == "sigmoid") append(algorithm::eltwise_logistic);
    else if (name == "tanh") append(algorithm::eltwise_tanh);
    else if (name == "swish") append(algorithm::eltwise_swish, 1);
    else if (name == "hardswish") append(algorithm::eltwise_hardswish, 1.0f / 6, 0.5f);
    else if (name == "hardsigmoid") append(algorithm::eltwise_linear, 1.0f / 6, 0.5f);
    else if (name == "leaky_relu" && numbers.size() == 1) append(algorithm::eltwise_relu, numbers[0]);
    else if (name == "gelu")
        append(call.text("algorithm") == "tanh" ? algorithm::eltwise_gelu_tanh : algorithm::eltwise_gelu_erf);
    else if (name != "hardtanh" || numbers.size() != 2) throw LibraryRefusal("it has no function " + std::string(name));
}

void clampBehind(OneDnnPlan& plan, const CallReader& call, std::string_view name, const OneDnnPlan::Place& made,
                 const DnnlLayout& result) {
    const std::optional<Clamp> clamp = clampOf(call, name);
    if (!clamp) return;
    const Type type = typeIn(made.layout);
    if (type != Type::f32 && type != Type::bf16) throw LibraryRefusal("its clamps are made in f32 and bfloat16");
    const bool wide = type == Type::f32;
    const int64_t bytes = wide ? sizeof(float) : sizeof(uint16_t);
    Runs runs;
    if (made.kind == OneDnnPlan::Place::Kind::Result) runs = runsOf(result);
    else runs.length = static_cast<int64_t>(made.layout.get_size()) / bytes;
    const uint16_t low = portable::toBfloat(clamp->low).bits, high = portable::toBfloat(clamp->high).bits;
    const auto work = [=, threads = plan.threads()](const std::vector<void*>& at, const LibraryRun&) {
        const auto apply = [&](int64_t offset, int64_t count) {
            if (wide) clampFloats(*clamp, static_cast<float*>(at[0]) + offset, count);
            else clampBfloats(*clamp, low, high, static_cast<uint16_t*>(at[0]) + offset, count);
        };
        constexpr int64_t kUnit = 4096;  // elements that a thread takes at once
        const int64_t count = runs.count();
        if (count == 1)
            return runRange(runs.length, kUnit, threads,
                            [&](int64_t begin, int64_t end) { apply(begin, end - begin); });
        runRange(count, std::max<int64_t>(kUnit / runs.length, 1), threads, [&](int64_t begin, int64_t end) {
            for (int64_t run = begin; run < end; ++run) apply(runs.offset(run), runs.length);
        });
    };
    plan.add(work, {{DNNL_ARG_DST, made}});
}

}  // namespace cutaway
