// The public names of Fourier transforms (fft_*, stft, istft), windows and frequencies.
#include <cmath>
#include <numbers>

#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

// -- what all forms read from their arguments

std::optional<int64_t> normOf(Decomposition& d, bool forward) {
    const std::string name = d.has("norm") ? d.text("norm") : "backward";
    if (name == "ortho") return 1;
    if (name == "backward") return forward ? 0 : 2;
    if (name == "forward") return forward ? 2 : 0;
    refuse(d, "norm is 'backward', 'ortho' or 'forward', not '" + name + "'");
    return std::nullopt;
}
Value toReal(const Value& x) { return isFloating(x.dtype()) ? x : convert(x, DType::F32); }
Value toComplex(const Value& x) {
    if (isComplex(x.dtype())) return x;
    return x.builder().call("aten._to_copy.default", {x},
                            {{"dtype", x.dtype() == DType::F64 ? DType::C128 : DType::C64}});
}
struct Axes {
    std::vector<int64_t> dims;
    std::vector<std::optional<SymInt>> sizes;
};
std::optional<Axes> refuseAxes(Decomposition& d, const std::string& why) {
    refuse(d, why);
    return std::nullopt;
}
/// One dim and its length `n`, or several and their lengths `s`. Without dims: as many of the last as there are
/// lengths, or all.
std::optional<Axes> axesOf(Decomposition& d) {
    Axes axes;
    const int64_t rank = d.in(0).rank();
    const bool one = d.op().schema()->find("n") >= 0;
    if (one) {
        const auto dim = read(d, d.dim("dim", rank));
        if (!dim) return std::nullopt;
        axes.dims = {*dim};
        axes.sizes.resize(1);
        if (d.has("n")) {
            const auto size = read(d, d.size("n"));
            if (!size) return std::nullopt;
            axes.sizes[0] = *size;
        }
    } else {
        SymDims lengths;
        if (d.has("s")) {
            const auto given = read(d, d.sizes("s"));
            if (!given) return std::nullopt;
            lengths = *given;
        }
        if (d.has("dim")) {
            const auto dims = read(d, d.dims("dim", rank, false));
            if (!dims) return std::nullopt;
            axes.dims = *dims;
        } else {
            const int64_t count = d.has("s") ? static_cast<int64_t>(lengths.size()) : rank;
            for (int64_t dim = rank - count; dim < rank; ++dim) axes.dims.push_back(dim);
        }
        axes.sizes.resize(axes.dims.size());
        if (d.has("s") && lengths.size() != axes.dims.size())
            return refuseAxes(d, "as many lengths as dims are needed");
        for (size_t i = 0; i < lengths.size(); ++i)
            if (!(lengths[i] == SymInt(-1))) axes.sizes[i] = lengths[i];
    }
    if (axes.dims.empty() || rank == 0 || axes.dims[0] < 0) return refuseAxes(d, "needs a dim to transform");
    for (size_t i = 0; i < axes.dims.size(); ++i) {
        const SymInt size = axes.sizes[i].value_or(d.in(0).size(axes.dims[i]));
        if (exceeds(1, size)) return refuseAxes(d, "a transform of " + size.text() + " elements");
    }
    return axes;
}
/// Cut off, or zeros behind, to the lengths that are given.
Value fitted(Decomposition& d, Value x, const Axes& axes) {
    std::vector<Argument> pad(static_cast<size_t>(2 * x.rank()), Argument(int64_t{0}));
    bool grows = false;
    for (size_t i = 0; i < axes.dims.size(); ++i) {
        const int64_t dim = axes.dims[i];
        const SymInt have = x.size(dim), size = axes.sizes[i].value_or(have);
        if (have == size) continue;
        if (have.isInt() && size.isInt() && size.value() < have.value()) {
            x = d.call("aten.slice.Tensor", {x, dim, 0, Argument(size)});
            if (!x) return x;
            continue;
        }
        pad[pad.size() - static_cast<size_t>(2 * dim) - 1] = Argument(size - have);
        grows = true;
    }
    return grows ? d.call("aten.constant_pad_nd.default", {x, Argument(pad)}) : x;
}
Value decomposeToNothing(Decomposition& d) { return Value(d.builder(), nullptr); }

// -- the forms

