#include "engine/runtime/cuda/functions.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "engine/codegen/cuda_prelude.h"
#include "engine/tensor/dtype.h"

namespace cutaway {
namespace cuda {
namespace {

/// What all families share: tensors by value, elements as double or as 64-bit integers.
constexpr const char* kCommonText = R"(
struct Strided { void* data; int dtype, rank; long sizes[8], strides[8]; };
enum { U8, I8, I16, I32, I64, F16, F32, F64, C32, C64, C128, B8, BF16, U16, U32, U64 };
FN bool isFloat(int dtype) { return dtype == F16 || dtype == F32 || dtype == F64 || dtype == BF16; }
/// Of the i-th element row by row; without `dim`, if it is one.
FN long offsetOf(const Strided& t, long i, int dim = -1) {
    long offset = 0;
    for (int d = t.rank; d-- > 0;) {
        if (d == dim) continue;
        const long size = t.sizes[d];
        long at;
        if (i < 0x7fffffffL && size < 0x7fffffffL) {
            const unsigned n = (unsigned)i, s = (unsigned)size, q = n / s;
            at = n - q * s;
            i = q;
        } else {
            at = i % size;
            i /= size;
        }
        offset += at * t.strides[d];
    }
    return offset;
}
FN double loadReal(const Strided& t, long i) {
    switch (t.dtype) {
        case F16: return rd_f16((const unsigned short*)t.data + i);
        case BF16: return rd_bf16((const unsigned short*)t.data + i);
        case F32: return ((const float*)t.data)[i];
        case F64: return ((const double*)t.data)[i];
        case U64: return (double)((const unsigned long*)t.data)[i];
        case I64: return (double)((const long*)t.data)[i];
        case I32: return ((const int*)t.data)[i];
        case U32: return ((const unsigned*)t.data)[i];
        case I16: return ((const short*)t.data)[i];
        case U16: return ((const unsigned short*)t.data)[i];
        case I8: return ((const signed char*)t.data)[i];
        default: return ((const unsigned char*)t.data)[i];
    }
}
FN long loadWhole(const Strided& t, long i) {
    switch (t.dtype) {
        case F16: case BF16: case F32: case F64: return __double2ll_rz(loadReal(t, i));
        case U64: case I64: return ((const long*)t.data)[i];
        case I32: return ((const int*)t.data)[i];
        case U32: return ((const unsigned*)t.data)[i];
        case I16: return ((const short*)t.data)[i];
        case U16: return ((const unsigned short*)t.data)[i];
        case I8: return ((const signed char*)t.data)[i];
        default: return ((const unsigned char*)t.data)[i];
    }
}
FN void store(const Strided& t, long i, long v) {
    switch (t.dtype) {
        case F16: wr_f16((unsigned short*)t.data + i, (float)v); break;
        case BF16: wr_bf16((unsigned short*)t.data + i, (float)v); break;
        case F32: ((float*)t.data)[i] = (float)v; break;
        case F64: ((double*)t.data)[i] = (double)v; break;
        case U64: case I64: ((long*)t.data)[i] = v; break;
        case U32: case I32: ((int*)t.data)[i] = (int)v; break;
        case U16: case I16: ((short*)t.data)[i] = (short)v; break;
        case B8: ((unsigned char*)t.data)[i] = v != 0; break;
        default: ((signed char*)t.data)[i] = (signed char)v; break;
    }
}
FN void store(const Strided& t, long i, double v) {
    switch (t.dtype) {
        case F16: wr_f16((unsigned short*)t.data + i, (float)v); break;
        case BF16: wr_bf16((unsigned short*)t.data + i, (float)v); break;
        case F32: ((float*)t.data)[i] = (float)v; break;
        case F64: ((double*)t.data)[i] = v; break;
        case B8: ((unsigned char*)t.data)[i] = v != 0; break;
        case U8: ((unsigned char*)t.data)[i] = to_u8(v); break;
        case I8: ((signed char*)t.data)[i] = to_i8(v); break;
        case I16: ((short*)t.data)[i] = to_i16(v); break;
        case U16: ((unsigned short*)t.data)[i] = to_u16(v); break;
        case I32: ((int*)t.data)[i] = to_i32(v); break;
        case U32: ((unsigned*)t.data)[i] = to_u32(v); break;
        case I64: ((long*)t.data)[i] = to_i64(v); break;
        default: ((unsigned long*)t.data)[i] = to_u64(v); break;
    }
}
FN void load(const Strided& t, long i, double& v) { v = loadReal(t, i); }
FN void load(const Strided& t, long i, long& v) { v = loadWhole(t, i); }
FN long offsetCount(const Strided& t) {
    long count = 1;
    for (int d = 0; d < t.rank; ++d) count *= t.sizes[d];
    return count;
}
FN long firstThread() { return (long)blockIdx.x * blockDim.x + threadIdx.x; }
FN long allThreads() { return (long)gridDim.x * blockDim.x; }
)";

constexpr const char* kCopyText = R"(
extern "C" __global__ void copyElements(Strided from, Strided to, long count) {
    for (long i = firstThread(); i < count; i += allThreads()) {
        const long a = offsetOf(from, i), b = offsetOf(to, i);
        if (from.dtype == to.dtype) {
            switch (from.dtype) {
                case U8: case I8: case B8: ((char*)to.data)[b] = ((const char*)from.data)[a]; break;
                case I16: case U16: case F16: case BF16: ((short*)to.data)[b] = ((const short*)from.data)[a]; break;
                case I32: case U32: case F32: ((int*)to.data)[b] = ((const int*)from.data)[a]; break;
                default: ((long*)to.data)[b] = ((const long*)from.data)[a]; break;
            }
        } else if (isFloat(from.dtype)) {
            store(to, b, loadReal(from, a));
        } else {
            store(to, b, loadWhole(from, a));
        }
    }
}
/// The sum of each position of a dim, in a block each: of f64 in f64, of others in f32, in an order that never changes.
template <class S> FN void sumPositions(const Strided& x, const Strided& y, int dim) {
    __shared__ S shared[256];
    const long each = offsetCount(x) / x.sizes[dim];
    for (long p = blockIdx.x; p < x.sizes[dim]; p += gridDim.x) {
        S sum = 0;
        for (long i = threadIdx.x; i < each; i += 256) sum += (S)loadReal(x, offsetOf(x, i, dim) + p * x.strides[dim]);
        __syncthreads();
        shared[threadIdx.x] = sum;
        for (int step = 128; step > 0; step /= 2) {
            __syncthreads();
            if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
        }
        if (threadIdx.x == 0) store(y, p * y.strides[0], (double)shared[0]);
    }
}
extern "C" __global__ void sumDouble(Strided x, Strided y, int dim) { sumPositions<double>(x, y, dim); }
extern "C" __global__ void sumFloat(Strided x, Strided y, int dim) { sumPositions<float>(x, y, dim); }
)";
constexpr Family kCopy{kCopyText};

std::string sourceOf(const Family& family) {
    return cudaPrelude({"mem_f16", "mem_bf16", "to_int"}) + kCommonText + family.text;
}

/// A family's kernels on the process's GPU.
class Compiled {
  public:
    explicit Compiled(const Family& family) {
        auto memory = Memory::ofProcess();
        if (!memory) throw LibraryRefusal(memory.error().message);
        m_memory = *memory;
        const auto nvrtc = Nvrtc::load();
        if (!nvrtc) throw LibraryRefusal(nvrtc.error().message);
        const auto cubin = nvrtc->compile(sourceOf(family), cudaOptions(m_memory->device().capability()));
        if (!cubin) throw LibraryRefusal(cubin.error().message);
        check(driver().moduleLoadData(&m_module, cubin->data()), "cuModuleLoadData");
    }
    Function* function(const std::string& name) {
        Function*& known = m_functions[name];
        if (known == nullptr) check(driver().moduleGetFunction(&known, m_module, name.c_str()), "cuModuleGetFunction");
        return known;
    }
    const Driver& driver() const { return m_memory->device().driver(); }
    void check(int status, const char* call) const {
        if (const auto done = m_memory->check(status, call); !done) throw LibraryRefusal(done.error().message);
    }

