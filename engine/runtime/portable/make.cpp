// Tensors that are made of numbers alone: memory that nobody has written to yet, windows of signals, and frequencies.
#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {
namespace {

/// Element i is f(i).
template <class F>
void fillByPosition(const Run& run, F f) {
    const Strided out = run.out();
    run.share(out.elements(), [&](int64_t, int64_t begin, int64_t end) {
        decltype(f(int64_t{0})) numbers[kChunk];
        for (int64_t first = begin; first < end; first += kChunk) {
            const int64_t count = std::min(kChunk, end - first);
            for (int64_t i = 0; i < count; ++i) numbers[i] = f(first + i);
            storeRange(out, first, first + count, numbers);
        }
    });
}
/// Zeros, so that runs repeat.
void empty(const Run& run) {
    fillByPosition(run, [](int64_t) { return int64_t{0}; });
}

// -- windows: (window_length[, periodic[, parameters]])

constexpr int32_t kPeriodic = 1, kFirst = 2, kSecond = 3;

/// A parameter of the operator; the options of factories that may stand in its place are not numbers.
double parameter(const CtCall& call, int32_t position, double fallback) {
    const int32_t kind = position < call.argCount ? call.args[position].kind : static_cast<int32_t>(CT_NONE);
    return kind == CT_REAL || kind == CT_INT || kind == CT_TRUTH ? numberOf<double>(call.args[position]) : fallback;
}
/// f(position from 0 to 1); a periodic window is that of one element more, without it.
template <class F>
void window(const Run& run, F f) {
    const CtCall& call = *run.call;
    const int64_t length = run.out().elements();
    const bool periodic = call.args[kPeriodic].kind != CT_TRUTH || integerOf(call, kPeriodic) != 0;
    const double last = static_cast<double>(periodic ? length : length - 1);
    fillByPosition(run, [=](int64_t i) { return length == 1 ? 1.0 : f(static_cast<double>(i) / last); });
}
constexpr double kTurn = 6.283185307179586;
void hann(const Run& run) {
    window(run, [](double x) { return 0.5 - 0.5 * std::cos(kTurn * x); });
}
void hamming(const Run& run) {
    const double alpha = parameter(*run.call, kFirst, 0.54), beta = parameter(*run.call, kSecond, 0.46);
    window(run, [=](double x) { return alpha - beta * std::cos(kTurn * x); });
}
void bartlett(const Run& run) {
    window(run, [](double x) { return 1 - std::fabs(2 * x - 1); });
}
void blackman(const Run& run) {
    window(run, [](double x) { return 0.42 - 0.5 * std::cos(kTurn * x) + 0.08 * std::cos(2 * kTurn * x); });
}
/// The modified Bessel function of order 0, by its series.
double besselOfOrder0(double x) {
    double term = 1, total = 1;
    for (int k = 1; k < 500 && term > 1e-17 * total; ++k) total += term *= x * x / (4.0 * k * k);
    return total;
}
void kaiser(const Run& run) {
    const double beta = parameter(*run.call, kFirst, 12.0);
    window(run, [=](double x) {
        return besselOfOrder0(beta * std::sqrt(std::max(0.0, 1 - (2 * x - 1) * (2 * x - 1)))) / besselOfOrder0(beta);
    });
}

/// (n, d)
template <bool half>
void frequencies(const Run& run) {
    const int64_t n = integerOf(*run.call, 0);
    const double d = numberOf<double>(run.call->args[1]);
    fillByPosition(run, [=](int64_t i) {
        return static_cast<double>(half || i < (n + 1) / 2 ? i : i - n) / (static_cast<double>(n) * d);
    });
}

constexpr Function kMakeFunctions[] = {
    {"aten.empty.memory_format", empty},
    {"aten.empty_strided.default", empty},
    {"aten.new_empty_strided.default", empty},
    {"aten.hann_window.default", hann},
    {"aten.hann_window.periodic", hann},
    {"aten.hamming_window.default", hamming},
    {"aten.hamming_window.periodic", hamming},
    {"aten.hamming_window.periodic_alpha", hamming},
    {"aten.hamming_window.periodic_alpha_beta", hamming},
    {"aten.bartlett_window.default", bartlett},
    {"aten.bartlett_window.periodic", bartlett},
    {"aten.blackman_window.default", blackman},
    {"aten.blackman_window.periodic", blackman},
    {"aten.kaiser_window.default", kaiser},
    {"aten.kaiser_window.periodic", kaiser},
    {"aten.kaiser_window.beta", kaiser},
    {"aten.fft_fftfreq.default", frequencies<false>},
    {"aten.fft_rfftfreq.default", frequencies<true>},
};

}  // namespace

std::span<const Function> makeFunctions() { return kMakeFunctions; }

}  // namespace cutaway::portable
