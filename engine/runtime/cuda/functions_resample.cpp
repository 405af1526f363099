// Gradients of resampling and of padding by the border: each element of the input looks at the resampled ones that were
// made from it, in their order, so that the sums have the same bits every time and nothing is sorted.
#include <algorithm>

#include "engine/runtime/cuda/functions.h"

namespace cutaway::cuda {
namespace {

constexpr const char* kResampleText = R"(
/// The last three dims are resampled; those that a call lacks have one element. `kind`: as the rows name it.
struct Resample {
    Strided to, grad;
    int leading, kind, align;
    long in[3], out[3], toStrides[3], gradStrides[3], before[3];
    double scale[3];
};
enum { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, EDGE };
/// Along a dim: the elements that output element o was made from, with their weights.
struct Taps { long at[4]; double weight[4]; int count; };
FN void addTap(Taps& taps, long at, double weight) { taps.at[taps.count] = at; taps.weight[taps.count++] = weight; }
/// A position as an index, also where a scale near 0 sends it beyond all numbers of 64 bits; NaN is 0.
FN long indexOf(double position, long most) {
    if (!(position > 0)) return 0;
    return position < (double)most ? (long)position : most;
}
FN Taps tapsAt(const Resample& job, int d, long o) {
    const long in = job.in[d], out = job.out[d];
    Taps taps;
    taps.count = 0;
    if (job.kind == EDGE) {
        addTap(taps, min(max(o - job.before[d], 0L), in - 1), 1);
        return taps;
    }
    double step = job.scale[d] > 0 ? 1.0 / job.scale[d] : (double)in / (double)out;
    if (job.align) step = out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
    // Here PyTorch takes no scale where a size stays or doubles, also of lines and volumes (2.15).
    if (job.kind == NEAREST && (out == in || out == 2 * in)) {
        addTap(taps, o / (out / in), 1);
        return taps;
    }
    if (job.kind == NEAREST || job.kind == NEAREST_EXACT) {
        const float half = job.kind == NEAREST_EXACT ? 0.5f : 0.0f;
        addTap(taps, indexOf(floorf(__fmul_rn(__fadd_rn((float)o, half), (float)step)), in - 1), 1);
        return taps;
    }
    const double place = job.align ? step * (double)o : __dsub_rn(__dmul_rn(step, (double)o + 0.5), 0.5);
    if (job.kind == LINEAR) {
        const double at = fmax(place, 0.0);
        const long low = indexOf(at, in - 1);
        const double part = fmin(at - (double)low, 1.0);
        addTap(taps, low, 1 - part);
        addTap(taps, min(low + 1, in - 1), part);
        return taps;
    }
    const double a = -0.75, base = floor(place), t = place - base;
    for (int k = 0; k < 4; ++k) {
        const double x = fabs(t + 1 - k);
        const double weight = k == 1 || k == 2 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
        addTap(taps, indexOf(base + k - 1, in - 1), weight);
    }
    return taps;
}
/// Of each dim's elements, one dim after the other: the first output element that was made from it, and the last.
/// Positions grow with the output, so all in between were made from it or its neighbours.
extern "C" __global__ void resampleRanges(Resample job, int2* ranges) {
    for (long i = firstThread(); i < job.in[0] + job.in[1] + job.in[2]; i += allThreads()) {
        long at = i;
        int d = 0;
        while (at >= job.in[d]) at -= job.in[d++];
        int first = -1, last = -2;
        for (long o = 0; o < job.out[d]; ++o) {
            const Taps taps = tapsAt(job, d, o);
            bool made = false;
            for (int k = 0; k < taps.count; ++k) made = made || taps.at[k] == at;
            if (!made) continue;
            if (first < 0) first = (int)o;
            last = (int)o;
        }
        ranges[i] = make_int2(first < 0 ? 0 : first, last);
    }
}
FN double weightOf(const Resample& job, int d, long o, long at) {
    const Taps taps = tapsAt(job, d, o);
    double weight = 0;
    for (int k = 0; k < taps.count; ++k) if (taps.at[k] == at) weight += taps.weight[k];
    return weight;
}
FN bool isMadeFrom(const Resample& job, int d, long o, long at) {
    const Taps taps = tapsAt(job, d, o);
    for (int k = 0; k < taps.count; ++k) if (taps.at[k] == at) return true;
    return false;
}
extern "C" __global__ void resampleBack(Resample job, const int2* ranges, long all) {
    for (long i = firstThread(); i < all; i += allThreads()) {
        long at[3], rest = i;
        for (int d = 3; d-- > 0;) {
            at[d] = rest % job.in[d];
            rest /= job.in[d];
        }
        long to = 0, grad = 0;
        for (int d = job.leading; d-- > 0;) {
            const long a = rest % job.to.sizes[d];
            rest /= job.to.sizes[d];
            to += a * job.to.strides[d];
            grad += a * job.grad.strides[d];
        }
        int2 range[3];
        for (int d = 0, from = 0; d < 3; from += (int)job.in[d++]) {
            to += at[d] * job.toStrides[d];
            range[d] = ranges[from + at[d]];
        }
        // What was not made from this element adds nothing, also where the gradient is infinite.
        double sum = 0;
        for (long a = range[0].x; a <= range[0].y; ++a) {
            if (!isMadeFrom(job, 0, a, at[0])) continue;
            const double wa = weightOf(job, 0, a, at[0]);
            for (long b = range[1].x; b <= range[1].y; ++b) {
                if (!isMadeFrom(job, 1, b, at[1])) continue;
                const double wb = wa * weightOf(job, 1, b, at[1]);
                for (long c = range[2].x; c <= range[2].y; ++c) {
                    if (!isMadeFrom(job, 2, c, at[2])) continue;
                    sum += wb * weightOf(job, 2, c, at[2]) *
                           loadReal(job.grad, grad + a * job.gradStrides[0] + b * job.gradStrides[1] + c * job.gradStrides[2]);
                }
            }
        }
        store(job.to, to, sum);
    }
}
)";
constexpr Family kResample{kResampleText};

enum class Kind : int32_t { Nearest, NearestExact, Linear, Cubic, Edge };  // numbered as in the text

/// As the kernels have it.
struct ResampleJob {
    DeviceTensor to, grad;
    int32_t leading = 0;
    Kind kind = Kind::Nearest;
    int32_t align = 0;
    Three in{}, out{}, toStrides{}, gradStrides{}, before{};
    std::array<double, kSpatial> scale{};
};

struct ResampleRow {
    std::string_view op;
    int spatial;
    Kind kind;
};
constexpr ResampleRow kResampleRows[] = {
    {"aten.upsample_nearest1d_backward.default", 1, Kind::Nearest},
    {"aten.upsample_nearest2d_backward.default", 2, Kind::Nearest},
    {"aten.upsample_nearest3d_backward.default", 3, Kind::Nearest},
    {"aten._upsample_nearest_exact1d_backward.default", 1, Kind::NearestExact},
    {"aten._upsample_nearest_exact2d_backward.default", 2, Kind::NearestExact},
    {"aten._upsample_nearest_exact3d_backward.default", 3, Kind::NearestExact},
    {"aten.upsample_linear1d_backward.default", 1, Kind::Linear},
    {"aten.upsample_bilinear2d_backward.default", 2, Kind::Linear},
    {"aten.upsample_trilinear3d_backward.default", 3, Kind::Linear},
    {"aten.upsample_bicubic2d_backward.default", 2, Kind::Cubic},
    {"aten.replication_pad1d_backward.default", 1, Kind::Edge},
    {"aten.replication_pad2d_backward.default", 2, Kind::Edge},
    {"aten.replication_pad3d_backward.default", 3, Kind::Edge},
};

class ResamplePlan final : public LibraryPlan {
  public:
    ResamplePlan(const CtCall& call, const ResampleRow& row, CtNeeds& needs) {
        static constexpr const char* kScales[] = {"scales_d", "scales_h", "scales_w"};
        const CallReader reader(call);
        m_grad = reader.operand("grad_output").value();
        m_job.to = described(call.results[0]);
        m_job.grad = described(call.operands[m_grad]);
        m_job.kind = row.kind;
        m_job.align = reader.find("align_corners") != nullptr && reader.flag("align_corners");
        m_job.leading = call.results[0].rank - row.spatial;
        const auto behind = [&](const int64_t* of, int64_t missing) {
            return spatialOf(of, m_job.leading, row.spatial, missing);
        };
        m_job.in = behind(m_job.to.sizes, 1);
        m_job.out = behind(m_job.grad.sizes, 1);
        m_job.toStrides = behind(m_job.to.strides, 0);
        m_job.gradStrides = behind(m_job.grad.strides, 0);
        const size_t first = kSpatial - static_cast<size_t>(row.spatial);
        if (row.kind == Kind::Edge) {
            const Dims padding =
                reader.integers("padding", 2 * static_cast<size_t>(row.spatial));  // the last dim first
            for (size_t d = first; d < kSpatial; ++d) m_job.before[d] = padding[2 * (kSpatial - 1 - d)];
        } else {
            for (size_t d = first; d < kSpatial; ++d)
                m_job.scale[d] = reader.real(row.spatial == 1 ? "scales" : kScales[d]).value_or(0);
        }
        for (const int64_t size : m_job.out)
            if (size > INT32_MAX) throw LibraryRefusal("it takes up to 2^31 - 1 elements along a dim");
        Room room(nullptr);
        room.take<std::array<int32_t, 2>>(elementsAlong());
        needs.scratch = room.bytes();
    }

    void run(const LibraryRun& given) const override {
        ResampleJob job = m_job;
        job.to.data = given.results[0].data;
        job.grad.data = given.operands[m_grad].data;
        if (job.to.elements() == 0) return;
        auto* const ranges = Room(given.scratch).take<std::array<int32_t, 2>>(elementsAlong());
        const Launcher launch(kResample, given);
        launch.threads("resampleRanges", elementsAlong(), job, ranges);
        launch.threads("resampleBack", job.to.elements(), job, ranges, job.to.elements());
    }

  private:
    int64_t elementsAlong() const { return m_job.in[0] + m_job.in[1] + m_job.in[2]; }

    ResampleJob m_job;
    int m_grad = -1;
};

}  // namespace

const Family* resampleFamily() { return &kResample; }

std::unique_ptr<LibraryPlan> planResample(const CtCall& call, CtNeeds& needs) {
    const auto row = std::find_if(std::begin(kResampleRows), std::end(kResampleRows),
                                  [&](const ResampleRow& one) { return one.op == call.op; });
    if (row == std::end(kResampleRows)) return nullptr;
    return std::make_unique<ResamplePlan>(call, *row, needs);
}

}  // namespace cutaway::cuda
