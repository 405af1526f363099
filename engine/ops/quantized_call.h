#pragma once
// What the quantized operators of oneDNN share (onednn.qlinear_pointwise, onednn.qconv_pointwise and their forms): how
// a call is read, and what happens to a sum of products on its way out.
//
//   y = sum((x - x_zero) * w) * x_scale * w_scale[channel] + bias[channel]      in f32 from the first scale on
//   then another operand may be added, then one function applied, then
//   float results   y, rounded to their dtype
//   u8, s8          saturate(round(y / output_scale + output_zero)): halves go to the even number, and the zero point
//                   is added before rounding, not after it as quantize_per_tensor does
//   f8e4m3fn        y / output_scale within +-448, by way of f16
//
// Weights are symmetric: PyTorch's kernels take zero points for them and ignore them.
#include <span>
#include <string_view>
#include <vector>

#include "engine/ops/eval.h"

namespace cutaway {

/// Parameters have other names in each operator; what they say is the same.
struct QuantizedCall {
    DType output = DType::F32;
    std::string unary = "none", algorithm, binary = "none";
    std::vector<double> scalars;
    double outputScale = 1, otherScale = 1;
    int64_t outputZero = 0, otherZero = 0;
    bool adds() const { return binary != "none"; }
};
/// Errors: whatever PyTorch refuses of dtypes, scales, zero points and post-ops. `unaries`: the functions that the
/// operator knows, `binaries` what it does with another operand.
Result<QuantizedCall> readQuantizedCall(const InferContext& c, std::span<const std::string_view> unaries,
                                        std::span<const std::string_view> binaries);
/// Errors: dtypes of input and weight that do not go together, and parameters or a bias of other sizes. `channels`: of
/// the result.
Result<void> checkQuantizedOperands(const InferContext& c, const TensorType& input, const TensorType& weight,
                                    const SymInt& channels);
/// Whether the products are those of 8-bit floats, which have no zero points and are summed as floats.
bool areFloatBytes(const TensorType& input);

/// The zero point of the quantized input, given as a literal or as a tensor of one element; 0 where there is none.
int64_t inputZero(const EvalContext& c);

/// Turns rows of sums into rows of the result.
class QuantizedFinish {
  public:
    /// `result` and `other` (undefined if there is none) are row-major matrices with a column per channel. Scales and
    /// bias are read from the call.
    QuantizedFinish(const EvalContext& c, QuantizedCall call, Tensor result, const Tensor& other);
    /// `sums` [count, width] of rows [row, row + count) and the channels from `first` on, less `zeros` [width] if that
    /// is not null. T: int32_t (modulo 2^32) or float.
    template <class T>
    void run(const T* sums, const T* zeros, int64_t row, int64_t count, int64_t first, int64_t width) const;

  private:
    void finish(float* y, int64_t row, int64_t first, int64_t width) const;

    QuantizedCall m_call;
    mutable Tensor m_result;
    float m_inputScale = 1;
    std::vector<float> m_scales, m_bias, m_other;  // m_other: as numbers, of the result's sizes
    int64_t m_columns = 0;
};

}  // namespace cutaway
