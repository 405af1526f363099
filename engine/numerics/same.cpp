#include "engine/numerics/same.h"

#include <algorithm>
#include <cmath>

#include "engine/numerics/element_reader.h"
#include "engine/support/number_text.h"

namespace cutaway {
namespace {

constexpr double kTolerance = 1e-4, kLoose = 4e-2, kLeastCosine = 0.99, kCosineEpsilon = 1e-6;

double rounded(DType dtype, double value) {
    std::byte bits[16];
    storeElements(dtype, bits, 1, 1, &value);
    double back = 0;
    loadElements(dtype, bits, 1, 1, &back);
    return back;
}

/// One element of at::isclose. `compute`: what it rounds to after each operation.
struct Closeness {
    DType compute;
    double absolute, relative;
    bool equalNan;

    double round(double value) const { return compute == DType::F64 ? value : rounded(compute, value); }
    bool operator()(double a, double b) const {
        if (a == b || (equalNan && std::isnan(a) && std::isnan(b))) return true;
        if (absolute == 0 && relative == 0) return false;
        // PyTorch multiplies halves as floats and rounds each result.
        const double share = compute == DType::F64 ? relative * b : round(static_cast<float>(relative) * b);
        const double limit = round((compute == DType::F64 ? absolute : static_cast<float>(absolute)) + std::abs(share));
        const double error = std::abs(round(a - b));
        return std::isfinite(error) && error <= limit;
    }
};

double rootMeanSquare(const Tensor& a, const Tensor& b) {
    double sum = 0;
    int64_t all = 0;
    forEachPiece(
        [&](int64_t, int64_t count, const double* x, const double* y) {
            for (int64_t i = 0; i < count; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
            all += count;
        },
        a, b);
    return std::sqrt(sum / static_cast<double>(all));
}

bool hasNan(const Tensor& tensor) {
    bool any = false;
    forEachPiece(
        [&](int64_t, int64_t count, const double* x) {
            any |= std::any_of(x, x + count, [](double value) { return std::isnan(value); });
        },
        tensor);
    return any;
}

/// Two bool masks, by intersection over union.
SameAnswer sameMasks(const Tensor& reference, const Tensor& result, const JudgeOptions& options) {
    int64_t both = 0, either = 0;
    forEachPiece(
        [&](int64_t, int64_t count, const double* x, const double* y) {
            for (int64_t i = 0; i < count; ++i) {
                both += x[i] != 0 && y[i] != 0;
                either += x[i] != 0 || y[i] != 0;
            }
        },
        reference, result);
    if (either == 0) return {};
    const auto share = static_cast<double>(static_cast<float>(both) / static_cast<float>(either));
    if (share >= options.iouThreshold) return {};
    return {false, "the two masks have " + shortNumber(share) + " in common, of at least " +
                       shortNumber(options.iouThreshold)};
}

SameAnswer sameDirection(const Tensor& reference, const Tensor& result, double tolerance) {
    const Tensor a = reference.to(DType::F32), b = result.to(DType::F32);
    if (allClose(a, b, tolerance, tolerance, true)) return {};
    double product = 0, left = 0, right = 0;
    forEachPiece(
        [&](int64_t, int64_t count, const double* x, const double* y) {
            for (int64_t i = 0; i < count; ++i) {
                product += x[i] * y[i];
                left += x[i] * x[i];
                right += y[i] * y[i];
            }
        },
        a, b);
    const double score =
        product / (std::max(std::sqrt(left), kCosineEpsilon) * std::max(std::sqrt(right), kCosineEpsilon));
    if (score >= kLeastCosine) return {};
    return {false, "the cosine of the two is " + shortNumber(score) + ", at least 0.99 is wanted"};
}

double multiplierFor(const Tensor& reference, const Tensor& result, const Tensor& wide, const JudgeOptions& options,
                     double tolerance) {
    if (options.maxMultiplier) return 10;
    const int64_t elements = wide.numel();
    if (options.largerMultiplierForSmallTensors && elements <= 10) return 10;
    if (options.largerMultiplierForSmallTensors && elements <= 500) return 8;
    const bool pixels = reference.rank() == 4 && reference.size(-1) == 1 && reference.size(-2) == 1;
    if (elements < 1000 || pixels || tolerance >= 2e-2) return 3;
    return isHalf(result.dtype()) ? 3 : 2;
}

/// By the root mean square errors to the f64 values: the result's may be a multiple of the reference's.
SameAnswer asNear(const Tensor& reference, const Tensor& result, const Tensor& wide, const JudgeOptions& options,
                  double tolerance) {
    if (hasNan(reference) && !hasNan(wide) && !hasNan(result) &&
        allClose(wide.to(result.dtype()), result, kLoose, kLoose, options.equalNan))
        return {};
    const double referenceError = rootMeanSquare(wide, reference), error = rootMeanSquare(wide, result);
    const double multiplier = multiplierFor(reference, result, wide, options, tolerance);
    if (error <= multiplier * referenceError + tolerance / 10) return {};
    if (options.equalNan && std::isnan(referenceError) && std::isnan(error)) return {};
    return {false, "its distance to the f64 run is " + shortNumber(error) + ", the reference's " +
                       shortNumber(referenceError) + "; " + shortNumber(multiplier) + " times that is allowed"};
}

}  // namespace

bool allClose(const Tensor& a, const Tensor& b, double absolute, double relative, bool equalNan) {
    const bool wide = a.dtype() == DType::F64 || a.dtype() == DType::C128;
    const Closeness close{isFloating(a.dtype()) && !wide ? a.dtype()
                          : wide                         ? DType::F64
                                                         : DType::F32,
                          absolute, relative, equalNan};
    bool all = true;
    forEachPiece(
        [&](int64_t, int64_t count, const double* x, const double* y) {
            for (int64_t i = 0; all && i < count; ++i) all = x[i] == y[i] || close(x[i], y[i]);
        },
        a, b);
    return all;
}

SameAnswer same(const Tensor& reference, const Tensor& result, const Tensor& wide, const JudgeOptions& options) {
    const double tolerance = options.tolerance.value_or(kTolerance);
    if (!reference.defined() || !result.defined()) {
        if (options.ignoreNonFloat || reference.defined() == result.defined()) return {};
        return {false, "one of the two is None"};
    }
    if (options.exactDtype && reference.dtype() != result.dtype())
        return {false, "it is " + std::string(info(result.dtype()).abbreviation) + ", the reference is " +
                           std::string(info(reference.dtype()).abbreviation)};
    if (reference.sizes() != result.sizes()) return {false, "it has another shape than the reference"};
    if (options.exactDtype && reference.dtype() == DType::Bool) {
        if (options.ignoreNonFloat) return {};
        if (options.iouForBool) return sameMasks(reference, result, options);
        if (allClose(reference.to(DType::U8), result.to(DType::U8), tolerance, tolerance, options.equalNan)) return {};
        return {false, "the two differ"};
    }
    if (options.cosineSimilarity) return sameDirection(reference, result, tolerance);
    const Tensor expected = options.exactDtype ? reference : reference.to(result.dtype());
    if (allClose(expected, result, tolerance, tolerance, options.equalNan)) return {};
    const Tensor& precise = wide.defined() ? wide : reference;
    if (precise.dtype() == DType::F64) return asNear(expected, result, precise, options, tolerance);
    if (options.ignoreNonFloat) return {};
    return {false, "it is not within " + shortNumber(tolerance) + " of the reference"};
}

SameAnswer same(const std::vector<Tensor>& reference, const std::vector<Tensor>& result,
                const std::vector<Tensor>& wide, const JudgeOptions& options) {
    if (reference.size() != result.size())
        return {false, std::to_string(result.size()) + " values instead of " + std::to_string(reference.size())};
    for (size_t i = 0; i < reference.size(); ++i) {
        SameAnswer one = same(reference[i], result[i], i < wide.size() ? wide[i] : Tensor(), options);
        if (!one.same) return {false, "value " + std::to_string(i + 1) + ": " + one.why};
    }
    return {};
}

}  // namespace cutaway
