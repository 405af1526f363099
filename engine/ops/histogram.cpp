// Histograms: how many elements fall into each of a row of equal bins.
#include <algorithm>
#include <cmath>

#include "engine/ops/eval.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

Result<ValueType> inferHistogram(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor("self"));
    CT_TRY(const int64_t bins, c.integer("bins", 100));
    if (bins < 1) return c.fail("needs at least one bin, not " + std::to_string(bins));
    if (!isFloating(self.dtype)) return c.fail("has no kernel for " + std::string(info(self.dtype).torchName));
    const double low = toDouble(c.scalar("min").value_or(Scalar(int64_t{0}))),
                 high = toDouble(c.scalar("max").value_or(Scalar(int64_t{0})));
    if (!std::isfinite(low) || !std::isfinite(high)) return c.fail("needs finite bounds");
    if (low > high) return c.fail("max must not lie below min");
    return ValueType(TensorType::contiguous(self.dtype, {bins}, self.device));
}
/// Equal bounds stand for those of the elements; if these are equal too, the bins reach one to either side.
EvalResult evalHistogram(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor self = c.in("self");
    const int64_t bins = out.numel();
    std::optional<Error> wrong;
    withFloat(self.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> in = packElements<T>(self);
        auto low = static_cast<T>(toDouble(c.number("min"))), high = static_cast<T>(toDouble(c.number("max")));
        if (low == high && !in.empty()) {
            low = *std::min_element(in.begin(), in.end());
            high = *std::max_element(in.begin(), in.end());
            if (!std::all_of(in.begin(), in.end(), [](T x) { return std::isfinite(x); })) {
                wrong = invalidInput(c.op().name() + ": the elements are not finite; give min and max");
                return;
            }
        }
        if (low == high) low -= 1, high += 1;
        std::vector<T> counts(static_cast<size_t>(bins), T(0));
        for (const T x : in) {
            if (!(x >= low && x <= high)) continue;
            const auto bin = static_cast<int64_t>((x - low) * static_cast<T>(bins) / (high - low));
            counts[static_cast<size_t>(std::clamp<int64_t>(bin, 0, bins - 1))] += 1;
        }
        unpackElements(counts, out);
    });
    if (wrong) return *wrong;
    return out;
}

constexpr OpDef kOps[] = {
    {.schema = "aten.histc.default(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferHistogram,
     .eval = evalHistogram,
     .samples = "f32[2, 7], 4\nf64[20], 5, -1, 1\nf32[9], 3, 0, 1"},
};

}  // namespace

std::span<const OpDef> histogramOps() { return kOps; }

}  // namespace cutaway