  private:
    std::shared_ptr<Memory> m_memory;
    LoadedModule* m_module = nullptr;
    std::map<std::string, Function*> m_functions;
};

std::mutex compiling;
Compiled& compiled(const Family& family) {
    static auto& known = *new std::map<const Family*, std::unique_ptr<Compiled>>;  // the context ends with the process
    std::unique_ptr<Compiled>& own = known[&family];
    if (!own) own = std::make_unique<Compiled>(family);
    return *own;
}

class CopyPlan final : public LibraryPlan {
  public:
    explicit CopyPlan(const CtCall& call)
        : m_call(&call),
          m_to(described(writtenBy(call))),
          m_from(broadcastTo(described(call.operands[CallReader(call).operand("src").value()]), m_to)),
          m_source(CallReader(call).operand("src").value()) {}
    void run(const LibraryRun& given) const override {
        copyElements(m_from.at(given.operands[m_source].data), m_to.at(writtenPlace(*m_call, given)), given);
        copyResult(*m_call, given);
    }

  private:
    const CtCall* m_call;
    DeviceTensor m_to, m_from;
    int m_source;
};

}  // namespace

int64_t DeviceTensor::elements() const {
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= sizes[d];
    return count;
}
DeviceTensor DeviceTensor::at(const void* place) const {
    DeviceTensor placed = *this;
    placed.data = const_cast<void*>(place);
    return placed;
}

DeviceTensor described(const CtTensor& tensor) {
    if (tensor.dtype == CT_C32 || tensor.dtype == CT_C64 || tensor.dtype == CT_C128)
        throw LibraryRefusal("it computes in real numbers");
    if (tensor.rank > kMostDims)
        throw LibraryRefusal("it takes tensors of up to " + std::to_string(kMostDims) + " dims");
    DeviceTensor made;
    made.dtype = tensor.dtype;
    made.rank = std::max(tensor.rank, 1);
    made.sizes[0] = 1;
    std::copy_n(tensor.sizes, std::max(tensor.rank, 0), made.sizes);
    std::copy_n(tensor.strides, std::max(tensor.rank, 0), made.strides);
    return made;
}

