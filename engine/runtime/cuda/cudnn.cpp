#include "engine/runtime/cuda/cudnn.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "engine/libraries/choose.h"
#include "engine/runtime/cuda/functions.h"
#include "engine/runtime/cuda/memory.h"
#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/libraries/library_plan.h"
#include "engine/tensor/dtype.h"

namespace cutaway {
namespace {

// Values of cuDNN's public enumerations.
constexpr int kRowMajor = 0, kChannelsLast = 1, kCrossCorrelation = 1, kDefaultMath = 0, kTensorMath = 1, kFmaMath = 3,
              kDeterministic = 1;
constexpr int kMostAlgorithms = 8;
/// What PyTorch gives a call at most, without being told otherwise.
constexpr size_t kMostWorkspace = size_t{1} << 30;

struct AlgorithmFound {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, mathType;
    int reserved[3];
};

using Handle = void*;
using Descriptor = void*;
using GetAlgorithms = int (*)(Handle, Descriptor, Descriptor, Descriptor, Descriptor, int, int*, AlgorithmFound*);
using GetWorkspace = int (*)(Handle, Descriptor, Descriptor, Descriptor, Descriptor, int, size_t*);
using Convolve = int (*)(Handle, const void* alpha, Descriptor, const void*, Descriptor, const void*, Descriptor, int,
                         void* workspace, size_t, const void* beta, Descriptor, void*);

struct Cudnn {
    Handle handle = nullptr;
    int (*create)(Handle*);
    int (*setStream)(Handle, cuda::Stream*);
    int (*createTensor)(Descriptor*);
    int (*destroyTensor)(Descriptor);
    int (*setTensor)(Descriptor, int dtype, int dims, const int* sizes, const int* strides);
    int (*createFilter)(Descriptor*);
    int (*destroyFilter)(Descriptor);
    int (*setFilter)(Descriptor, int dtype, int layout, int dims, const int* sizes);
    int (*createConvolution)(Descriptor*);
    int (*destroyConvolution)(Descriptor);
    int (*setConvolution)(Descriptor, int dims, const int* pads, const int* strides, const int* gaps, int mode,
                          int dtype);
    int (*setGroups)(Descriptor, int);
    int (*setMath)(Descriptor, int);
    int (*addTensor)(Handle, const void*, Descriptor, const void*, const void*, Descriptor, void*);
    GetAlgorithms forwardAlgorithms, dataAlgorithms, filterAlgorithms;
    GetWorkspace forwardWorkspace, dataWorkspace, filterWorkspace;
    Convolve forward, data, filter;
};

void checkCudnn(int status, const char* call) {
    if (status != 0) throw LibraryRefusal(std::string(call) + " failed with status " + std::to_string(status));
}

/// The process's handle.
const Cudnn& openedCudnn() {
    static const Cudnn cudnn = [] {
        if (auto memory = cuda::Memory::ofProcess(); !memory) throw LibraryRefusal(memory.error().message);
        auto library = cuda::Library::open({"libcudnn.so.9", "libcudnn.so"}, "computes convolutions on the GPU");
        if (!library) throw LibraryRefusal(library.error().message);
        Cudnn made{};
        library->bind(made.create, "cudnnCreate");
        library->bind(made.setStream, "cudnnSetStream");
        library->bind(made.createTensor, "cudnnCreateTensorDescriptor");
        library->bind(made.destroyTensor, "cudnnDestroyTensorDescriptor");
        library->bind(made.setTensor, "cudnnSetTensorNdDescriptor");
        library->bind(made.createFilter, "cudnnCreateFilterDescriptor");
        library->bind(made.destroyFilter, "cudnnDestroyFilterDescriptor");
        library->bind(made.setFilter, "cudnnSetFilterNdDescriptor");
        library->bind(made.createConvolution, "cudnnCreateConvolutionDescriptor");
        library->bind(made.destroyConvolution, "cudnnDestroyConvolutionDescriptor");
        library->bind(made.setConvolution, "cudnnSetConvolutionNdDescriptor");
        library->bind(made.setGroups, "cudnnSetConvolutionGroupCount");
        library->bind(made.setMath, "cudnnSetConvolutionMathType");
        library->bind(made.addTensor, "cudnnAddTensor");
        library->bind(made.forwardAlgorithms, "cudnnGetConvolutionForwardAlgorithm_v7");
        library->bind(made.dataAlgorithms, "cudnnGetConvolutionBackwardDataAlgorithm_v7");
        library->bind(made.filterAlgorithms, "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
        library->bind(made.forwardWorkspace, "cudnnGetConvolutionForwardWorkspaceSize");
        library->bind(made.dataWorkspace, "cudnnGetConvolutionBackwardDataWorkspaceSize");
        library->bind(made.filterWorkspace, "cudnnGetConvolutionBackwardFilterWorkspaceSize");
        library->bind(made.forward, "cudnnConvolutionForward");
        library->bind(made.data, "cudnnConvolutionBackwardData");
        library->bind(made.filter, "cudnnConvolutionBackwardFilter");
        if (!library->missing().empty()) throw LibraryRefusal("cuDNN has no function " + library->missing());
        checkCudnn(made.create(&made.handle), "cudnnCreate");
        return made;
    }();
    return cudnn;
}

int typeCode(DType dtype) {
    switch (dtype) {
        case DType::F32: return 0;
        case DType::F64: return 1;
        case DType::F16: return 2;
        case DType::BF16: return 9;
        default: throw LibraryRefusal("it convolves f64, f32, f16 and bf16");
    }
}

std::vector<int> narrowed(const Dims& numbers) {
    std::vector<int> made;
    for (const int64_t number : numbers) {
        if (number > INT32_MAX) throw LibraryRefusal("it counts elements in 32 bits");
        made.push_back(static_cast<int>(number));
    }
    return made;
}

/// With a dim of one element in front of the spatial ones where there is only one: the library has two at least.
Dims withTwo(Dims numbers, size_t rank, int64_t one) {
    if (rank == 1) numbers.insert(numbers.end() - 1, one);
    return numbers;
}

/// One call of the library: of a forward, of a gradient by the input, or by the weight.
struct Pass {
    Descriptor first = nullptr, second = nullptr, result = nullptr;
    int algorithm = 0;
    size_t workspace = 0;
    Convolve run = nullptr;
    bool weightFirst = false;  // the library takes the weight before the other operand
};

class ConvolutionPlan final : public LibraryPlan {
  public:
    ConvolutionPlan(const CtCall& call, CtNeeds& needs) : m_call(call), m_cudnn(openedCudnn()) {
        try {
            plan(needs);
        } catch (...) {
            release();
            throw;
        }
    }
    ~ConvolutionPlan() override { release(); }

    /// A constant weight in the order that the library is fast in. It is not read where it lies then.
    void pack(const CtTensor* operands, std::byte* packed) const override {
        const auto memory = cuda::Memory::ofProcess();
        if (!memory) throw LibraryRefusal(memory.error().message);
        CtParallel parallel{};
        parallel.stream = (*memory)->stream();
        cuda::copyElements(m_w.lies.at(operands[m_weight].data), m_w.wanted.at(packed), {.parallel = &parallel});
    }
    bool packs(int operand) const override { return m_w.isPacked && operand == m_weight; }
    bool reads(int operand) const override { return !packs(operand); }

    void run(const LibraryRun& given) const override {
        const std::lock_guard lock(m_mutex);  // the handle has one stream
        checkCudnn(m_cudnn.setStream(m_cudnn.handle, static_cast<cuda::Stream*>(given.parallel->stream)),
                   "cudnnSetStream");
        const void* const w = m_w.isPacked ? given.packed : read(m_w, given.operands[m_weight].data, given);
        if (!m_backward) {
            const void* const x = read(m_x, given.operands[m_input].data, given);
            void* const y = written(m_y, given.results[0].data, given);
            pass(m_forward, x, w, y, given);
            if (m_bias >= 0)
                checkCudnn(m_cudnn.addTensor(m_cudnn.handle, one(), m_biasLayout, given.operands[m_bias].data, one(),
                                             m_y.layout, y),
                           "cudnnAddTensor");
            return finish(m_y, given.results[0].data, given);
        }
        const void* const gradient = read(m_y, given.operands[m_grad].data, given);
        if (given.results[0].rank >= 0) {
            pass(m_byInput, gradient, w, written(m_inputGradient, given.results[0].data, given), given);
            finish(m_inputGradient, given.results[0].data, given);
        }
        if (given.results[1].rank >= 0) {
            const void* const x = read(m_x, given.operands[m_input].data, given);
            pass(m_byWeight, m_transposed ? gradient : x, m_transposed ? x : gradient,
                 written(m_weightGradient, given.results[1].data, given), given);
            finish(m_weightGradient, given.results[1].data, given);
        }
        if (given.results[2].rank >= 0)
            cuda::sumPositions(m_gradient.at(given.operands[m_grad].data), m_biasGradient.at(given.results[2].data), 1,
                               given);
    }

  private:
    void plan(CtNeeds& needs) {
        m_backward = m_call.find("grad_output") != nullptr;
        m_transposed = m_call.flag("transposed");
        m_input = m_call.operand("input").value();
        m_weight = m_call.operand("weight").value();
        m_grad = m_call.operand("grad_output").value_or(-1);
        m_bias = m_call.operand("bias").value_or(-1);
        const CtCall& call = m_call.call();
        const CtTensor &x = call.operands[m_input], &w = call.operands[m_weight];
        const CtTensor& y = m_backward ? call.operands[m_grad] : call.results[0];
        m_rank = static_cast<size_t>(std::max(x.rank, 2)) - 2;
        if (m_rank < 1 || m_rank > 3) throw LibraryRefusal("it slides windows over one to three dims");
        m_dtype = static_cast<DType>(y.dtype);
        m_type = typeCode(m_dtype);
        if (elementsOf(x) == 0 || elementsOf(y) == 0 || elementsOf(w) == 0)
            throw LibraryRefusal("it takes no tensors without elements");
        // What tensor cores compute is fast with channels last: where a result or an operand lies so, and over one dim,
        // of which graphs have no such layout.
        m_rounds = m_call.flag(kAllowTf32);
        m_last = (isHalf(m_dtype) || m_rounds) && (m_rank == 1 || isLast(y) || isLast(x));
        m_x = taken(x);
        m_y = taken(y);
        m_w = taken(w, true);
        m_w.isPacked = m_w.isCopied && call.constant[m_weight] != 0;
        convolution();
        if (m_bias >= 0) m_biasLayout = biasLayout(y.sizes[1]);
        if (m_backward && call.results[2].rank >= 0) {
            m_gradient = cuda::described(y);
            m_biasGradient = cuda::described(call.results[2]);
        }
        // A transposed convolution is the gradient of another one by its input.
        if (!m_backward) {
            m_forward = m_transposed ? byInput(m_w.layout, m_x.layout, m_y.layout)
                                     : forward(m_x.layout, m_w.layout, m_y.layout);
        } else {
            if (call.results[0].rank >= 0) {
                m_inputGradient = taken(call.results[0]);
                m_byInput = m_transposed ? forward(m_y.layout, m_w.layout, m_inputGradient.layout)
                                         : byInput(m_w.layout, m_y.layout, m_inputGradient.layout);
            }
            if (call.results[1].rank >= 0) {
                m_weightGradient = taken(call.results[1], true);
                m_byWeight = m_transposed ? byWeight(m_y.layout, m_x.layout, m_weightGradient.layout)
                                          : byWeight(m_x.layout, m_y.layout, m_weightGradient.layout);
            }
        }
        cuda::Room room(nullptr);
        for (const Pass* each : {&m_forward, &m_byInput, &m_byWeight})
            m_workspace = std::max(m_workspace, static_cast<int64_t>(each->workspace));
        room.take<std::byte>(m_workspace);
        for (PreparedTensor* each : {&m_x, &m_y, &m_w, &m_inputGradient, &m_weightGradient}) {
            if (!each->isCopied) continue;
            const int64_t bytes = each->wanted.elements() * ct::bytesOf(each->wanted.dtype);
            if (each->isPacked) needs.packed = bytes;
            else each->at = reinterpret_cast<intptr_t>(room.take<std::byte>(bytes));
        }
        needs.scratch = room.bytes();
    }
    /// A tensor as the library is given it: where it lies, or copied.
    struct PreparedTensor {
        Descriptor layout = nullptr;
        bool isCopied = false, isPacked = false;
        cuda::DeviceTensor lies, wanted;
        intptr_t at = 0;  // of the copy, in scratch memory
    };
    static Dims lastStrides(const Dims& sizes) {
        Dims last(sizes.size());
        last[1] = 1;
        int64_t step = sizes[1];
        for (size_t d = sizes.size(); d-- > 2; step *= sizes[d]) last[d] = step;
        last[0] = step;
        return last;
    }
    static bool lies(const CtTensor& tensor, const Dims& wanted) {
        for (int d = 0; d < tensor.rank; ++d)
            if (tensor.sizes[d] > 1 && tensor.strides[d] != wanted[static_cast<size_t>(d)]) return false;
        return true;
    }
    static bool isLast(const CtTensor& tensor) { return lies(tensor, lastStrides(sizesOf(tensor))); }
    PreparedTensor taken(const CtTensor& given, bool isFilter = false) {
        PreparedTensor made;
        const Dims sizes = sizesOf(given), last = lastStrides(sizes);
        CtTensor as = given;
        if (m_last && !lies(given, last)) {
            made.isCopied = true;
            made.lies = made.wanted = cuda::described(given);
            std::copy(last.begin(), last.end(), made.wanted.strides);
            as.strides = last.data();
        }
        made.layout = isFilter ? filter(as) : tensor(as);
        return made;
    }
    std::byte* copyOf(const PreparedTensor& taken, const LibraryRun& given) const { return given.scratch + taken.at; }
    const void* read(const PreparedTensor& taken, const void* place, const LibraryRun& given) const {
        if (!taken.isCopied) return place;
        cuda::copyElements(taken.lies.at(place), taken.wanted.at(copyOf(taken, given)), given);
        return copyOf(taken, given);
    }
    void* written(const PreparedTensor& taken, void* place, const LibraryRun& given) const {
        return taken.isCopied ? copyOf(taken, given) : place;
    }
    void finish(const PreparedTensor& taken, void* place, const LibraryRun& given) const {
        if (taken.isCopied) cuda::copyElements(taken.wanted.at(copyOf(taken, given)), taken.lies.at(place), given);
    }
    void release() {
        for (const Descriptor made : m_tensors) m_cudnn.destroyTensor(made);
        for (const Descriptor made : m_filters) m_cudnn.destroyFilter(made);
        if (m_convolution != nullptr) m_cudnn.destroyConvolution(m_convolution);
    }
    Descriptor tensor(const CtTensor& given) {
        const std::vector<int> sizes = narrowed(withTwo(sizesOf(given), m_rank, 1));
        const Dims strides = stridesOf(given);
        return described(sizes, narrowed(withTwo(strides, m_rank, strides.back() * given.sizes[given.rank - 1])));
    }
    Descriptor described(const std::vector<int>& sizes, const std::vector<int>& strides) {
        Descriptor made = nullptr;
        checkCudnn(m_cudnn.createTensor(&made), "cudnnCreateTensorDescriptor");
        m_tensors.push_back(made);
        checkCudnn(m_cudnn.setTensor(made, m_type, static_cast<int>(sizes.size()), sizes.data(), strides.data()),
                   "cudnnSetTensorNdDescriptor");
        return made;
    }
    Descriptor biasLayout(int64_t channels) {
        const std::vector<int> sizes = narrowed(withTwo(
            [&] {
                Dims all(m_rank + 2, 1);
                all[1] = channels;
                return all;
            }(),
            m_rank, 1));
        std::vector<int> strides(sizes.size(), 1);
        strides[0] = sizes[1];
        return described(sizes, strides);
    }
    Descriptor filter(const CtTensor& given) {
        const Dims sizes = sizesOf(given);
        const bool rows = lies(given, contiguousStridesOf(sizes));
        if (!rows && !isLast(given))
            throw LibraryRefusal("the weight lies neither row by row nor with its channels last");
        const std::vector<int> numbers = narrowed(withTwo(sizes, m_rank, 1));
        Descriptor made = nullptr;
        checkCudnn(m_cudnn.createFilter(&made), "cudnnCreateFilterDescriptor");
        m_filters.push_back(made);
        checkCudnn(m_cudnn.setFilter(made, m_type, rows ? kRowMajor : kChannelsLast, static_cast<int>(numbers.size()),
                                     numbers.data()),
                   "cudnnSetFilterNdDescriptor");
        return made;
    }
    void convolution() {
        const std::vector<int> pads = narrowed(withTwo(m_call.integers("padding", m_rank), m_rank, 0)),
                               strides = narrowed(withTwo(m_call.integers("stride", m_rank), m_rank, 1)),
                               gaps = narrowed(withTwo(m_call.integers("dilation", m_rank), m_rank, 1));
        checkCudnn(m_cudnn.createConvolution(&m_convolution), "cudnnCreateConvolutionDescriptor");
        const int computed = m_dtype == DType::F64 ? typeCode(DType::F64) : typeCode(DType::F32);
        checkCudnn(m_cudnn.setConvolution(m_convolution, static_cast<int>(pads.size()), pads.data(), strides.data(),
                                          gaps.data(), kCrossCorrelation, computed),
                   "cudnnSetConvolutionNdDescriptor");
        checkCudnn(m_cudnn.setGroups(m_convolution, static_cast<int>(m_call.find("groups")->integer)),
                   "cudnnSetConvolutionGroupCount");
        checkCudnn(m_cudnn.setMath(m_convolution, m_dtype == DType::F32 && !m_rounds ? kFmaMath
                                                  : m_dtype == DType::F64            ? kDefaultMath
                                                                                     : kTensorMath),
                   "cudnnSetConvolutionMathType");
    }

    /// `a`, `b`: the operands in the library's order. The fastest that gives the same bits each time.
    Pass chosen(GetAlgorithms list, GetWorkspace workspace, Convolve call, Descriptor a, Descriptor b,
                Descriptor result, const std::array<Descriptor, 4>& asked) {
        AlgorithmFound found[kMostAlgorithms];
        int count = 0;
        checkCudnn(list(m_cudnn.handle, asked[0], asked[1], asked[2], asked[3], kMostAlgorithms, &count, found),
                   "cudnnGetConvolutionAlgorithm_v7");
        for (int i = 0; i < count; ++i) {
            if (found[i].status != 0 || found[i].determinism != kDeterministic) continue;
            const bool rounds = found[i].mathType != kFmaMath && found[i].mathType != kDefaultMath;
            if (m_dtype == DType::F32 && !m_rounds && rounds) continue;
            Pass made{a, b, result, found[i].algorithm, 0, call, false};
            if (workspace(m_cudnn.handle, asked[0], asked[1], asked[2], asked[3], made.algorithm, &made.workspace) !=
                    0 ||
                made.workspace > kMostWorkspace)
                continue;
            return made;
        }
        throw LibraryRefusal("it has no algorithm for this convolution that gives the same bits each time");
    }
    Pass forward(Descriptor x, Descriptor w, Descriptor y) {
        return chosen(m_cudnn.forwardAlgorithms, m_cudnn.forwardWorkspace, m_cudnn.forward, x, w, y,
                      {x, w, m_convolution, y});
    }
    Pass byInput(Descriptor w, Descriptor grad, Descriptor made) {
        Pass pass = chosen(m_cudnn.dataAlgorithms, m_cudnn.dataWorkspace, m_cudnn.data, w, grad, made,
                           {w, grad, m_convolution, made});
        pass.weightFirst = true;
        return pass;
    }
    Pass byWeight(Descriptor x, Descriptor grad, Descriptor made) {
        return chosen(m_cudnn.filterAlgorithms, m_cudnn.filterWorkspace, m_cudnn.filter, x, grad, made,
                      {x, grad, m_convolution, made});
    }
    void pass(const Pass& own, const void* a, const void* b, void* result, const LibraryRun& given) const {
        if (own.weightFirst) std::swap(a, b);
        checkCudnn(own.run(m_cudnn.handle, one(), own.first, a, own.second, b, m_convolution, own.algorithm,
                           given.scratch, own.workspace, zero(), own.result, result),
                   "cudnnConvolution");
    }
    const void* one() const {
        static constexpr float kOne = 1;
        static constexpr double kWideOne = 1;
        return m_dtype == DType::F64 ? static_cast<const void*>(&kWideOne) : &kOne;
    }
    const void* zero() const {
        static constexpr float kZero = 0;
        static constexpr double kWideZero = 0;
        return m_dtype == DType::F64 ? static_cast<const void*>(&kWideZero) : &kZero;
    }

    CallReader m_call;
    const Cudnn& m_cudnn;
    bool m_backward = false, m_transposed = false;
    int m_input = 0, m_weight = 0, m_grad = -1, m_bias = -1, m_type = 0;
    size_t m_rank = 0;
    DType m_dtype = DType::F32;
    bool m_last = false, m_rounds = false;
    PreparedTensor m_x, m_y, m_w, m_inputGradient, m_weightGradient;
    int64_t m_workspace = 0;
    Descriptor m_biasLayout = nullptr, m_convolution = nullptr;
    std::vector<Descriptor> m_tensors, m_filters;
    cuda::DeviceTensor m_gradient, m_biasGradient;
    Pass m_forward, m_byInput, m_byWeight;
    mutable std::mutex m_mutex;
};

std::unique_ptr<LibraryPlan> planCudnn(const CtCall& call, int, CtNeeds& needs) {
    return std::make_unique<ConvolutionPlan>(call, needs);
}

}  // namespace

const CtLibrary& cudnnLibrary() {
    static const CtLibrary library = makeLibrary<planCudnn>("cuDNN");
    return library;
}

}  // namespace cutaway
