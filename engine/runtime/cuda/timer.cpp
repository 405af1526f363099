#include "engine/runtime/cuda/timer.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "engine/runtime/cuda/products.h"

namespace cutaway::cuda {
namespace {

/// Copies with zeros around, fills, random numbers: over up to three dims, elements by their bits.
constexpr const char* kKernels = R"(
typedef unsigned short half_bits;
template <class T> __device__ void copyPadded(T* out, const T* in, long long count, long long rows, long long columns, long long inBatches, long long inRows,
                                              long long inColumns, long long batchStride, long long rowStride, long long columnStride) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count) return;
    long long column = i % columns, row = i / columns % rows, batch = i / columns / rows;
    bool inside = column < inColumns && row < inRows && batch < inBatches;
    out[i] = inside ? in[batch * batchStride + row * rowStride + column * columnStride] : T(0);
}
template <class T> __device__ void fillZero(T* out, long long count, long long rows, long long columns, long long batchStride, long long rowStride, long long columnStride) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < count) out[i / columns / rows * batchStride + i / columns % rows * rowStride + i % columns * columnStride] = T(0);
}
extern "C" __global__ void pad2(half_bits* out, const half_bits* in, long long count, long long rows, long long columns, long long b, long long r, long long c, long long sb, long long sr, long long sc) {
    copyPadded(out, in, count, rows, columns, b, r, c, sb, sr, sc);
}
extern "C" __global__ void pad4(unsigned* out, const unsigned* in, long long count, long long rows, long long columns, long long b, long long r, long long c, long long sb, long long sr, long long sc) {
    copyPadded(out, in, count, rows, columns, b, r, c, sb, sr, sc);
}
extern "C" __global__ void zero2(half_bits* out, long long count, long long rows, long long columns, long long sb, long long sr, long long sc) { fillZero(out, count, rows, columns, sb, sr, sc); }
extern "C" __global__ void zero4(unsigned* out, long long count, long long rows, long long columns, long long sb, long long sr, long long sc) { fillZero(out, count, rows, columns, sb, sr, sc); }
// Numbers between 0.5 and 2 in size: random sign and digits below an exponent near 0.
__device__ unsigned mixed(unsigned long long i) {
    i += 0x9E3779B97F4A7C15ull;
    i = (i ^ (i >> 30)) * 0xBF58476D1CE4E5B9ull;
    i = (i ^ (i >> 27)) * 0x94D049BB133111EBull;
    return (unsigned)(i >> 32);
}
extern "C" __global__ void random2(half_bits* out, long long count, unsigned keep, unsigned exponent) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < count) out[i] = (half_bits)((mixed(i) & keep) | exponent);
}
extern "C" __global__ void random4(unsigned* out, long long count, unsigned keep, unsigned exponent) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < count) out[i] = (mixed(i) & keep) | exponent;
}
)";

/// Sizes or strides of up to three dims, missing ones in front.
struct ThreeDims {
    long long batch, row, column;
};
Result<ThreeDims> threeDims(const SymDims& dims, int64_t missing) {
    if (dims.size() > 3 || !allInts(dims))
        return unsupported("values of more than three dims, or of symbolic sizes, are not timed on the GPU");
    const auto at = [&](size_t fromBack) {
        return fromBack <= dims.size() ? dims[dims.size() - fromBack].value() : missing;
    };
    return ThreeDims{at(3), at(2), at(1)};
}

class Program {
  public:
    Program(const Driver& driver, Products& products, LoadedModule* kernels, bool tf32)
        : m_driver(driver), m_products(products), m_kernels(kernels), m_tf32(tf32) {}
    Program(const Program&) = delete;
    ~Program() {
        for (const DevicePtr place : m_allocated) m_driver.memFree(place);
    }
    Result<void> build(const Module& module);
    /// Enqueues one run.
    Result<void> run() const {
        for (const auto& step : m_steps) CT_TRY_VOID(step());
        return {};
    }

  private:
    using Step = std::function<Result<void>()>;
    Result<void> add(const Node& node);
    Result<void> input(const Node& node);
    Result<void> slice(const Node& node);
    Result<void> fill(const Node& node);
    /// `out` is a row-major value that begins with `in` and is 0 behind it.
    Result<Step> padded(DevicePtr out, const TensorType& outType, DevicePtr in, const TensorType& inType);
    Result<void> product(const Node& node);
    Result<DevicePtr> allocate(const TensorType& type);
    Result<Function*> kernel(const std::string& name, DType dtype);
    Step launch(Function* function, long long count, std::vector<long long> arguments);
    DevicePtr& at(const Node& node) { return m_places[static_cast<size_t>(node.id())]; }
    Result<DevicePtr> operand(const Node& node, size_t position) {
        const Node* value = node.arg(position).node();
        if (value == nullptr || value->type().tensor() == nullptr || at(*value) == 0)
            return unsupported("an operand of " + node.op().name() + " is not timed on the GPU");
        return at(*value);
    }

