// library_kernels.h where no library is linked: every call is declined, so that our own kernels do the work.
#include "engine/ops/library_kernels.h"

namespace cutaway {

bool libraryGemm(int64_t, int64_t, int64_t, const MatrixView&, const MatrixView&, float*) { return false; }
bool libraryGemmBytes(int64_t, int64_t, int64_t, const uint8_t*, int64_t, const int8_t*, int32_t*) { return false; }
bool libraryConvolution(const ConvolutionGeometry&, const float*, const float*, const float*, float*) { return false; }

}  // namespace cutaway
