// Adaptive pooling, and the gradients of max pooling and of adaptive pooling: each element of the input looks at the
// windows that hold it, in their order, so that the sums have the same bits every time and nothing is sorted.
#include <algorithm>

#include "engine/runtime/cuda/functions.h"

namespace cutaway::cuda {
namespace {

constexpr const char* kPoolText = R"(
/// The last three dims slide; those that a call lacks have one element. Without indices windows are averaged.
struct Pool {
    Strided to, grad, index;
    int leading, adaptive, indexed;
    long in[3], out[3], toStrides[3], gradStrides[3], indexStrides[3], kernel[3], stride[3], padding[3], dilation[3];
};
FN long windowBegin(const Pool& job, int d, long o) { return o * job.in[d] / job.out[d]; }
FN long windowSize(const Pool& job, int d, long o) {
    return ((o + 1) * job.in[d] + job.out[d] - 1) / job.out[d] - windowBegin(job, d, o);
}
FN bool holds(const Pool& job, int d, long o, long at) {
    if (job.adaptive) return true;  // of those within the range
    return (at + job.padding[d] - o * job.stride[d]) % job.dilation[d] == 0;
}
template <class S> FN void poolBack(const Pool& job, long all, int* fault) {
    const long plane = job.in[0] * job.in[1] * job.in[2];
    for (long i = firstThread(); i < all; i += allThreads()) {
        long at[3], first[3], last[3], rest = i;
        for (int d = 3; d-- > 0;) {
            at[d] = rest % job.in[d];
            rest /= job.in[d];
            if (job.adaptive) {
                first[d] = at[d] * job.out[d] / job.in[d];
                last[d] = ((at[d] + 1) * job.out[d] - 1) / job.in[d];
            } else {
                const long place = at[d] + job.padding[d], reach = job.dilation[d] * (job.kernel[d] - 1);
                first[d] = place <= reach ? 0 : (place - reach + job.stride[d] - 1) / job.stride[d];
                last[d] = min(place / job.stride[d], job.out[d] - 1);
            }
        }
        long to = 0, grad = 0, index = 0;
        for (int d = job.leading; d-- > 0;) {
            const long a = rest % job.to.sizes[d];
            rest /= job.to.sizes[d];
            to += a * job.to.strides[d];
            grad += a * job.grad.strides[d];
            index += a * job.index.strides[d];
        }
        for (int d = 0; d < 3; ++d) to += at[d] * job.toStrides[d];
        const long own = (at[0] * job.in[1] + at[1]) * job.in[2] + at[2];
        S sum = 0;
        for (long a = first[0]; a <= last[0]; ++a) {
            if (!holds(job, 0, a, at[0])) continue;
            for (long b = first[1]; b <= last[1]; ++b) {
                if (!holds(job, 1, b, at[1])) continue;
                for (long c = first[2]; c <= last[2]; ++c) {
                    if (!holds(job, 2, c, at[2])) continue;
                    if (job.indexed) {
                        const long found = loadWhole(job.index, index + a * job.indexStrides[0] +
                                                                    b * job.indexStrides[1] + c * job.indexStrides[2]);
                        if ((found < 0 || found >= plane) && fault) *fault = 1;
                        if (found != own) continue;
                    }
                    S given;
                    load(job.grad, grad + a * job.gradStrides[0] + b * job.gradStrides[1] + c * job.gradStrides[2], given);
                    if (!job.indexed)
                        given /= (S)(windowSize(job, 0, a) * windowSize(job, 1, b) * windowSize(job, 2, c));
                    sum += given;
                }
            }
        }
        store(job.to, to, sum);
    }
}
FN bool isNan(double x) { return x != x; }
FN bool isNan(long) { return false; }
/// `to`, `index`: what each window has largest, the first of them, and where, or without indices its mean; `grad` is
/// what they slide over.
template <class S> FN void adaptive(Pool job, long all) {
    for (long i = firstThread(); i < all; i += allThreads()) {
        long at[3], rest = i;
        for (int d = 3; d-- > 0;) {
            at[d] = rest % job.out[d];
            rest /= job.out[d];
        }
        long to = 0, from = 0, index = 0;
        for (int d = job.leading; d-- > 0;) {
            const long a = rest % job.to.sizes[d];
            rest /= job.to.sizes[d];
            to += a * job.to.strides[d];
            from += a * job.grad.strides[d];
            index += a * job.index.strides[d];
        }
        for (int d = 0; d < 3; ++d) {
            to += at[d] * job.toStrides[d];
            index += at[d] * job.indexStrides[d];
        }
        const long a0 = windowBegin(job, 0, at[0]), b0 = windowBegin(job, 1, at[1]), c0 = windowBegin(job, 2, at[2]);
        const long a1 = a0 + windowSize(job, 0, at[0]), b1 = b0 + windowSize(job, 1, at[1]),
                   c1 = c0 + windowSize(job, 2, at[2]);
        if (!job.indexed) {
            double sum = 0;
            for (long a = a0; a < a1; ++a)
                for (long b = b0; b < b1; ++b)
                    for (long c = c0; c < c1; ++c)
                        sum += loadReal(job.grad, from + a * job.gradStrides[0] + b * job.gradStrides[1] +
                                                      c * job.gradStrides[2]);
            store(job.to, to, sum / (double)((a1 - a0) * (b1 - b0) * (c1 - c0)));
            continue;
        }
        S best;
        load(job.grad, from + a0 * job.gradStrides[0] + b0 * job.gradStrides[1] + c0 * job.gradStrides[2], best);
        long place = (a0 * job.in[1] + b0) * job.in[2] + c0;
        for (long a = a0; a < a1; ++a)
            for (long b = b0; b < b1; ++b)
                for (long c = c0; c < c1; ++c) {
                    S given;
                    load(job.grad, from + a * job.gradStrides[0] + b * job.gradStrides[1] + c * job.gradStrides[2], given);
                    if (given > best || isNan(given)) {
                        best = given;
                        place = (a * job.in[1] + b) * job.in[2] + c;
                    }
                }
        store(job.to, to, best);
        if (job.index.data) store(job.index, index, place);
    }
}
extern "C" __global__ void adaptiveReal(Pool job, long all) { adaptive<double>(job, all); }
extern "C" __global__ void adaptiveWhole(Pool job, long all) { adaptive<long>(job, all); }
extern "C" __global__ void poolBackReal(Pool job, long all, int* fault) { poolBack<double>(job, all, fault); }
extern "C" __global__ void poolBackWhole(Pool job, long all, int* fault) { poolBack<long>(job, all, fault); }
)";
constexpr Family kPool{kPoolText};

/// As the kernels have it.
struct PoolJob {
    DeviceTensor to, grad, index;
    int32_t leading = 0, adaptive = 0, indexed = 0;
    Three in, out, toStrides, gradStrides, indexStrides, kernel, stride, padding, dilation;
};

struct PoolRow {
    std::string_view op;
    int spatial;
    bool adaptive, indexed;
    bool forward = false;
};
constexpr PoolRow kPoolRows[] = {
    {"aten.max_pool2d_with_indices_backward.default", 2, false, true},
    {"aten.max_pool3d_with_indices_backward.default", 3, false, true},
    {"aten.adaptive_max_pool2d_backward.default", 2, true, true},
    {"aten.adaptive_max_pool3d_backward.default", 3, true, true},
    {"aten.adaptive_max_pool2d.default", 2, true, true, true},
    {"aten.adaptive_max_pool3d.default", 3, true, true, true},
    {"aten._adaptive_avg_pool2d.default", 2, true, false, true},
    {"aten._adaptive_avg_pool3d.default", 3, true, false, true},
    {"aten._adaptive_avg_pool2d_backward.default", 2, true, false},
    {"aten._adaptive_avg_pool3d_backward.default", 3, true, false},
};

class PoolPlan final : public LibraryPlan {
  public:
    PoolPlan(const CtCall& call, const PoolRow& row) : m_reader(call), m_row(row) {
        m_job.to = described(call.results[0]);
        m_grad = m_reader.operand(row.forward ? "self" : "grad_output").value();
        m_job.grad = described(call.operands[m_grad]);
        m_job.adaptive = row.adaptive;
        m_job.indexed = row.indexed;
        if (row.forward && row.indexed && call.results[1].rank >= 0) m_job.index = described(call.results[1]);
        if (row.indexed && !row.forward) {
            m_index = m_reader.operand("indices").value();
            m_job.index = described(call.operands[m_index]);
        }
        m_real = isFloatingType(m_job.to.dtype);
        if (!m_real && !row.indexed) throw LibraryRefusal("it averages floating-point numbers");
        m_job.leading = call.results[0].rank - row.spatial;
        const auto behind = [&](const int64_t* of, int64_t missing) {
            return spatialOf(of, m_job.leading, row.spatial, missing);
        };
        m_job.in = behind(row.forward ? m_job.grad.sizes : m_job.to.sizes, 1);
        m_job.out = behind(row.forward ? m_job.to.sizes : m_job.grad.sizes, 1);
        m_job.toStrides = behind(m_job.to.strides, 0);
        m_job.gradStrides = behind(m_job.grad.strides, 0);
        m_job.indexStrides = behind(m_job.index.strides, 0);
        m_job.kernel = windows("kernel_size", 1);
        m_job.stride = windows("stride", 1, "kernel_size");
        m_job.padding = windows("padding", 0);
        m_job.dilation = windows("dilation", 1);
    }