    const Driver& m_driver;
    Products& m_products;
    LoadedModule* m_kernels;
    bool m_tf32;
    std::vector<DevicePtr> m_allocated;
    std::vector<DevicePtr> m_places;  // first element, by node id; 0: none
    std::vector<Step> m_steps;
};

Result<Function*> Program::kernel(const std::string& name, DType dtype) {
    if (!isHalf(dtype) && dtype != DType::F32)
        return unsupported("values of this dtype are not timed on the GPU", "", {"f16, bf16 and f32 are"});
    Function* function = nullptr;
    CT_TRY_VOID(
        m_driver.check(m_driver.moduleGetFunction(&function, m_kernels, (name + (isHalf(dtype) ? "2" : "4")).c_str()),
                       "cuModuleGetFunction"));
    return function;
}

Program::Step Program::launch(Function* function, long long count, std::vector<long long> arguments) {
    constexpr long long kThreads = 256;
    return [this, function, count, arguments]() -> Result<void> {
        std::vector<long long> values = arguments;
        std::vector<void*> places;
        for (long long& value : values) places.push_back(&value);
        const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
        return m_driver.check(
            m_driver.launchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, nullptr, places.data(), nullptr),
            "cuLaunchKernel");
    };
}

int64_t extentOf(const TensorType& type) {
    int64_t last = 0;
    for (size_t i = 0; i < type.sizes.size(); ++i) last += (type.sizes[i].value() - 1) * type.strides[i].value();
    return last + 1;
}
long long countOf(const ThreeDims& sizes) { return sizes.batch * sizes.row * sizes.column; }

Result<DevicePtr> Program::allocate(const TensorType& type) {
    if (!allInts(type.sizes) || !allInts(type.strides)) return unsupported("symbolic sizes are not timed on the GPU");
    if (std::any_of(type.sizes.begin(), type.sizes.end(), [](const SymInt& size) { return size.value() <= 0; }))
        return unsupported("empty values are not timed on the GPU");
    DevicePtr place = 0;
    CT_TRY_VOID(m_driver.check(
        m_driver.memAlloc(&place, static_cast<size_t>(extentOf(type)) * static_cast<size_t>(byteSize(type.dtype))),
        "cuMemAlloc"));
    m_allocated.push_back(place);
    return place;
}

Result<void> Program::input(const Node& node) {
    const TensorType& type = node.tensor();
    CT_TRY(at(node), allocate(type));
    CT_TRY(Function* const function, kernel("random", type.dtype));
    const bool half = type.dtype == DType::F16, brain = type.dtype == DType::BF16;
    const long long keep = half    ? 0x87FF
                           : brain ? 0x80FF
                                   : 0x80FFFFFF,
                    exponent = half    ? 0x3800
                               : brain ? 0x3F00
                                       : 0x3F000000;
    return launch(function, extentOf(type), {static_cast<long long>(at(node)), extentOf(type), keep, exponent})();
}

Result<Program::Step> Program::padded(DevicePtr out, const TensorType& outType, DevicePtr in,
                                      const TensorType& inType) {
    CT_TRY(const ThreeDims sizes, threeDims(outType.sizes, 1));
    CT_TRY(const ThreeDims inSizes, threeDims(inType.sizes, 1));
    CT_TRY(const ThreeDims strides, threeDims(inType.strides, 0));
    CT_TRY(Function* const function, kernel("pad", outType.dtype));
    return launch(function, countOf(sizes),
                  {static_cast<long long>(out), static_cast<long long>(in), countOf(sizes), sizes.row, sizes.column,
                   inSizes.batch, inSizes.row, inSizes.column, strides.batch, strides.row, strides.column});
}

Result<void> Program::slice(const Node& node) {
    CT_TRY(const DevicePtr whole, operand(node, 0));
    const TensorType& from = node.arg(0).node()->tensor();
    const int64_t skipped =
        node.tensor().offset.isInt() && from.offset.isInt() ? node.tensor().offset.value() - from.offset.value() : -1;
    if (skipped < 0) return unsupported("slices at symbolic places are not timed on the GPU");
    at(node) = whole + static_cast<DevicePtr>(skipped) * static_cast<DevicePtr>(byteSize(from.dtype));
    return {};
}

