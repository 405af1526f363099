// torchaudio's recursive filter: y[n] = x[n] − Σ a[k] y[n−k], each channel with its own coefficients.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

/// Signals [batch, channels, samples], coefficients [channels, taps] with the last one first, and signals that begin
/// with the taps - 1 outputs before the first one.
Result<ValueType> inferRecursiveFilter(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor(size_t{0}));
    CT_TRY(const TensorType taps, c.tensor(1));
    CT_TRY(TensorType y, c.tensor(2));
    if (!isFloating(x.dtype) || x.dtype != taps.dtype || x.dtype != y.dtype)
        return c.fail("needs signals and coefficients of one floating-point dtype, not " + x.text() + ", " +
                      taps.text() + " and " + y.text());
    if (x.rank() != 3 || taps.rank() != 2 || y.rank() != 3 || differ(y.sizes[0], x.sizes[0]) ||
        differ(y.sizes[1], x.sizes[1]) || differ(taps.sizes[0], x.sizes[1]) ||
        differ(y.sizes[2], x.sizes[2] + taps.sizes[1] - SymInt(1)))
        return c.fail(
            "needs signals [batch, channels, samples], coefficients [channels, taps] and results with taps - 1 "
            "samples more, not " +
            x.text() + ", " + taps.text() + " and " + y.text());
    return ValueType(TensorType::contiguous(y.dtype, y.sizes, y.device));
}
EvalResult evalRecursiveFilter(const EvalContext& c) {
    const Tensor signals = c.in(size_t{0}), coefficients = c.in(1), padded = c.in(2);
    Tensor out = c.result();
    const int64_t channels = signals.size(1), samples = signals.size(2), taps = coefficients.size(1);
    withFloat(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const auto x = packElements<T>(signals), a = packElements<T>(coefficients);
        auto y = packElements<T>(padded);
        for (int64_t line = 0; line < signals.size(0) * channels; ++line) {
            const T *in = x.data() + line * samples, *weights = a.data() + line % channels * taps;
            T* to = y.data() + line * (samples + taps - 1);
            for (int64_t n = 0; n < samples; ++n) {
                T next = in[n];
                for (int64_t k = 0; k < taps; ++k) next -= weights[k] * to[n + k];
                to[n + taps - 1] = next;
            }
        }
        unpackElements(y, out);
    });
    return out;
}

constexpr std::string_view kFilter = "torchaudio._lfilter_core_loop.functional";

/// The samples of each signal from `from` on, or to before `to`.
Value tail(const Value& x, const SymInt& from, const std::optional<SymInt>& to = std::nullopt) {
    return x.builder().call("aten.slice.Tensor", {x, int64_t{2}, Argument(from), to ? Argument(*to) : Argument()});
}
/// [.., rows, columns] of a signal: element row + column at each place.
Value windowsOf(Decomposition& d, const Value& x, const SymInt& rows, const SymInt& columns) {
    const Value places =
        unsqueeze(iota(d.builder(), rows, x.type().device), 1) + iota(d.builder(), columns, x.type().device);
    return d.call("aten.index.Tensor", {x, Argument(std::vector<Argument>{Argument(), Argument(), places})});
}
/// What flows back runs through the same filter, from the end: g[n] = dy[n] − Σ a[k] g[n+k].
void deriveRecursiveFilter(Derivation& d) {
    const Value x = d.in(size_t{0}), taps = d.in(1), padded = d.in(2), dy = d.dy();
    const SymInt count = taps.size(1), before = count - SymInt(1);
    const auto reversed = [&](const Value& v, int64_t dim) {
        return d.call("aten.flip.default", {v, Argument(std::vector<Argument>{Argument(dim)})});
    };
    const Value zeros = full(d.builder(), padded.sizes(), Scalar(0.0), padded.dtype(), padded.type().device);
    const Value back = reversed(tail(d.call(kFilter, {reversed(tail(dy, before), 2), taps, zeros}), before), 2);
    d.input(0) = back;
    if (d.needs(1)) {
        // Beside a[k] stands the output k steps before; beside a[0], what the place held.
        const Value earlier = windowsOf(d, d.out(), x.size(2), before);
        const Value beside = cat(d.builder(), {earlier, unsqueeze(tail(padded, before), -1)}, 3);
        d.input(1) = -sum(unsqueeze(back, -1) * beside, {0, 2}, false);
    }
    if (d.needs(2)) {
        const Value around = d.call("aten.constant_pad_nd.default", {back, Argument(SymDims{before, before}), 0.0});
        const Value used = sum(windowsOf(d, around, before, count) * unsqueeze(reversed(taps, 1), 1), {-1}, false);
        const Value first = d.call("aten.slice.Tensor", {taps, int64_t{1}, Argument(before), Argument()});
        d.input(2) = cat(d.builder(), {tail(dy, 0, before) - used, -(back * first)}, 2);
    }
}

constexpr OpDef kTorchaudioOps[] = {
    // Without the write: torchaudio has no such overload.
    {.schema =
         "torchaudio._lfilter_core_loop.functional(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor padded_output_waveform) -> Tensor",
     .infer = inferRecursiveFilter,
     .eval = evalRecursiveFilter,
     .derive = deriveRecursiveFilter,
     .samples =
         "f32[2, 3, 7], f32[3, 3]%, f32[2, 3, 9]\nf64[1, 2, 5], f64[2, 1]%, f64[1, 2, 5]\nf32[2, 1, 6], f32[1, 4]%, f32[2, 1, 9]"},
    shorthand(
        "torchaudio._lfilter_core_loop.default(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) padded_output_waveform) -> Tensor(a!)",
        [](Decomposition& d) -> Values {
            return d.call("aten.copy_.default", {d.in(2), d.call(kFilter, {d.in(size_t{0}), d.in(1), d.in(2)})});
        },
        "f32[2, 3, 7], f32[3, 3]%, f32[2, 3, 9]\nf64[1, 2, 5], f64[2, 1]%, f64[1, 2, 5]"),
};

}  // namespace

std::span<const OpDef> torchaudioOps() { return kTorchaudioOps; }

}  // namespace cutaway
