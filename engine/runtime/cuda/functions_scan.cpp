// Prefix sums, products and extremes along a dim. A block scans a line, or a part of one where there are few lines: the
// parts' totals first, then what stands before each part, then the part itself.
#include <algorithm>

#include "engine/runtime/cuda/functions.h"

namespace cutaway::cuda {
namespace {

constexpr const char* kScanText = R"(
enum { SUM, PRODUCT, LOGSUMEXP, LARGEST, SMALLEST };
template <class S> struct Item { S value; long at; int any; };
FN double logAddExp(double a, double b) {
    if (a != a || b != b) return a + b;
    const double large = fmax(a, b), small = fmin(a, b);
    return isinf(large) ? large : large + log1p(exp(small - large));
}
FN long logAddExp(long a, long) { return a; }
FN bool isNan(double x) { return x != x; }
FN bool isNan(long) { return false; }
/// b stands behind a. Of equal extremes the last, and a NaN stays.
template <class S> FN Item<S> joined(int op, const Item<S>& a, const Item<S>& b) {
    if (!a.any) return b;
    if (!b.any) return a;
    switch (op) {
        case SUM: return {a.value + b.value, b.at, 1};
        case PRODUCT: return {a.value * b.value, b.at, 1};
        case LOGSUMEXP: return {logAddExp(a.value, b.value), b.at, 1};
        case LARGEST: return isNan(b.value) || (!isNan(a.value) && b.value >= a.value) ? b : a;
        default: return isNan(b.value) || (!isNan(a.value) && b.value <= a.value) ? b : a;
    }
}
struct Job { Strided x, y, positions; int dim, op; long lines, length, parts, part; };

/// An element as it is once converted to the result's dtype.
FN void read(const Job& job, long at, long i, Item<double>& item) {
    double v = loadReal(job.x, at);
    if (job.y.dtype != job.x.dtype) {
        if (job.y.dtype == F16) v = round_f16((float)v);
        else if (job.y.dtype == BF16) v = round_bf16((float)v);
        else if (job.y.dtype == F32) v = (float)v;
    }
    item.value = v;
    item.at = i;
    item.any = 1;
}
FN void read(const Job& job, long at, long i, Item<long>& item) {
    item.value = loadWhole(job.x, at);
    item.at = i;
    item.any = 1;
}
template <class S> FN void write(const Job& job, long line, long i, const Item<S>& item) {
    store(job.y, offsetOf(job.y, line, job.dim) + i * job.y.strides[job.dim], item.value);
    if (job.positions.data)
        store(job.positions, offsetOf(job.positions, line, job.dim) + i * job.positions.strides[job.dim], item.at);
}

template <class S> FN void scanParts(const Job& job, Item<S>* totals, bool onlyTotals) {
    constexpr int EACH = 4;
    __shared__ Item<S> shared[256];
    const int t = threadIdx.x;
    for (long own = blockIdx.x; own < job.lines * job.parts; own += gridDim.x) {
        const long line = own / job.parts, begin = own % job.parts * job.part, end = min(begin + job.part, job.length);
        const long from = offsetOf(job.x, line, job.dim);
        Item<S> carried;
        carried.any = 0;
        if (!onlyTotals && job.parts > 1) carried = totals[own];
        for (long first = begin; first < end; first += 256 * EACH) {
            Item<S> mine[EACH];
            for (int k = 0; k < EACH; ++k) {
                const long i = first + t * EACH + k;
                mine[k].any = 0;
                if (i < end) read(job, from + i * job.x.strides[job.dim], i, mine[k]);
                if (k > 0) mine[k] = joined(job.op, mine[k - 1], mine[k]);
            }
            __syncthreads();
            shared[t] = mine[EACH - 1];
            for (int step = 1; step < 256; step *= 2) {
                __syncthreads();
                Item<S> left;
                left.any = 0;
                if (t >= step) left = shared[t - step];
                __syncthreads();
                shared[t] = joined(job.op, left, shared[t]);
            }
            __syncthreads();
            Item<S> before = carried;
            if (t > 0) before = joined(job.op, carried, shared[t - 1]);
            for (int k = 0; k < EACH && !onlyTotals; ++k) {
                const long i = first + t * EACH + k;
                if (i < end) write(job, line, i, joined(job.op, before, mine[k]));
            }
            carried = joined(job.op, carried, shared[255]);
        }
        if (onlyTotals && t == 0) totals[own] = carried;
    }
}
/// What stands before each part, in its place.
template <class S> FN void scanTotals(const Job& job, Item<S>* totals) {
    for (long line = firstThread(); line < job.lines; line += allThreads()) {
        Item<S> before;
        before.any = 0;
        for (long p = 0; p < job.parts; ++p) {
            const Item<S> own = totals[line * job.parts + p];
            totals[line * job.parts + p] = before;
            before = joined(job.op, before, own);
        }
    }
}
/// Lines beside each other in memory, a thread each.
template <class S> FN void scanAbreast(const Job& job) {
    for (long line = firstThread(); line < job.lines; line += allThreads()) {
        const long from = offsetOf(job.x, line, job.dim);
        Item<S> before;
        before.any = 0;
        for (long i = 0; i < job.length; ++i) {
            Item<S> own;
            read(job, from + i * job.x.strides[job.dim], i, own);
            before = joined(job.op, before, own);
            write(job, line, i, before);
        }
    }
}
extern "C" __global__ void realTotals(Job job, Item<double>* totals) { scanParts<double>(job, totals, true); }
extern "C" __global__ void realBefore(Job job, Item<double>* totals) { scanTotals<double>(job, totals); }
extern "C" __global__ void realScan(Job job, Item<double>* totals) { scanParts<double>(job, totals, false); }
extern "C" __global__ void realAbreast(Job job, Item<double>*) { scanAbreast<double>(job); }
extern "C" __global__ void wholeTotals(Job job, Item<long>* totals) { scanParts<long>(job, totals, true); }
extern "C" __global__ void wholeBefore(Job job, Item<long>* totals) { scanTotals<long>(job, totals); }
extern "C" __global__ void wholeScan(Job job, Item<long>* totals) { scanParts<long>(job, totals, false); }
extern "C" __global__ void wholeAbreast(Job job, Item<long>*) { scanAbreast<long>(job); }
)";
constexpr Family kScan{kScanText};

/// As the kernels have it.
struct ScanJob {
    DeviceTensor x, y, positions;
    int32_t dim = 0, op = 0;
    int64_t lines = 0, length = 0, parts = 1, part = 0;
};
constexpr int64_t kItemBytes = 24;
enum class ScanKind : int32_t { Sum, Product, LogSumExp, Largest, Smallest };

class ScanPlan final : public LibraryPlan {
  public:
    ScanPlan(const CtCall& call, ScanKind kind, CtNeeds& needs) {
        m_job.x = described(call.operands[0]);
        m_job.y = described(call.results[0]);
        const bool extreme = kind == ScanKind::Largest || kind == ScanKind::Smallest;
        if (extreme) m_job.positions = described(call.results[1]);
        m_job.dim = dimOf(CallReader(call), "dim", call.operands[0].rank);
        m_job.op = static_cast<int32_t>(kind);
        m_job.length = m_job.x.sizes[m_job.dim];
        m_job.lines = m_job.length == 0 ? 0 : m_job.x.elements() / m_job.length;
        m_real = isFloatingType(m_job.y.dtype);
        if (m_job.x.dtype == CT_U64 && extreme) throw LibraryRefusal("it compares integers with a sign");
        constexpr int64_t kPart = 4096, kEnoughBlocks = 264, kMostParts = 512;
        m_abreast = m_job.x.strides[m_job.dim] != 1 && m_job.lines >= kPart;
        if (!m_abreast && m_job.lines < kEnoughBlocks)
            m_job.parts = std::clamp<int64_t>((m_job.length + kPart - 1) / kPart, 1, kMostParts);
        m_job.part = (m_job.length + m_job.parts - 1) / m_job.parts;
        if (m_job.parts > 1) needs.scratch = m_job.lines * m_job.parts * kItemBytes;
    }
    void run(const LibraryRun& given) const override {
        ScanJob job = m_job;
        job.x.data = given.operands[0].data;
        job.y.data = given.results[0].data;
        if (job.positions.rank > 0) job.positions.data = given.results[1].data;
        const Launcher launch(kScan, given);
        constexpr unsigned kThreads = 256;
        void* const totals = given.scratch;
        if (m_abreast) return launch.threads(m_real ? "realAbreast" : "wholeAbreast", job.lines, job, totals);
        const int64_t blocks = job.lines * job.parts;
        if (job.parts > 1) {
            launch.blocks(m_real ? "realTotals" : "wholeTotals", blocks, kThreads, job, totals);
            launch.threads(m_real ? "realBefore" : "wholeBefore", job.lines, job, totals);
        }
        launch.blocks(m_real ? "realScan" : "wholeScan", blocks, kThreads, job, totals);
    }

  private:
    ScanJob m_job;
    bool m_real = true, m_abreast = false;
};

struct ScanOp {
    std::string_view name;
    ScanKind kind;
};
constexpr ScanOp kScanOps[] = {{"aten.cumsum.default", ScanKind::Sum},
                               {"aten.cumprod.default", ScanKind::Product},
                               {"aten.logcumsumexp.default", ScanKind::LogSumExp},
                               {"aten.cummax.default", ScanKind::Largest},
                               {"aten.cummin.default", ScanKind::Smallest}};

}  // namespace

const Family* scanFamily() { return &kScan; }

std::unique_ptr<LibraryPlan> planScan(const CtCall& call, CtNeeds& needs) {
    for (const ScanOp& each : kScanOps)
        if (each.name == call.op) return std::make_unique<ScanPlan>(call, each.kind, needs);
    return nullptr;
}

}  // namespace cutaway::cuda
