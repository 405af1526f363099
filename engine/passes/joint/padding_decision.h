#pragma once
// Whether a product is computed with padded operands (spec: passes PAD-2 to PAD-6). Settings of `--enable pad_mm=...`:
//   shape_padding:0       never
//   force_shape_pad:1     always when it is possible
//   deterministic:1       nothing that must be measured
//   decisions:FILE        a file of decisions as PyTorch keeps them: {"system": ..., "cache": {KEY: true, ...}}
//   tflops:N, dram_gbps:N what the device computes and reads per second; unknown: every product counts as bound by
//                         computing
//   capability:N          of the device, as 8.6; unknown: 9.0
//                         (these three may also stand under `--enable device=...`, for all passes; without either,
//                         the device is asked)
//   tf32:1                f32 products may be rounded to tf32
//   any_device:1          on the CPU too, where PyTorch never pads
// and `shape_padding_multiplier=value:1.1`, `pad_aten_mm_pass=k_threshold_to_pad:8388608` with PyTorch's meaning.
// What is not decided by a rule or a file is measured (padding_measure.h); where nothing can measure, nothing is
// padded. Symbolic sizes stand for their examples there, and are never padded themselves. Leaves out: the learned
// heuristic, which PyTorch has off.
#include <string>

#include "engine/rewrite/matcher.h"

namespace cutaway {

enum class ProductKind : uint8_t { Mm, Bmm, Addmm };

/// How many elements are added to the rows of the first operand, the shared dim, and the columns of the second.
struct Padding {
    int64_t m = 0, k = 0, n = 0;
};

/// 8 for f16 and bf16, 4 for f32, else 0: no padding.
int64_t alignmentOf(DType dtype);
/// To the next multiple; 0 for symbolic sizes, for 1, and without an alignment.
int64_t paddedLength(const SymInt& size, int64_t alignment);
Padding paddingOf(ProductKind kind, const TensorType& mat1, const TensorType& mat2);

/// The operands of buildPadded, which pads them, makes the call and cuts the result to its size. `bias`: null unless
/// Addmm. `mat1Ready`, `mat2Ready`: the operand comes padded already.
struct PaddedOperands {
    Value bias, mat1, mat2;
    Argument beta = 1, alpha = 1;
    bool mat1Ready = false, mat2Ready = false;
};
Value buildPadded(GraphBuilder& builder, ProductKind kind, const PaddedOperands& operands, const Padding& padding);

/// The key under which PyTorch 2.11 caches a decision: Python's text of shapes, strides, dtypes and what is known of
/// the operands. `base`: the key of the time without padding.
std::string paddingKey(const Match& match, ProductKind kind, bool base = false);

/// The call that makes the operand can make it padded, at no cost (PAD-5).
bool isPrePadded(const Match& match, std::string_view name);

/// The sentence that says why the product stays as it is, empty if it is padded; a note on the match says how that was
/// decided.
std::string_view unlessPadded(const Match& match, ProductKind kind);

}  // namespace cutaway
