#pragma once
// The kernels that a library (oneDNN) computes: products and convolutions of f32, products of bytes. They take and give
// plain arrays: this header is all that the rest of the engine sees of the library. Callers fall back to our own
// kernels where these answer false.
#include <cstdint>
#include <vector>

namespace cutaway {

/// While one lives, the kernels below decline on this thread, and our own compute.
class WithoutLibraryKernels {
  public:
    explicit WithoutLibraryKernels(bool without = true);
    ~WithoutLibraryKernels();
    WithoutLibraryKernels(const WithoutLibraryKernels&) = delete;
    WithoutLibraryKernels& operator=(const WithoutLibraryKernels&) = delete;

  private:
    bool m_before;
};
/// Whether this thread is to do without them.
bool withoutLibraryKernels();

/// A matrix by strides, in elements.
struct MatrixView {
    const float* data = nullptr;
    int64_t rowStride = 0, columnStride = 0;
};
/// c (m x n, row-major) = a (m x k) * b (k x n). False if the sizes are beyond the library.
bool libraryGemm(int64_t m, int64_t n, int64_t k, const MatrixView& a, const MatrixView& b, float* c);

/// sums (m x n, row-major) = a (m x k, rows `stride` apart) * transpose of b (n x k, row-major), exactly. False if this
/// processor's kernels would saturate on the way.
bool libraryGemmBytes(int64_t m, int64_t n, int64_t k, const uint8_t* a, int64_t stride, const int8_t* b,
                      int32_t* sums);

/// Sizes of a convolution over 1 to 3 spatial dims; `transposed` reads weights as [in, out / groups, ...].
struct ConvolutionGeometry {
    int64_t batch = 0, inChannels = 0, outChannels = 0, groups = 1;
    bool transposed = false;
    std::vector<int64_t> in, out, kernel, stride, padding, dilation;  // one per spatial dim
};
/// Row-major [batch, channels, spatial...] arrays; `bias` may be null. False if the library declines.
bool libraryConvolution(const ConvolutionGeometry& geometry, const float* input, const float* weight, const float* bias,
                        float* output);

}  // namespace cutaway
