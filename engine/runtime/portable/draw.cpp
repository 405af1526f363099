// Random numbers as the interpreter draws them (ops/draw.h): by Philox under the run's seed, the call's place among
// those of the run that draw, and the element's.
#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "engine/runtime/portable/portable.h"
#include "engine/support/gamma.h"
#include "engine/support/philox.h"

namespace cutaway::portable {
namespace {

/// The key of this call, another one in each.
struct Source {
    uint64_t key;
    std::array<uint32_t, 4> operator()(uint64_t counter) const { return philox(key, counter); }
};
Source sourceOf(const Run& run) {
    if (run.parallel->random == nullptr) throw Failure("nothing lends the call random numbers");
    return {keyOfDraw(run.parallel->random->seed, run.parallel->random->draws++)};
}

/// Each element of the result is draw(bits, its number).
template <class Draw>
void drawAll(const Run& run, const Source& source, Draw draw) {
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

template <class Draw>
void drawAll(const Run& run, Draw draw) {
    drawAll(run, sourceOf(run), draw);
}

/// `u`, or the largest number of the dtype below 1 where rounding would make 1 of it.
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
/// One seed for each draw of a graph.
void seeds(const Run& run) {
    const Strided out = run.out();
    std::vector<int64_t> all(static_cast<size_t>(out.elements()));
    for (int64_t& seed : all) seed = static_cast<int64_t>(sourceOf(run).key);
    storeRange(out, 0, out.elements(), all.data());
}
/// (low, high, size, seed): drawn under the seed, not under the run's.
void randintOfSeed(const Run& run) {
    const int64_t low = integerOf(*run.call, 0), high = integerOf(*run.call, 1);
    if (high <= low) throw Failure("high must lie above low");
    const Strided given = run.in(3);
    const auto seed = static_cast<uint64_t>(Indices(given)[0]);
    drawAll(run, Source{seed}, [=](const auto& bits, int64_t) { return integerBetween(bits, low, high); });
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

// -- numbers of the operand's sizes, whatever its values: (self, bounds or parameters)

void uniformBetween(const Run& run) {
    const double from = numberOf<double>(run.call->args[1]), to = numberOf<double>(run.call->args[2]);
    drawAll(run, [=](const auto& bits, int64_t) { return from + uniform(bits) * (to - from); });
}
void normalOf(const Run& run) {
    const double mean = numberOf<double>(run.call->args[1]), deviation = numberOf<double>(run.call->args[2]);
    drawAll(run, [=](const auto& bits, int64_t) { return mean + deviation * normal(bits); });
}
void bernoulliOf(const Run& run) {
    const double p = numberOf<double>(run.call->args[1]);
    drawAll(run, [=](const auto& bits, int64_t) { return uniform(bits) < p ? 1.0 : 0.0; });
}
/// The largest integer up to which the dtype tells all apart.
int64_t greatestInteger(int32_t dtype) {
    switch (dtype) {
        case CT_BOOL: return 1;
        case CT_U8: return 0xff;
        case CT_I8: return 0x7f;
        case CT_I16: return 0x7fff;
        case CT_I32: return 0x7fffffff;
        case CT_BF16: return int64_t{1} << 8;
        case CT_F16: return int64_t{1} << 11;
        case CT_F32: return int64_t{1} << 24;
        case CT_F64: return int64_t{1} << 53;
        default: return std::numeric_limits<int64_t>::max();
    }
}
/// Integers from `low` to below `high`; null: from 0, to all that the dtype tells apart.
void integers(const Run& run, const CtArgument* low, const CtArgument* high) {
    const int64_t from = low ? low->integer : 0;
    const bool bounded = high != nullptr && high->kind != CT_NONE;
    const uint64_t count =
        bounded ? integersBetween(from, high->integer) : integersBetween(from, greatestInteger(run.out().dtype)) + 1;
    drawAll(run, [=](const auto& bits, int64_t) { return integerFrom(bits, from, count); });
}
void random(const Run& run) { integers(run, nullptr, nullptr); }
void randomTo(const Run& run) { integers(run, nullptr, &run.call->args[1]); }
void randomFrom(const Run& run) { integers(run, &run.call->args[1], &run.call->args[2]); }

/// Of an operand that is repeated to the result's sizes, or a number that stands for all elements.
std::vector<double> spreadNumbers(const Run& run, int32_t parameter) {
    const Strided out = run.out();
    std::vector<double> numbers(static_cast<size_t>(out.elements()));
    const CtArgument& argument = run.call->args[parameter];
    if (argument.kind != CT_OPERAND) std::fill(numbers.begin(), numbers.end(), numberOf<double>(argument));
    else if (!numbers.empty()) loadAll(broadcast(run.in(parameter), out.sizes, out.rank), numbers.data());
    return numbers;
}
void bernoulli(const Run& run) {
    const std::vector<double> chances = spreadNumbers(run, 1);
    for (const double p : chances)
        if (!(p >= 0 && p <= 1)) throw Failure("the probabilities must lie between 0 and 1");
    drawAll(run,
            [&](const auto& bits, int64_t i) { return uniform(bits) < chances[static_cast<size_t>(i)] ? 1.0 : 0.0; });
}
void normalAround(const Run& run) {
    const std::vector<double> mean = spreadNumbers(run, 0), deviation = spreadNumbers(run, 1);
    for (const double one : deviation)
        if (!(one >= 0)) throw Failure("the standard deviations must not be negative");
    drawAll(run, [&](const auto& bits, int64_t i) {
        return mean[static_cast<size_t>(i)] + deviation[static_cast<size_t>(i)] * normal(bits);
    });
}

// -- counts, by the standard library's distributions: one after the other, since each takes as many bits as it needs

constexpr double kMostTrials = 9e15;  // beyond it floats tell counts no longer apart

void poisson(const Run& run) {
    std::vector<double> numbers = spreadNumbers(run, 0);
    KeyBits bits(sourceOf(run).key);
    for (double& number : numbers) {
        if (!(number >= 0)) throw Failure("the rates must not be negative");
        if (number > kMostTrials) throw Failure("a rate of " + std::to_string(number) + " is too large to draw from");
        if (number > 0) number = static_cast<double>(std::poisson_distribution<int64_t>(number)(bits));
    }
    storeRange(run.out(), 0, run.out().elements(), numbers.data());
}
void binomial(const Run& run) {
    std::vector<double> counts = spreadNumbers(run, 0);
    const std::vector<double> chances = spreadNumbers(run, 1);
    KeyBits bits(sourceOf(run).key);
    for (size_t i = 0; i < counts.size(); ++i) {
        if (!(chances[i] >= 0 && chances[i] <= 1) || !(counts[i] >= 0 && counts[i] <= kMostTrials))
            throw Failure(
                "counts must not be negative or beyond what floats tell apart, and probabilities must lie between 0 "
                "and 1");
        counts[i] =
            static_cast<double>(std::binomial_distribution<int64_t>(static_cast<int64_t>(counts[i]), chances[i])(bits));
    }
    storeRange(run.out(), 0, run.out().elements(), counts.data());
}

double leastDrawn(int32_t dtype) {
    if (dtype == CT_F64) return std::numeric_limits<double>::min();
    return dtype == CT_F16 ? 0x1p-14 : std::numeric_limits<float>::min();
}
std::vector<double> gammas(const Run& run) {
    std::vector<double> numbers = spreadNumbers(run, 0);
    KeyBits bits(sourceOf(run).key);
    const double least = leastDrawn(run.out().dtype);
    for (double& number : numbers) {
        if (!(number >= 0) || std::isinf(number)) throw Failure("the concentrations must be finite and not negative");
        number = standardGamma(number, least, bits);
    }
    return numbers;
}
void drawGammas(const Run& run) { storeRange(run.out(), 0, run.out().elements(), gammas(run).data()); }
void dirichlet(const Run& run) {
    std::vector<double> numbers = gammas(run);
    const Strided out = run.out();
    const auto classes = static_cast<size_t>(out.sizes[out.rank - 1]);
    for (size_t row = 0; classes > 0 && row < numbers.size(); row += classes) shareRow({numbers.data() + row, classes});
    storeRange(out, 0, out.elements(), numbers.data());
}
void gammaGradient(const Run& run) {
    std::vector<double> shapes = spreadNumbers(run, 0);
    const std::vector<double> drawn = spreadNumbers(run, 1);
    for (size_t i = 0; i < shapes.size(); ++i) shapes[i] = gammaByShape(shapes[i], drawn[i]);
    storeRange(run.out(), 0, run.out().elements(), shapes.data());
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

constexpr Function kDrawFunctions[] = {
    {"aten.rand.default", rand},
    {"aten.randn.default", randn},
    {"aten.randint.low", randint},
    {"aten.randperm.default", randperm},
    {"prims.inductor_seeds.default", seeds},
    {"prims.inductor_randint.default", randintOfSeed},
    {"aten.uniform.default", uniformBetween},
    {"aten.normal_functional.default", normalOf},
    {"aten.bernoulli.p", bernoulliOf},
    {"aten.random.default", random},
    {"aten.random.to", randomTo},
    {"aten.random.from", randomFrom},
    {"aten.poisson.default", poisson},
    {"aten.binomial.default", binomial},
    {"aten._standard_gamma.default", drawGammas},
    {"aten._standard_gamma_grad.default", gammaGradient},
    {"aten._sample_dirichlet.default", dirichlet},
    {"aten.bernoulli.Tensor", bernoulli},
    {"aten.normal.Tensor_Tensor", normalAround},
    {"aten.normal.Tensor_float", normalAround},
    {"aten.normal.float_Tensor", normalAround},
    {"aten.multinomial.default", multinomial},
};

}  // namespace

std::span<const Function> drawFunctions() { return kDrawFunctions; }

}  // namespace cutaway::portable
