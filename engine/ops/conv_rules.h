#pragma once
// What convolutions of all kinds ask of their arguments: numbers per spatial dim, channels that fit, sizes of the
// result.
#include "engine/ir/infer.h"
#include "engine/ops/library_kernels.h"
#include "engine/ops/lower.h"

namespace cutaway {

struct ConvolutionCall {
    std::vector<int64_t> stride, padding, dilation, outputPadding;
    bool transposed = false;
    int64_t groups = 1;
};

/// Stride, padding, dilation and groups for `spatial` dims, one number standing for all of them; output padding and
/// transposition where the op has them.
Result<ConvolutionCall> readConvolution(const InferContext& c, size_t spatial);
/// Errors: channels or groups of input and weight that do not belong together, and dims without elements.
Result<void> checkConvolution(const InferContext& c, const TensorType& input, const TensorType& weight,
                              const ConvolutionCall& call);
/// Errors: a kernel that is larger than the padded input.
Result<SymDims> convolutionSizes(const InferContext& c, const TensorType& input, const TensorType& weight,
                                 const ConvolutionCall& call);
/// Of a call that the shape rule has accepted.
ConvolutionGeometry convolutionGeometry(const InferContext& c, const Dims& input, const Dims& weight,
                                        const Dims& output);

/// Whether each channel of a GPU's convolution is one of its own and the windows are small, so that a kernel is faster
/// than a library, which has tensor cores for sums over channels.
bool isConvolvedByChannel(const InferContext& c);
/// Such a convolution as an expression; null for others.
Expr lowerByChannel(LowerContext& c);

}  // namespace cutaway