template <bool forward>
Values complexTransform(Decomposition& d) {
    const Value x = d.in(0);
    const bool several = d.op().schema()->find("s") >= 0;
    if (several && x.rank() == 0 && !d.has("s") && !d.has("dim")) return unary("aten.clone.default", toComplex(x));
    const auto axes = axesOf(d);
    const auto norm = normOf(d, forward);
    if (!axes || !norm) return decomposeToNothing(d);
    if (isHalf(x.dtype())) return refuse(d, "has no kernel for half floats; convert to float32");
    // One dim of real numbers: the real-to-complex transform, whose conjugate is the inverse.
    if (!isComplex(x.dtype()) && !several) {
        const Value y =
            d.call("aten._fft_r2c.default", {fitted(d, toReal(x), *axes), Argument(axes->dims), *norm, false});
        return forward ? y : unary("aten.conj.default", y);
    }
    return d.call("aten._fft_c2c.default", {fitted(d, toComplex(x), *axes), Argument(axes->dims), *norm, forward});
}
template <bool forward>
Values fromReal(Decomposition& d) {
    const auto axes = axesOf(d);
    const auto norm = normOf(d, forward);
    if (!axes || !norm) return decomposeToNothing(d);
    if (isComplex(d.in(0).dtype())) return refuse(d, "needs real numbers");
    const Value y =
        d.call("aten._fft_r2c.default", {fitted(d, toReal(d.in(0)), *axes), Argument(axes->dims), *norm, true});
    return forward ? y : unary("aten.conj.default", y);
}
template <bool forward>
Values toRealNumbers(Decomposition& d) {
    auto axes = axesOf(d);
    const auto norm = normOf(d, forward);
    if (!axes || !norm) return decomposeToNothing(d);
    const Value x = toComplex(d.in(0));
    const int64_t last = axes->dims.back();
    const SymInt size = axes->sizes.back().value_or((x.size(last) - SymInt(1)) * SymInt(2));
    if (exceeds(1, size)) return refuse(d, "a result of " + size.text() + " elements");
    if (axes->sizes.back()) axes->sizes.back() = floorDiv(size, SymInt(2)) + SymInt(1);
    Value fit = fitted(d, x, *axes);
    if (forward) fit = unary("aten.clone.default", unary("aten.conj.default", fit));
    return d.call("aten._fft_c2r.default", {fit, Argument(axes->dims), *norm, Argument(size)});
}
/// hfft and the like: the input is half of a Hermitian signal, whose spectrum is real. The last dim goes from complex
/// to real numbers, after the others; for the inverse it goes back, before the others.
Values hermitian(Decomposition& d) {
    auto axes = axesOf(d);
    const auto norm = normOf(d, true);
    if (!axes || !norm) return decomposeToNothing(d);
    const Value x = toComplex(d.in(0));
    const int64_t last = axes->dims.back();
    const SymInt size = axes->sizes.back().value_or((x.size(last) - SymInt(1)) * SymInt(2));
    if (exceeds(1, size)) return refuse(d, "a result of " + size.text() + " elements");
    axes->sizes.back() = floorDiv(size, SymInt(2)) + SymInt(1);
    Value y = fitted(d, x, *axes);
    const std::vector<int64_t> others(axes->dims.begin(), axes->dims.end() - 1);
    if (!others.empty()) y = d.call("aten._fft_c2c.default", {y, Argument(others), *norm, true});
    y = unary("aten.clone.default", unary("aten.conj.default", y));
    return d.call("aten._fft_c2r.default", {y, Argument(std::vector<int64_t>{last}), *norm, Argument(size)});
}
Values inverseHermitian(Decomposition& d) {
    const auto axes = axesOf(d);
    const auto norm = normOf(d, false);
    if (!axes || !norm) return decomposeToNothing(d);
    if (isComplex(d.in(0).dtype())) return refuse(d, "needs real numbers");
    const std::vector<int64_t> last(axes->dims.end() - 1, axes->dims.end()),
        others(axes->dims.begin(), axes->dims.end() - 1);
    const Value y = d.call("aten._fft_r2c.default", {fitted(d, toReal(d.in(0)), *axes), Argument(last), *norm, true});
    const Value back = unary("aten.conj_physical.default", y);
    return others.empty() ? back : d.call("aten._fft_c2c.default", {back, Argument(others), *norm, false});
}
/// Rolled by half (rounded down, or up) along dims.
template <bool up>
Values shiftedSpectrum(Decomposition& d) {
    const Value x = d.in(0);
    const auto dims = read(d, d.dims("dim", x.rank(), true));
    if (!dims) return decomposeToNothing(d);
    std::vector<Argument> shifts;
    for (const int64_t dim : *dims) shifts.push_back(Argument(floorDiv(x.size(dim) + SymInt(up ? 1 : 0), SymInt(2))));
    return d.call("aten.roll.default", {x, Argument(shifts), Argument(*dims)});
}

