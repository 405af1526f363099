#pragma once
// Convolutions over concrete arrays: forward, and the gradients of input and weights, for 1 to 3 spatial dims with
// groups, dilation and transposition.
#include "engine/ops/library_kernels.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// result = convolution of input and weight (+ bias if defined), through the library where it serves the dtype.
void convolve(const ConvolutionGeometry& geometry, const Tensor& input, const Tensor& weight, const Tensor& bias,
              Tensor& result);
/// The same without the library, floats summed in double.
void convolvePlainly(const ConvolutionGeometry& geometry, const Tensor& input, const Tensor& weight, const Tensor& bias,
                     Tensor& result);
/// Gradient of the input, of its shape.
void convolveBackInput(const ConvolutionGeometry& geometry, const Tensor& gradient, const Tensor& weight,
                       Tensor& result);
/// Gradient of the weight, of its shape.
void convolveBackWeight(const ConvolutionGeometry& geometry, const Tensor& gradient, const Tensor& input,
                        Tensor& result);
/// The library-free forms of the two, for tests.
void convolveBackInputPlainly(const ConvolutionGeometry& geometry, const Tensor& gradient, const Tensor& weight,
                              Tensor& result);
void convolveBackWeightPlainly(const ConvolutionGeometry& geometry, const Tensor& gradient, const Tensor& input,
                               Tensor& result);

}  // namespace cutaway