DeviceTensor broadcastTo(const DeviceTensor& tensor, const DeviceTensor& like) {
    DeviceTensor made = like;
    made.data = tensor.data;
    made.dtype = tensor.dtype;
    for (int d = 0; d < tensor.rank - like.rank; ++d)
        if (tensor.sizes[d] != 1) throw LibraryRefusal("an operand does not broadcast to the result");
    for (int d = 0; d < like.rank; ++d) {
        const int own = d + tensor.rank - like.rank;
        const int64_t size = own < 0 ? 1 : tensor.sizes[own];
        if (size != 1 && size != like.sizes[d]) throw LibraryRefusal("an operand does not broadcast to the result");
        made.strides[d] = size == 1 ? 0 : tensor.strides[own];
    }
    return made;
}

Three spatialOf(const int64_t* sizes, int leading, int spatial, int64_t missing) {
    Three three;
    three.fill(missing);
    std::copy_n(sizes + leading, spatial, three.end() - spatial);
    return three;
}

bool isFloatingType(int32_t dtype) { return dtype == CT_F16 || dtype == CT_BF16 || dtype == CT_F32 || dtype == CT_F64; }

Launcher::Launcher(const Family& family, const LibraryRun& run)
    : m_family(&family), m_stream(run.parallel->stream), m_fault(run.parallel->fault) {}

void Launcher::launch(const char* kernel, int64_t blocks, unsigned threads, void** arguments) const {
    if (blocks <= 0) return;
    const std::lock_guard lock(compiling);
    Compiled& own = compiled(*m_family);
    own.check(own.driver().launchKernel(own.function(kernel), static_cast<unsigned>(blocks), 1, 1, threads, 1, 1, 0,
                                        static_cast<Stream*>(m_stream), arguments, nullptr),
              "cuLaunchKernel");
}

void copyElements(const DeviceTensor& from, const DeviceTensor& to, const LibraryRun& run) {
    if (from.data == to.data) return;
    const int64_t count = to.elements();
    Launcher(kCopy, run).threads("copyElements", count, from, to, count);
}

void sumPositions(const DeviceTensor& x, const DeviceTensor& sums, int dim, const LibraryRun& run) {
    constexpr unsigned kThreads = 256;
    Launcher(kCopy, run).blocks(x.dtype == CT_F64 ? "sumDouble" : "sumFloat", x.sizes[dim], kThreads, x, sums, dim);
}

std::vector<std::string> gpuFunctionSources() {
    std::vector<std::string> sources;
    for (const Family* family :
         {&kCopy, attentionFamily(), orderFamily(), scanFamily(), placesFamily(), poolFamily(), resampleFamily()})
        sources.push_back(sourceOf(*family));
    return sources;
}

int dimOf(const CallReader& call, const char* parameter, int rank) {
    const CtArgument* const given = call.find(parameter);
    const int64_t dim = given == nullptr ? -1 : given->integer;
    return static_cast<int>(dim < 0 ? dim + std::max(rank, 1) : dim);
}

bool isInPlace(const CtCall& call) {
    const std::string_view op = call.op;
    const size_t dot = op.rfind('.');
    return dot != std::string_view::npos && dot > 0 && op[dot - 1] == '_';
}
const CtTensor& writtenBy(const CtCall& call) {
    return isInPlace(call) ? call.operands[call.args[0].integer] : call.results[0];
}
void* writtenPlace(const CtCall& call, const LibraryRun& run) {
    return isInPlace(call) ? run.operands[call.args[0].integer].data : run.results[0].data;
}
void copyResult(const CtCall& call, const LibraryRun& run) {
    if (!isInPlace(call) || call.resultCount == 0 || call.results[0].rank < 0) return;
    copyElements(described(writtenBy(call)).at(writtenPlace(call, run)),
                 described(call.results[0]).at(run.results[0].data), run);
}

std::unique_ptr<LibraryPlan> planCopy(const CtCall& call, CtNeeds&) {
    const CallReader reader(call);
    if (!reader.is("aten.copy.default") && !reader.is("aten.copy_.default")) return nullptr;
    return std::make_unique<CopyPlan>(call);
}

}  // namespace cuda

namespace {

std::unique_ptr<LibraryPlan> planGpuFunction(const CtCall& call, int, CtNeeds& needs) {
    for (const auto plan : {cuda::planAttention, cuda::planCopy, cuda::planOrder, cuda::planScan, cuda::planPlaces,
                            cuda::planPool, cuda::planResample})
        if (auto made = plan(call, needs)) return made;
    throw LibraryRefusal("it has no function for " + std::string(call.op));
}

}  // namespace

const CtLibrary& gpuFunctionsLibrary() {
    static const CtLibrary library = makeLibrary<planGpuFunction>("GPU functions");
    return library;
}

}  // namespace cutaway
