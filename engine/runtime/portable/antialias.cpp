// Antialiased resampling of planes (support/antialias.h). Each element of the larger sum is a product of weights along
// both dims.
#include "engine/support/antialias.h"

#include <vector>

#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {
namespace {

using namespace antialias;

/// Between a tensor and what it is resampled to, plane by plane. (self, output_size, [input_size,] align_corners,
/// scales_h, scales_w)
struct SmoothResampling {
    std::vector<Span> rows, columns;
    int64_t plane, resampled, width;

    SmoothResampling(const CtCall& call, const Filter& filter, const Strided& from, const Strided& to, int32_t options)
        : plane(from.sizes[2] * from.sizes[3]), resampled(to.sizes[2] * to.sizes[3]), width(from.sizes[3]) {
        const bool aligns = integerOf(call, options) != 0;
        const auto along = [&](int32_t dim) {
            const int32_t scale = options + dim - 1;
            const double given = isGiven(call, scale) ? numberOf<double>(call.args[scale]) : 0;
            return spansAlong(filter, from.sizes[dim], to.sizes[dim], given, aligns);
        };
        rows = along(2);
        columns = along(3);
    }
    /// body(element of the resampled plane, element of the other, weight) for all that belong together.
    template <class Body>
    void forEach(Body&& body) const {
        int64_t at = 0;
        for (const Span& row : rows)
            for (const Span& column : columns) {
                for (size_t i = 0; i < row.weights.size(); ++i)
                    for (size_t k = 0; k < column.weights.size(); ++k)
                        body(at, (row.first + static_cast<int64_t>(i)) * width + column.first + static_cast<int64_t>(k),
                             row.weights[i] * column.weights[k]);
                ++at;
            }
    }
};
/// A plane row by row; the tensor has four dims.
void loadPlane(const Strided& tensor, int64_t number, std::vector<double>& to) {
    Strided plane = tensor;
    plane.rank = 2;
    std::copy_n(tensor.sizes + 2, 2, plane.sizes);
    std::copy_n(tensor.strides + 2, 2, plane.strides);
    plane.data = tensor.at(number / tensor.sizes[1] * tensor.strides[0] + number % tensor.sizes[1] * tensor.strides[1]);
    loadAll(plane, to.data());
}
/// sums[target(pair)] += elements[source(pair)] * weight, for each plane.
template <class Add>
void forPlanes(const Run& run, int64_t read, int64_t written, Add add) {
    const Strided in = run.in(0), out = run.out();
    run.share(out.sizes[0] * out.sizes[1], [&](int64_t, int64_t begin, int64_t end) {
        std::vector<double> elements(static_cast<size_t>(read)), sums(static_cast<size_t>(written));
        for (int64_t p = begin; p < end; ++p) {
            loadPlane(in, p, elements);
            std::fill(sums.begin(), sums.end(), 0.0);
            add(elements.data(), sums.data());
            storeRange(out, p * written, (p + 1) * written, sums.data());
        }
    });
}
template <const Filter& filter>
void resampleSmoothly(const Run& run) {
    const SmoothResampling r(*run.call, filter, run.in(0), run.out(), 2);
    if (run.in(0).dtype == CT_U8) {
        const ByteResampling bytes(r.rows, r.columns, run.in(0).sizes[2], run.in(0).sizes[3]);
        return forPlanes(run, r.plane, r.resampled,
                         [&](const double* elements, double* out) { bytes.resample(elements, out); });
    }
    forPlanes(run, r.plane, r.resampled, [&](const double* elements, double* sums) {
        r.forEach([&](int64_t to, int64_t from, double weight) { sums[to] += elements[from] * weight; });
    });
}
template <const Filter& filter>
void resampleSmoothlyBackward(const Run& run) {
    const SmoothResampling r(*run.call, filter, run.out(), run.in(0), 3);
    forPlanes(run, r.resampled, r.plane, [&](const double* gradient, double* sums) {
        r.forEach([&](int64_t to, int64_t from, double weight) { sums[from] += gradient[to] * weight; });
    });
}

constexpr Function kAntialiasFunctions[] = {
    {"aten._upsample_bilinear2d_aa.default", resampleSmoothly<kTriangle>},
    {"aten._upsample_bicubic2d_aa.default", resampleSmoothly<kCubic>},
    {"aten._upsample_lanczos2d_aa.default", resampleSmoothly<kLanczos>},
    {"aten._upsample_bilinear2d_aa_backward.default", resampleSmoothlyBackward<kTriangle>},
    {"aten._upsample_bicubic2d_aa_backward.default", resampleSmoothlyBackward<kCubic>},
    {"aten._upsample_lanczos2d_aa_backward.default", resampleSmoothlyBackward<kLanczos>},
};

}  // namespace

std::span<const Function> antialiasFunctions() { return kAntialiasFunctions; }

}  // namespace cutaway::portable