// -- short-time transforms

Value paddedWindow(Decomposition& d, const Value& window, int64_t length, int64_t size) {
    if (length == size) return window;
    const int64_t left = (size - length) / 2;
    return d.call("aten.constant_pad_nd.default", {window, Argument(std::vector<int64_t>{left, size - length - left})});
}
struct Frames {
    int64_t size = 0, hop = 0, windowLength = 0;
};
std::optional<Frames> framesOf(Decomposition& d) {
    Frames f;
    const auto size = read(d, d.integer("n_fft")), hop = read(d, d.integer("hop_length", 0)),
               length = read(d, d.integer("win_length", 0));
    if (!size || !hop || !length) return std::nullopt;
    f = {*size, d.has("hop_length") ? *hop : *size / 4, d.has("win_length") ? *length : *size};
    if (f.size < 1 || f.hop < 1 || f.windowLength < 1 || f.windowLength > f.size) {
        refuse(d, "needs n_fft, hop_length > 0 and 0 < win_length <= n_fft");
        return std::nullopt;
    }
    return f;
}
Values shortTime(Decomposition& d) {
    const auto f = framesOf(d);
    if (!f) return decomposeToNothing(d);
    Value x = d.in(0);
    if (x.rank() != 1 && x.rank() != 2) return refuse(d, "needs a signal or a batch of them, not " + x.type().text());
    if (!isFloating(x.dtype()) && !isComplex(x.dtype())) return refuse(d, "needs a floating-point or complex signal");
    const bool single = x.rank() == 1;
    if (single) x = unsqueeze(x, 0);
    if (exceeds(f->size, x.size(1))) return refuse(d, "n_fft is longer than the signal");
    if (d.has("window") && !(d.in("window").sizes() == SymDims{SymInt(f->windowLength)}))
        return refuse(d, "the window must be a vector of win_length elements");
    const SymInt step = x.type().strides[1], count = floorDiv(x.size(1) - SymInt(f->size), SymInt(f->hop)) + SymInt(1);
    const std::vector<Argument> sizes = {Argument(x.size(0)), Argument(count), Argument(f->size)};
    const std::vector<Argument> strides = {Argument(x.type().strides[0]), Argument(step * SymInt(f->hop)),
                                           Argument(step)};
    Value frames = d.call("aten.as_strided.default", {x, Argument(sizes), Argument(strides)});
    if (d.has("window")) frames = frames * paddedWindow(d, d.in("window"), f->windowLength, f->size);
    else if (f->windowLength < f->size)
        return refuse(d, "win_length without a window has no expansion here; give the window");
    const int64_t norm = d.flag("normalized") ? 1 : 0;
    const Argument dims(std::vector<int64_t>{frames.rank() - 1});
    Value y = isComplex(frames.dtype())
                  ? d.call("aten._fft_c2c.default", {frames, dims, norm, true})
                  : d.call("aten._fft_r2c.default", {frames, dims, norm, d.flag("onesided", !isComplex(x.dtype()))});
    y = d.call("aten.transpose.int", {y, 1, 2});
    if (single) y = d.call("aten.squeeze.dim", {y, 0});
    return d.flag("return_complex", isComplex(x.dtype())) ? y : unary("aten.view_as_real.default", y);
}
Values inverseShortTime(Decomposition& d) {
    const auto f = framesOf(d);
    if (!f) return decomposeToNothing(d);
    Value x = d.in(0);
    const bool single = x.rank() == 2, centered = d.flag("center", true);
    if (!isComplex(x.dtype()) || (x.rank() != 2 && x.rank() != 3))
        return refuse(d, "needs a complex spectrogram or a batch of them, not " + x.type().text());
    if (d.flag("return_complex") || !d.flag("onesided", true))
        return refuse(d, "has an expansion for one-sided spectrograms of real signals only");
    if (!x.size(-1).isInt()) return refuse(d, "the number of frames must be known");
    if (x.size(-1).value() < 1) return refuse(d, "needs at least one frame");
    if (d.has("window") && !(d.in("window").sizes() == SymDims{SymInt(f->windowLength)}))
        return refuse(d, "the window must be a vector of win_length elements");
    if (d.has("window") && d.in("window").dtype() == DType::Bool) return refuse(d, "the window must be of numbers");
    if (f->hop > f->windowLength) return refuse(d, "needs a hop_length of at most win_length");
    const int64_t frames = x.size(-1).value(), whole = checkedAdd(f->size, checkedMul(f->hop, frames - 1));
    if (single) x = unsqueeze(x, 0);
    const Value y =
        d.call("aten._fft_c2r.default", {d.call("aten.transpose.int", {x, 1, 2}), Argument(std::vector<int64_t>{2}),
                                         d.flag("normalized") ? 1 : 2, f->size});
    if (!y) return y;
    Value window = d.has("window")
                       ? d.in("window")
                       : full(d.builder(), {f->windowLength}, Scalar(int64_t{1}), y.dtype(), y.type().device);
    window = paddedWindow(d, window, f->windowLength, f->size);
    const Argument sizes(std::vector<Argument>{Argument(y.size(0)), Argument(whole)});
    const Value weighted = y * view(window, {SymInt(1), SymInt(1), SymInt(f->size)});
    Value signal = d.call("aten.unfold_backward.default", {weighted, sizes, 1, f->size, f->hop});
    const Value squares =
        expand(d.call("aten.pow.Tensor_Scalar", {window, 2}), {SymInt(1), SymInt(frames), SymInt(f->size)});
    Value envelope =
        d.call("aten.unfold_backward.default", {squares, Argument(std::vector<int64_t>{1, whole}), 1, f->size, f->hop});
    const int64_t start = centered ? f->size / 2 : 0;
    const auto length = d.has("length") ? read(d, d.integer("length", 0)) : std::optional<int64_t>(whole - 2 * start);
    if (!length) return decomposeToNothing(d);
    const int64_t end = *length < whole - start ? start + *length : whole;
    signal = d.call("aten.slice.Tensor", {signal, 1, start, end});
    envelope = d.call("aten.slice.Tensor", {envelope, 1, start, end});
    signal = signal / envelope;
    if (end - start < *length)
        signal = d.call("aten.constant_pad_nd.default",
                        {signal, Argument(std::vector<int64_t>{0, *length - (end - start)})});
    return single ? d.call("aten.squeeze.dim", {signal, 0}) : signal;
}

