// oneDNN for reference kernels; compiled programs call it through runtime/libraries.
#include <dnnl.hpp>
#include <list>
#include <unordered_map>

#include "engine/ops/library_kernels.h"
#include "engine/support/library_windows.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

using Dims = dnnl::memory::dims;
constexpr auto kF32 = dnnl::memory::data_type::f32;

dnnl::engine& cpu() {
    static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return engine;
}

/// A copy with rows one after the other, for matrices in which neither stride is 1.
std::vector<float> packed(const MatrixView& matrix, int64_t rows, int64_t columns) {
    std::vector<float> out(static_cast<size_t>(rows * columns));
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            out[static_cast<size_t>(i * columns + j)] = matrix.data[i * matrix.rowStride + j * matrix.columnStride];
    return out;
}

/// How the library reads the matrix: as it lies, or transposed, with its leading stride.
struct GemmOperand {
    char transpose = 'N';
    int64_t leading = 0;
    const float* data = nullptr;
    std::vector<float> copy;

    GemmOperand(const MatrixView& matrix, int64_t rows, int64_t columns) : data(matrix.data) {
        if ((matrix.columnStride == 1 || columns == 1) && (rows == 1 || matrix.rowStride >= columns)) {
            leading = rows == 1 ? columns : matrix.rowStride;
        } else if ((matrix.rowStride == 1 || rows == 1) && (columns == 1 || matrix.columnStride >= rows)) {
            transpose = 'T';
            leading = columns == 1 ? rows : matrix.columnStride;
        } else {
            copy = packed(matrix, rows, columns);
            data = copy.data();
            leading = columns;
        }
    }
};

struct ConvolutionKernel {
    dnnl::primitive primitive;
    dnnl::memory::desc input, weight, output;  // as the primitive wants them
};

std::string keyOf(const ConvolutionGeometry& g, bool bias) {
    std::string key;
    auto add = [&](int64_t value) { key += std::to_string(value) + ","; };
    for (int64_t value : {g.batch, g.inChannels, g.outChannels, g.groups, int64_t{g.transposed}, int64_t{bias}})
        add(value);
    for (const auto* list : {&g.in, &g.out, &g.kernel, &g.stride, &g.padding, &g.dilation})
        for (int64_t value : *list) add(value);
    return key;
}

/// Row-major strides; the library has no default for five or more dims with groups.
dnnl::memory::desc plain(const Dims& dims) {
    Dims strides(dims.size());
    int64_t step = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        strides[i] = step;
        step *= dims[i];
    }
    return dnnl::memory::desc(dims, kF32, strides);
}
dnnl::memory::desc any(const Dims& dims) { return dnnl::memory::desc(dims, kF32, dnnl::memory::format_tag::any); }

struct ConvolutionDims {
    Dims input, weight, output;
};
ConvolutionDims convolutionDims(const ConvolutionGeometry& g) {
    ConvolutionDims dims{{g.batch, g.inChannels}, {}, {g.batch, g.outChannels}};
    dims.input.insert(dims.input.end(), g.in.begin(), g.in.end());
    dims.output.insert(dims.output.end(), g.out.begin(), g.out.end());
    dims.weight = {g.groups, g.outChannels / g.groups, g.inChannels / g.groups};
    dims.weight.insert(dims.weight.end(), g.kernel.begin(), g.kernel.end());
    return dims;
}

/// Lends the library as many threads as the work is worth: small calls end before a second thread is awake.
void lendFor(double operations) {
    const double nanoseconds = std::min(operations / kLibraryOperationsPerNanosecond, 1e12);
    lendThreads(threadsWorth(static_cast<int64_t>(nanoseconds), threadCount()));
}
double operationsOf(const ConvolutionGeometry& g) {
    double count = 2.0 * static_cast<double>(g.batch) * static_cast<double>(g.inChannels) *
                   static_cast<double>(g.outChannels) / static_cast<double>(g.groups);
    for (size_t i = 0; i < g.kernel.size(); ++i)
        count *= static_cast<double>(g.kernel[i]) * static_cast<double>(g.transposed ? g.in[i] : g.out[i]);
    return count;
}

/// Descriptions of primitives take their arguments at once since version 3, by way of an object of their own before.
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc describe(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
    return typename Primitive::primitive_desc(cpu(), arguments...);
#else
    return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), cpu());
#endif
}

ConvolutionKernel makeKernel(const ConvolutionGeometry& g, bool bias) {
    const ConvolutionDims dims = convolutionDims(g);
    Dims stride, gaps, right;
    for (size_t i = 0; i < g.kernel.size(); ++i) {
        const LibraryWindows windows(g.transposed ? g.out[i] : g.in[i], g.transposed ? g.in[i] : g.out[i], g.kernel[i],
                                     g.stride[i], g.padding[i], g.dilation[i]);
        stride.push_back(windows.stride);
        gaps.push_back(windows.gap);
        right.push_back(windows.behind);
    }
    const auto biasDesc = bias ? plain({g.outChannels}) : dnnl::memory::desc();
    ConvolutionKernel kernel;
    if (g.transposed) {
        const auto desc = describe<dnnl::deconvolution_forward>(
            dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, any(dims.input),
            any(dims.weight), biasDesc, any(dims.output), stride, gaps, g.padding, right);
        kernel = {dnnl::deconvolution_forward(desc), desc.src_desc(), desc.weights_desc(), desc.dst_desc()};
    } else {
        const auto desc = describe<dnnl::convolution_forward>(
            dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, any(dims.input), any(dims.weight),
            biasDesc, any(dims.output), stride, gaps, g.padding, right);
        kernel = {dnnl::convolution_forward(desc), desc.src_desc(), desc.weights_desc(), desc.dst_desc()};
    }
    return kernel;
}

