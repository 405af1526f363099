// Random numbers as the interpreter draws them (ops/draw.h): by Philox under the run's seed, the call's place among
// those of the run that draw, and the element's.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/runtime/portable/portable.h"
#include "engine/support/philox.h"

namespace cutaway::portable {
namespace {

constexpr int64_t kChunk = 256;

/// The seed, and the stream of this call: another one in each.
struct Source {
    uint64_t seed, stream;
    std::array<uint32_t, 4> operator()(uint64_t counter) const { return philox(seed, counter, stream); }
};
Source sourceOf(const Run& run) {
    if (run.parallel->random == nullptr) throw Failure("nothing lends the call random numbers");
    return {run.parallel->random->seed, run.parallel->random->draws++};
}

/// Each element of the result is draw(bits, its number).
template <class Draw>
void drawAll(const Run& run, Draw draw) {
    const Source source = sourceOf(run);
    const Strided out = run.out();
    using Number = decltype(draw(source(0), int64_t{0}));
    run.share(out.elements(), [&](int64_t, int64_t begin, int64_t end) {
        Number numbers[kChunk];
        for (int64_t first = begin; first < end; first += kChunk) {
            const int64_t count = std::min(kChunk, end - first);
            for (int64_t i = 0; i < count; ++i) numbers[i] = draw(source(static_cast<uint64_t>(first + i)), first + i);
            storeRange(out, first, first + count, numbers);
        }
    });
}

/// The largest number of the dtype below 1 where rounding would reach it.
double belowOne(int32_t dtype, double u) {
    switch (dtype) {
        case CT_BF16: return std::min(u, 1 - 0x1.0p-8);
        case CT_F16: return std::min(u, 1 - 0x1.0p-11);
        case CT_F32: return std::min(u, 1 - 0x1.0p-24);
        default: return u;
    }
}
void rand(const Run& run) {
    const int32_t dtype = run.out().dtype;
    drawAll(run, [=](const auto& bits, int64_t) { return belowOne(dtype, uniform(bits)); });
}
void randn(const Run& run) {
    drawAll(run, [](const auto& bits, int64_t) { return normal(bits); });
}
void randint(const Run& run) {
    const int64_t low = integerOf(*run.call, 0), high = integerOf(*run.call, 1);
    if (high <= low) throw Failure("high must lie above low");
    drawAll(run, [=](const auto& bits, int64_t) { return integerBetween(bits, low, high); });
}
void randperm(const Run& run) {
    const Source source = sourceOf(run);
    const Strided out = run.out();
    std::vector<int64_t> order(static_cast<size_t>(out.elements()));
    std::iota(order.begin(), order.end(), int64_t{0});
    for (size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[static_cast<size_t>(integerBetween(source(i), 0, static_cast<int64_t>(i)))]);
    storeRange(out, 0, out.elements(), order.data());
}

/// Of an operand that is repeated to the result's sizes, or a number that stands for all elements.
std::vector<double> spread(const Run& run, int32_t parameter) {
    const Strided out = run.out();
    std::vector<double> numbers(static_cast<size_t>(out.elements()));
    const CtArgument& argument = run.call->args[parameter];
    if (argument.kind != CT_OPERAND) std::fill(numbers.begin(), numbers.end(), numberOf<double>(argument));
    else if (!numbers.empty()) loadAll(broadcast(run.in(parameter), out.sizes, out.rank), numbers.data());
    return numbers;
}
void bernoulli(const Run& run) {
    const std::vector<double> chances = spread(run, 1);
    for (const double p : chances)
        if (!(p >= 0 && p <= 1)) throw Failure("the probabilities must lie between 0 and 1");
    drawAll(run,
            [&](const auto& bits, int64_t i) { return uniform(bits) < chances[static_cast<size_t>(i)] ? 1.0 : 0.0; });
}
void normalAround(const Run& run) {
    const std::vector<double> mean = spread(run, 0), deviation = spread(run, 1);
    for (const double one : deviation)
        if (!(one >= 0)) throw Failure("the standard deviations must not be negative");
    drawAll(run, [&](const auto& bits, int64_t i) {
        return mean[static_cast<size_t>(i)] + deviation[static_cast<size_t>(i)] * normal(bits);
    });
}

/// Classes by their weights. Without replacement by a race: each class arrives after an exponential time, the faster
/// the heavier it is.
void multinomial(const Run& run) {
    const Source source = sourceOf(run);
    const Strided self = run.in(0), out = run.out();
    const int64_t classes = self.sizes[self.rank - 1], count = out.sizes[out.rank - 1];
    const bool replacement = integerOf(*run.call, 2) != 0;
    std::vector<double> weights(static_cast<size_t>(self.elements()));
    if (!weights.empty()) loadAll(self, weights.data());
    std::vector<int64_t> taken(static_cast<size_t>(out.elements()));
    uint64_t draws = 0;
    const auto next = [&] { return uniform(source(draws++)); };
    for (int64_t row = 0; row < rowsOf(self); ++row) {
        const double* const weight = weights.data() + row * classes;
        int64_t* const chosen = taken.data() + row * count;
        double total = 0;
        int64_t possible = 0, last = 0;
        for (int64_t i = 0; i < classes; ++i) {
            if (!(weight[i] >= 0) || std::isinf(weight[i]))
                throw Failure("the weights must be finite and not negative");
            total += weight[i];
            possible += weight[i] > 0;
            last = weight[i] > 0 ? i : last;
        }
        if (!(total > 0)) throw Failure("the weights of a row add up to nothing");
        if (replacement) {
            for (int64_t k = 0; k < count; ++k) {
                double rest = next() * total;
                int64_t at = 0;
                for (; at < last && (weight[at] == 0 || rest >= weight[at]); ++at) rest -= weight[at];
                chosen[k] = at;
            }
            continue;
        }
        if (possible < count) throw Failure("fewer classes have a weight than samples are taken without replacement");
        std::vector<std::pair<double, int64_t>> arrivals;
        for (int64_t i = 0; i < classes; ++i) {
            const double time = -std::log(1 - next());
            if (weight[i] > 0) arrivals.emplace_back(time / weight[i], i);
        }
        std::sort(arrivals.begin(), arrivals.end());
        for (int64_t k = 0; k < count; ++k) chosen[k] = arrivals[static_cast<size_t>(k)].second;
    }
    storeRange(out, 0, out.elements(), taken.data());
}

constexpr Function kFunctions[] = {
    {"aten.rand.default", rand},
    {"aten.randn.default", randn},
    {"aten.randint.low", randint},
    {"aten.randperm.default", randperm},
    {"aten.bernoulli.Tensor", bernoulli},
    {"aten.normal.Tensor_Tensor", normalAround},
    {"aten.normal.Tensor_float", normalAround},
    {"aten.normal.float_Tensor", normalAround},
    {"aten.multinomial.default", multinomial},
};

}  // namespace

std::span<const Function> drawFunctions() { return kFunctions; }

}  // namespace cutaway::portable