Result<void> Program::fill(const Node& node) {
    CT_TRY(const DevicePtr place, operand(node, 0));
    if (node.arg(1).asReal() != 0.0) return unsupported("filling with anything but 0 is not timed on the GPU");
    const TensorType& type = node.arg(0).node()->tensor();
    CT_TRY(const ThreeDims sizes, threeDims(type.sizes, 1));
    CT_TRY(const ThreeDims strides, threeDims(type.strides, 0));
    CT_TRY(Function* const function, kernel("zero", type.dtype));
    m_steps.push_back(launch(function, countOf(sizes),
                             {static_cast<long long>(place), countOf(sizes), sizes.row, sizes.column, strides.batch,
                              strides.row, strides.column}));
    return {};
}

Result<void> Program::product(const Node& node) {
    const bool biased = node.isCall("aten.addmm.default");
    CT_TRY(const DevicePtr left, operand(node, biased ? 1 : 0));
    CT_TRY(const DevicePtr right, operand(node, biased ? 2 : 1));
    CT_TRY(const DevicePtr out, allocate(node.tensor()));
    at(node) = out;
    Products::Call call{.left = left,
                        .right = right,
                        .out = out,
                        .leftType = node.arg(biased ? 1 : 0).node()->tensor(),
                        .rightType = node.arg(biased ? 2 : 1).node()->tensor(),
                        .tf32 = m_tf32};
    if (biased) {
        CT_TRY(const DevicePtr bias, operand(node, 0));
        const TensorType& type = node.arg(0).node()->tensor();
        if (node.arg("beta").asReal() != 1.0 || node.arg("alpha").asReal() != 1.0)
            return unsupported("addmm with factors is not timed on the GPU");
        if (type.rank() == 1 && type.isContiguous() && type.sizes[0] == call.rightType.sizes[1]) {
            call.bias = bias;  // added in the product's own kernel, as PyTorch has it
        } else {
            // The addend is copied to the result's place, repeated by strides of 0, and the product is added to it.
            TensorType spread = type;
            for (size_t i = 0; i < spread.sizes.size(); ++i) {
                const SymInt& size = node.tensor().sizes[i + 2 - spread.sizes.size()];
                if (spread.sizes[i] == size) continue;
                spread.sizes[i] = size;
                spread.strides[i] = 0;
            }
            while (spread.sizes.size() < 2) {
                spread.sizes.insert(spread.sizes.begin(), node.tensor().sizes[1 - spread.sizes.size()]);
                spread.strides.insert(spread.strides.begin(), SymInt(0));
            }
            CT_TRY(Step copy, padded(out, node.tensor(), bias, spread));
            m_steps.push_back(std::move(copy));
            call.accumulate = true;
        }
    }
    CT_TRY(Step step, m_products.prepare(call));
    m_steps.push_back(std::move(step));
    return {};
}

Result<void> Program::add(const Node& node) {
    if (node.isOutput()) return {};
    if (node.isPlaceholder()) return input(node);
    if (node.isCall("aten.slice.Tensor")) return slice(node);
    if (node.isCall("aten.fill_.Scalar")) return fill(node);
    if (node.isCall("aten.mm.default") || node.isCall("aten.bmm.default") || node.isCall("aten.addmm.default"))
        return product(node);
    if (node.isCall("aten.full.default")) return {};  // what is concatenated with it writes the zeros
    const bool pads = node.isCall("aten.constant_pad_nd.default"), joins = node.isCall("aten.cat.default");
    if (!pads && !joins)
        return unsupported((node.isCall() ? node.op().name() : node.name()) + " is not timed on the GPU");
    const Node* from = pads ? node.arg(0).node() : nullptr;
    if (joins)
        if (const auto* parts = node.arg(0).list();
            parts && parts->size() == 2 && (*parts)[0].node() && (*parts)[1].node() &&
            (*parts)[1].node()->isCall("aten.full.default") && (*parts)[1].node()->arg(1).asReal() == 0.0)
            from = (*parts)[0].node();
    const auto* amounts = pads ? node.arg(1).list() : nullptr;
    for (size_t i = 0; amounts && i < amounts->size(); ++i)
        if ((*amounts)[i].asInt().value_or(-1) < 0 || (i % 2 == 0 && (*amounts)[i].asInt() != 0)) from = nullptr;
    if (from == nullptr || at(*from) == 0 || (pads && node.arg(2).asReal().value_or(0.0) != 0.0))
        return unsupported("this form of " + node.op().name() + " is not timed on the GPU");
    CT_TRY(at(node), allocate(node.tensor()));
    CT_TRY(Step step, padded(at(node), node.tensor(), at(*from), from->tensor()));
    m_steps.push_back(std::move(step));
    return {};
}