/// Making a primitive generates code, so the last few are kept.
class KernelCache {
  public:
    ConvolutionKernel get(const ConvolutionGeometry& geometry, bool bias) {
        const std::string key = keyOf(geometry, bias);
        for (auto it = m_recent.begin(); it != m_recent.end(); ++it)
            if (it->first == key) {
                m_recent.splice(m_recent.begin(), m_recent, it);
                return it->second;
            }
        m_recent.emplace_front(key, makeKernel(geometry, bias));
        if (m_recent.size() > kKept) m_recent.pop_back();
        return m_recent.front().second;
    }

  private:
    static constexpr size_t kKept = 64;
    std::list<std::pair<std::string, ConvolutionKernel>> m_recent;
};

/// Weights come as PyTorch stores them: [out, in / groups, ...], or [in, out / groups, ...] when transposed; the
/// library wants [groups, out / groups, in / groups, ...] in both cases.
dnnl::memory::desc storedWeights(const ConvolutionGeometry& g, const Dims& dims) {
    if (!g.transposed) return plain(dims);
    Dims strides(dims.size());
    int64_t step = 1;
    for (size_t i = dims.size(); i-- > 3;) {
        strides[i] = step;
        step *= dims[i];
    }
    strides[1] = step;
    strides[2] = step * dims[1];
    strides[0] = strides[2] * dims[2];
    return dnnl::memory::desc(dims, kF32, strides);
}

dnnl::memory borrow(const dnnl::memory::desc& desc, const float* data) {
    return dnnl::memory(desc, cpu(), const_cast<float*>(data));
}

void run(const ConvolutionGeometry& g, const float* input, const float* weight, const float* bias, float* output) {
    // Scratch memory of a kernel belongs to the thread that made it.
    thread_local KernelCache cache;
    lendFor(operationsOf(g));
    const ConvolutionKernel kernel = cache.get(g, bias != nullptr);
    const ConvolutionDims dims = convolutionDims(g);
    dnnl::stream stream(cpu());
    auto arranged = [&](const dnnl::memory& given, const dnnl::memory::desc& wanted) {
        if (given.get_desc() == wanted) return given;
        dnnl::memory copy(wanted, cpu());
        dnnl::reorder(given, copy).execute(stream, const_cast<dnnl::memory&>(given), copy);
        return copy;
    };
    const dnnl::memory source = arranged(borrow(plain(dims.input), input), kernel.input);
    const dnnl::memory weights = arranged(borrow(storedWeights(g, dims.weight), weight), kernel.weight);
    dnnl::memory target = borrow(plain(dims.output), output);
    dnnl::memory result = kernel.output == target.get_desc() ? target : dnnl::memory(kernel.output, cpu());
    std::unordered_map<int, dnnl::memory> args{
        {DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, result}};
    if (bias) args.emplace(DNNL_ARG_BIAS, borrow(plain({g.outChannels}), bias));
    kernel.primitive.execute(stream, args);
    if (result.get_data_handle() != target.get_data_handle())
        dnnl::reorder(result, target).execute(stream, result, target);
    stream.wait();
}

/// Processors without instructions for it sum pairs of products in 16 bits, which saturate.
bool sumsBytesExactly() {
    static const bool exactly = [] {
        const auto level = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
        const auto includes = [level](dnnl::cpu_isa isa) {
            return (level & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);
        };
        return includes(dnnl::cpu_isa::avx512_core_vnni) || includes(dnnl::cpu_isa::avx2_vnni);
    }();
    return exactly;
}

}  // namespace

bool libraryGemm(int64_t m, int64_t n, int64_t k, const MatrixView& a, const MatrixView& b, float* c) {
    if (withoutLibraryKernels() || m <= 0 || n <= 0 || k <= 0) return false;
    const GemmOperand left(a, m, k), right(b, k, n);
    lendFor(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
    return dnnl_sgemm(left.transpose, right.transpose, m, n, k, 1.0f, left.data, left.leading, right.data,
                      right.leading, 0.0f, c, n) == dnnl_success;
}

bool libraryGemmBytes(int64_t m, int64_t n, int64_t k, const uint8_t* a, int64_t stride, const int8_t* b,
                      int32_t* sums) {
    if (withoutLibraryKernels() || m <= 0 || n <= 0 || k <= 0 || !sumsBytesExactly()) return false;
    const int32_t offset = 0;
    return dnnl_gemm_u8s8s32('N', 'T', 'F', m, n, k, 1.0f, a, stride, 0, b, k, 0, 0.0f, sums, n, &offset) ==
           dnnl_success;
}

bool libraryConvolution(const ConvolutionGeometry& geometry, const float* input, const float* weight, const float* bias,
                        float* output) {
    if (withoutLibraryKernels()) return false;
    for (const auto* list : {&geometry.in, &geometry.out})
        for (int64_t size : *list)
            if (size <= 0) return false;
    if (geometry.batch <= 0 || geometry.inChannels <= 0 || geometry.outChannels <= 0) return false;
    try {
        run(geometry, input, weight, bias, output);
        return true;
    } catch (const dnnl::error&) {
        return false;  // a combination the library has no kernel for
    }
}

}  // namespace cutaway