    void run(const LibraryRun& given) const override {
        PoolJob job = m_job;
        job.to.data = given.results[0].data;
        job.grad.data = given.operands[m_grad].data;
        if (m_index >= 0) job.index.data = given.operands[m_index].data;
        const Launcher launch(kPool, given);
        if (m_row.forward) {
            job.index.data = m_row.indexed && given.results[1].rank >= 0 ? given.results[1].data : nullptr;
            if (job.to.elements() > 0)
                launch.threads(m_real ? "adaptiveReal" : "adaptiveWhole", job.to.elements(), job, job.to.elements());
            return;
        }
        if (job.to.elements() > 0)
            launch.threads(m_real ? "poolBackReal" : "poolBackWhole", job.to.elements(), job, job.to.elements(),
                           launch.fault());
    }

  private:
    /// `instead`: the parameter whose numbers hold where the list is empty.
    Three windows(const char* parameter, int64_t missing, const char* instead = nullptr) const {
        Three three;
        three.fill(missing);
        const auto count = static_cast<size_t>(m_row.spatial);
        if (m_reader.find(parameter) == nullptr) return three;
        Dims numbers = m_reader.integers(parameter, count);
        if (numbers.empty() && instead != nullptr) numbers = m_reader.integers(instead, count);
        if (numbers.size() == count) std::copy(numbers.begin(), numbers.end(), three.end() - m_row.spatial);
        return three;
    }

    CallReader m_reader;
    const PoolRow& m_row;
    PoolJob m_job{};
    int m_grad = -1, m_index = -1;
    bool m_real = true;
};

}  // namespace

const Family* poolFamily() { return &kPool; }

std::unique_ptr<LibraryPlan> planPool(const CtCall& call, CtNeeds&) {
    const auto row =
        std::find_if(std::begin(kPoolRows), std::end(kPoolRows), [&](const PoolRow& one) { return one.op == call.op; });
    if (row == std::end(kPoolRows)) return nullptr;
    return std::make_unique<PoolPlan>(call, *row);
}

}  // namespace cutaway::cuda
