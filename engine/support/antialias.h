#pragma once
// The filters of antialiased resampling: where a plane shrinks they widen with the step, so that every element of the
// operand counts.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
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
/// A sinc under the middle lobe of one three times as wide.
inline double lanczos(double x) {
    const auto sinc = [](double v) { return v == 0 ? 1 : std::sin(M_PI * v) / (M_PI * v); };
    return std::fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
}
inline constexpr Filter kTriangle = {1, triangle}, kCubic = {2, cubic}, kLanczos = {3, lanczos};

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

/// Makes the weights along a dim whole numbers of 2^-precision, the finest for which all fit into 16 bits, as PyTorch
/// has them for bytes. Returns the precision.
inline int makeWhole(std::vector<Span>& spans) {
    double largest = 0;
    for (const Span& span : spans)
        for (const double weight : span.weights) largest = std::max(largest, weight);
    int precision = 0;
    while (precision < 22 && std::ldexp(largest, precision + 1) + 0.5 < 32768) ++precision;
    for (Span& span : spans)
        for (double& weight : span.weights) weight = std::round(std::ldexp(weight, precision));
    return precision;
}

/// Planes of bytes: along the columns first, then along the rows, and rounded to bytes after each.
class ByteResampling {
  public:
    /// `height`, `width`: of the planes read; `rows` and `columns` say how they are resampled.
    ByteResampling(std::vector<Span> rows, std::vector<Span> columns, int64_t height, int64_t width)
        : m_rows(std::move(rows)),
          m_columns(std::move(columns)),
          m_height(height),
          m_width(width),
          m_rowPrecision(makeWhole(m_rows)),
          m_columnPrecision(makeWhole(m_columns)) {}
    /// From `plane` to `out`, row by row; the numbers are bytes.
    void resample(const double* plane, double* out) const {
        const auto newWidth = static_cast<int64_t>(m_columns.size());
        std::vector<double> narrowed(static_cast<size_t>(m_height * newWidth));
        along(m_columns, m_columnPrecision, plane, narrowed.data(), m_height, m_width, 1);
        along(m_rows, m_rowPrecision, narrowed.data(), out, 1, m_height, newWidth);
    }

  private:
    /// [outer, size, inner] to [outer, spans, inner].
    static void along(const std::vector<Span>& spans, int precision, const double* in, double* out, int64_t outer,
                      int64_t size, int64_t inner) {
        for (int64_t o = 0; o < outer; ++o, in += size * inner)
            for (const Span& span : spans)
                for (int64_t i = 0; i < inner; ++i) {
                    double sum = std::ldexp(0.5, precision);
                    for (size_t k = 0; k < span.weights.size(); ++k)
                        sum += span.weights[k] * in[(span.first + static_cast<int64_t>(k)) * inner + i];
                    *out++ = std::clamp(std::floor(std::ldexp(sum, -precision)), 0.0, 255.0);
                }
    }

    std::vector<Span> m_rows, m_columns;
    int64_t m_height, m_width;
    int m_rowPrecision, m_columnPrecision;
};

}  // namespace cutaway::antialias