Result<void> Program::build(const Module& module) {
    m_places.resize(module.graph().idLimit());
    for (const Node& node : module.graph().nodes()) CT_TRY_VOID(add(node));
    return {};
}

struct Events {
    explicit Events(const Driver& loaded) : driver(loaded) {}
    Events(const Events&) = delete;
    ~Events() {
        for (const auto& [begin, end] : pairs)
            for (Event* event : {begin, end})
                if (event != nullptr) driver.eventDestroy(event);
    }
    Result<void> create(int runs) {
        pairs.resize(static_cast<size_t>(runs));
        for (auto& [begin, end] : pairs)
            for (Event** event : {&begin, &end})
                CT_TRY_VOID(driver.check(driver.eventCreate(event, 0), "cuEventCreate"));
        return {};
    }
    const Driver& driver;
    std::vector<std::pair<Event*, Event*>> pairs;
};

/// Runs with a cold cache, each between two events.
class Stopwatch {
  public:
    explicit Stopwatch(const Device& device) : m_driver(device.driver()) {}
    Result<void> open(const Device& device) {
        CT_TRY(const int64_t bytes, device.attribute(kL2CacheSize));
        m_bytes = static_cast<size_t>(std::max<int64_t>(bytes, 1 << 20));
        return m_driver.check(m_driver.memAlloc(&m_flushed, m_bytes), "cuMemAlloc");
    }
    Result<void> flush() const {
        return m_driver.check(m_driver.memsetD8Async(m_flushed, 0, m_bytes, nullptr), "cuMemsetD8Async");
    }
    /// The best of so many runs, in milliseconds.
    Result<double> best(const Program& program, int runs) const {
        Events events(m_driver);
        CT_TRY_VOID(events.create(runs));
        for (const auto& [begin, end] : events.pairs) {
            CT_TRY_VOID(flush());
            CT_TRY_VOID(m_driver.check(m_driver.eventRecord(begin, nullptr), "cuEventRecord"));
            CT_TRY_VOID(program.run());
            CT_TRY_VOID(m_driver.check(m_driver.eventRecord(end, nullptr), "cuEventRecord"));
        }
        CT_TRY_VOID(m_driver.check(m_driver.ctxSynchronize(), "cuCtxSynchronize"));
        double shortest = std::numeric_limits<double>::infinity();
        for (const auto& [begin, end] : events.pairs) {
            float milliseconds = 0;
            CT_TRY_VOID(m_driver.check(m_driver.eventElapsedTime(&milliseconds, begin, end), "cuEventElapsedTime"));
            shortest = std::min(shortest, static_cast<double>(milliseconds));
        }
        return shortest;
    }

  private:
    const Driver& m_driver;
    DevicePtr m_flushed = 0;
    size_t m_bytes = 0;
};

}  // namespace

struct Timer::State {
    explicit State(const Device& on) : device(on), products(on), watch(on) {}
    const Device& device;
    Products products;
    Stopwatch watch;
    LoadedModule* kernels = nullptr;
};

Timer::Timer(std::unique_ptr<State> state) : m_state(std::move(state)) {}
Timer::Timer(Timer&&) noexcept = default;
Timer::~Timer() = default;

Result<Timer> Timer::open(const Device& device) {
    auto state = std::make_unique<State>(device);
    CT_TRY(const Nvrtc nvrtc, Nvrtc::load());
    CT_TRY(const std::string ptx, nvrtc.compile(kKernels, device.capability()));
    CT_TRY_VOID(
        device.driver().check(device.driver().moduleLoadData(&state->kernels, ptx.c_str()), "cuModuleLoadData"));
    CT_TRY_VOID(state->products.open());
    CT_TRY_VOID(state->watch.open(device));
    return Timer(std::move(state));
}

Result<double> Timer::time(const Module& module, bool tf32) {
    constexpr int kEstimates = 5, kFlushes = 100, kRuns = 100;
    constexpr double kLongest = 25;  // milliseconds for all runs
    const Driver& driver = m_state->device.driver();
    const Stopwatch& watch = m_state->watch;
    Program program(driver, m_state->products, m_state->kernels, tf32);
    CT_TRY_VOID(program.build(module));
    CT_TRY_VOID(program.run());
    CT_TRY_VOID(driver.check(driver.ctxSynchronize(), "cuCtxSynchronize"));
    CT_TRY(const double estimate, watch.best(program, kEstimates));
    for (int i = 0; i < kFlushes; ++i) CT_TRY_VOID(watch.flush());
    const int runs = estimate > 0 ? std::clamp(static_cast<int>(kLongest / estimate), 1, kRuns) : kRuns;
    CT_TRY(const double best, watch.best(program, runs));
    return std::min(estimate, best);
}

}  // namespace cutaway::cuda
