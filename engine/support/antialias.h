#pragma once
// The filters of antialiased resampling: where a plane shrinks they widen with the step, so that every element of the
// operand counts.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace cutaway::antialias {

/// A filter: how far it reaches, in elements of the denser side, and its weight at a distance.
struct Filter {
    double reach;
    double (*weight)(double distance);
};
inline double triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }
/// Cubic convolution with A = -0.5; the form without antialiasing has A = -0.75.
inline double cubic(double x) {
    constexpr double kA = -0.5;
    x = std::fabs(x);
    if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
    return x < 2 ? ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA : 0;
}
inline constexpr Filter kTriangle = {1, triangle}, kCubic = {2, cubic};

/// The elements that one output element is made of: from `first`, with these weights.
struct Span {
    int64_t first = 0;
    std::vector<double> weights;
};
/// `scale`: 0 if it is not given.
inline std::vector<Span> spansAlong(const Filter& filter, int64_t in, int64_t out, double scale, bool alignCorners) {
    double step = scale > 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out);
    if (alignCorners) step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    const double wide = std::max(step, 1.0), reach = filter.reach * wide;
    std::vector<Span> spans(static_cast<size_t>(out));
    for (int64_t o = 0; o < out; ++o) {
        Span& span = spans[static_cast<size_t>(o)];
        const double centre = step * (static_cast<double>(o) + 0.5);
        span.first = std::max<int64_t>(static_cast<int64_t>(centre - reach + 0.5), 0);
        const int64_t end = std::min(static_cast<int64_t>(centre + reach + 0.5), in);
        double total = 0;
        for (int64_t i = span.first; i < end; ++i) {
            span.weights.push_back(filter.weight((static_cast<double>(i) - centre + 0.5) / wide));
            total += span.weights.back();
        }
        if (total != 0)
            for (double& weight : span.weights) weight /= total;
    }
    return spans;
}

}  // namespace cutaway::antialias