// -- windows and frequencies

Result<ValueType> inferRange(const InferContext& c, std::string_view lengthParam, bool half) {
    CT_TRY(const int64_t length, c.integer(lengthParam));
    const DType dtype = c.dtype("dtype").value_or(DType::F32);
    if (length < (half ? 1 : 0)) return c.fail("a length of " + std::to_string(length));
    if (!isFloating(dtype)) return c.fail("needs a floating-point dtype");
    return ValueType(
        TensorType::contiguous(dtype, {SymInt(half ? length / 2 + 1 : length)}, c.device("device").value_or(Device{})));
}
Result<ValueType> inferWindow(const InferContext& c) { return inferRange(c, "window_length", false); }
double windowParameter(const EvalContext& c, std::string_view name, double fallback) {
    return c.op().schema()->find(name) >= 0 ? c.real(name) : fallback;
}
/// f(position), positions being evenly spaced from 0 to 1. A periodic window is that of one element more, without its
/// last element.
template <class F>
EvalResult window(const EvalContext& c, F f) {
    Tensor out = c.result();
    const bool periodic = c.op().schema()->find("periodic") < 0 || c.flag("periodic", true);
    const int64_t length = out.numel();
    const double last = static_cast<double>(periodic ? length : length - 1);
    std::vector<double> values;
    for (int64_t i = 0; i < length; ++i) values.push_back(length == 1 ? 1 : f(static_cast<double>(i) / last));
    unpackElements(values, out);
    return out;
}
constexpr double kTurn = 2 * std::numbers::pi;
EvalResult evalHann(const EvalContext& c) {
    return window(c, [](double x) { return 0.5 - 0.5 * std::cos(kTurn * x); });
}
EvalResult evalHamming(const EvalContext& c) {
    const double alpha = windowParameter(c, "alpha", 0.54), beta = windowParameter(c, "beta", 0.46);
    return window(c, [=](double x) { return alpha - beta * std::cos(kTurn * x); });
}
EvalResult evalBartlett(const EvalContext& c) {
    return window(c, [](double x) { return 1 - std::fabs(2 * x - 1); });
}
EvalResult evalBlackman(const EvalContext& c) {
    return window(c, [](double x) { return 0.42 - 0.5 * std::cos(kTurn * x) + 0.08 * std::cos(2 * kTurn * x); });
}
double besselI0(double x) {
    double term = 1, total = 1;
    for (int k = 1; k < 500 && term > 1e-17 * total; ++k) total += term *= x * x / (4.0 * k * k);
    return total;
}
EvalResult evalKaiser(const EvalContext& c) {
    const double beta = windowParameter(c, "beta", 12.0);
    return window(c, [=](double x) {
        return besselI0(beta * std::sqrt(std::max(0.0, 1 - (2 * x - 1) * (2 * x - 1)))) / besselI0(beta);
    });
}
EvalResult evalFrequencies(const EvalContext& c) {
    Tensor out = c.result();
    const int64_t n = c.integerOr("n", 1);
    const bool half = c.op().name() == "aten.fft_rfftfreq.default";
    std::vector<double> values;
    for (int64_t i = 0; i < out.numel(); ++i)
        values.push_back(static_cast<double>(half || i < (n + 1) / 2 ? i : i - n) /
                         (static_cast<double>(n) * c.real("d", 1)));
    unpackElements(values, out);
    return out;
}

#define OPTIONS "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
constexpr Tag kFactory = Tag::Factory;
constexpr std::string_view kOne = "f32[2, 6]\nf32[2, 5], 4, 0, 'ortho'\nf32[2, 5], 8, -1, 'forward'\ni64[4]",
                           kComplexOne = "c64[2, 5]\nc64[2, 4], 8, -1, 'forward'\nc64[3, 2], 4, 0, 'ortho'",
                           kMany = "f32[2, 4, 6]\nf32[2, 3, 5], [4, 4], [0, 2], 'ortho'",
                           kComplexMany = "c64[2, 4, 3]\nc64[2, 3, 3], [4, 4], [0, 2], 'ortho'";

constexpr OpDef kSpectralCompositeOps[] = {
    shorthand("aten.fft_fft.default(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
              complexTransform<true>, "f32[2, 6]\nf32[2, 5], 4, 0, 'ortho'\nc64[2, 5], 8, -1, 'forward'\ni64[4]",
              Tag::Heavy),
    shorthand("aten.fft_ifft.default(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
              complexTransform<false>, "f32[2, 6]\nc64[2, 5], 4, 0, 'ortho'\nc64[2, 5]", Tag::Heavy),
    shorthand("aten.fft_rfft.default(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
              fromReal<true>, kOne, Tag::Heavy),
    shorthand("aten.fft_irfft.default(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
              toRealNumbers<false>, kComplexOne, Tag::Heavy),
    shorthand("aten.fft_hfft.default(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
              toRealNumbers<true>, kComplexOne, Tag::Heavy),
    shorthand("aten.fft_ihfft.default(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
              fromReal<false>, kOne, Tag::Heavy),
    shorthand("aten.fft_fft2.default(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
              complexTransform<true>, kMany, Tag::Heavy),
    shorthand("aten.fft_ifft2.default(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
              complexTransform<false>, kComplexMany, Tag::Heavy),
    shorthand("aten.fft_rfft2.default(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
              fromReal<true>, kMany, Tag::Heavy),
    shorthand("aten.fft_irfft2.default(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
              toRealNumbers<false>, kComplexMany, Tag::Heavy),
    shorthand("aten.fft_hfft2.default(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
              hermitian, kComplexMany, Tag::Heavy),
    shorthand("aten.fft_ihfft2.default(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
              inverseHermitian, kMany, Tag::Heavy),
    shorthand("aten.fft_hfftn.default(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
              hermitian, kComplexMany, Tag::Heavy),
    shorthand("aten.fft_ihfftn.default(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
              inverseHermitian, kMany, Tag::Heavy),
    shorthand("aten.fft_fftn.default(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
              complexTransform<true>, kMany, Tag::Heavy),
    shorthand("aten.fft_ifftn.default(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
              complexTransform<false>, kComplexMany, Tag::Heavy),
    shorthand("aten.fft_rfftn.default(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
              fromReal<true>, kMany, Tag::Heavy),
    shorthand("aten.fft_irfftn.default(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
              toRealNumbers<false>, kComplexMany, Tag::Heavy),
    shorthand("aten.fft_fftshift.default(Tensor self, int[1]? dim=None) -> Tensor", shiftedSpectrum<false>,
              "f32[4, 5]\ni64[2, 3], [1]"),
    shorthand("aten.fft_ifftshift.default(Tensor self, int[1]? dim=None) -> Tensor", shiftedSpectrum<true>,
              "f32[4, 5]\ni64[2, 3], [1]"),
    shorthand(
        "aten.stft.default(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, bool? onesided=None, "
        "bool? return_complex=None, bool? align_to_window=None) -> Tensor",
        shortTime, "f32[2, 20], 8, 4, 8, f32[8]>0, False, True, True\nf32[20], 8, 3, 6, f32[6]>0, True, False, False",
        Tag::Heavy),
    shorthand(
        "aten.istft.default(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool normalized=False, "
        "bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
        inverseShortTime, "c64[2, 5, 6], 8, 4, 8, f32[8]>0\nc64[5, 6], 8, 2, 8, f32[8]>0, True, True, True, 9",
        Tag::Heavy),
    {.schema = "aten.fft_fftfreq.default(int n, float d=1.0, *, " OPTIONS,
     .tags = kFactory,
     .infer = [](const InferContext& c) { return inferRange(c, "n", false); },
     .eval = evalFrequencies,
     .samples = "8\n5, 0.25, dtype = torch.float64"},
    {.schema = "aten.fft_rfftfreq.default(int n, float d=1.0, *, " OPTIONS,
     .tags = kFactory,
     .infer = [](const InferContext& c) { return inferRange(c, "n", true); },
     .eval = evalFrequencies,
     .samples = "8\n5, 0.25, dtype = torch.float64"},
    {.schema = "aten.hann_window.default(int window_length, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalHann,
     .samples = "8\n1\n5, dtype = torch.float64"},
    {.schema = "aten.hann_window.periodic(int window_length, bool periodic, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalHann,
     .samples = "8, False\n8, True"},
    {.schema = "aten.hamming_window.default(int window_length, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalHamming,
     .samples = "8"},
    {.schema = "aten.hamming_window.periodic(int window_length, bool periodic, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalHamming,
     .samples = "7, False"},
    {.schema = "aten.hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalHamming,
     .samples = "7, False, 0.5"},
    {.schema =
         "aten.hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalHamming,
     .samples = "7, True, 0.5, 0.25\n7, True, True, 0.25"},
    {.schema = "aten.bartlett_window.default(int window_length, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalBartlett,
     .samples = "8"},
    {.schema = "aten.bartlett_window.periodic(int window_length, bool periodic, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalBartlett,
     .samples = "7, False"},
    {.schema = "aten.blackman_window.default(int window_length, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalBlackman,
     .samples = "8, dtype = torch.float64"},
    {.schema = "aten.blackman_window.periodic(int window_length, bool periodic, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalBlackman,
     .samples = "7, False, dtype = torch.float64"},
    {.schema = "aten.kaiser_window.default(int window_length, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalKaiser,
     .samples = "8, dtype = torch.float64"},
    {.schema = "aten.kaiser_window.periodic(int window_length, bool periodic, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalKaiser,
     .samples = "7, False, dtype = torch.float64"},
    {.schema = "aten.kaiser_window.beta(int window_length, bool periodic, float beta, *, " OPTIONS,
     .tags = kFactory,
     .infer = inferWindow,
     .eval = evalKaiser,
     .samples = "7, False, 8.0, dtype = torch.float64"},
};
#undef OPTIONS

}  // namespace

std::span<const OpDef> spectralCompositeOps() { return kSpectralCompositeOps; }

}  // namespace cutaway
