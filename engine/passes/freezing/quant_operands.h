#pragma once
// What a product of quantized tensors reads: integers that a dequantize call makes numbers of, with conversions, copies
// and reshapes in between, as PyTorch's patterns have them (spec: QO §5).
#include "engine/ir/readers.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {

/// Whether it is a call of one of the two overloads that quantized products take.
bool isDequantizeTensor(const Node& node);

/// quantized -> dequantize_per_tensor [-> convert_element_type]
struct QuantizedActivation {
    Node *quantized = nullptr, *dequantize = nullptr, *conversion = nullptr;
    Argument scale, zero;
    bool byTensors = false;    // scale and zero point are tensors
    DType dtype = DType::F32;  // of the numbers that it stands for
};
/// Reads `value` so. Every call in between must have one reader. Says why it is none.
bool readActivation(Node* value, QuantizedActivation& found, const Refusing& no);

/// quantized -> dequantize_per_channel [-> convert_element_type] [-> clone]
struct QuantizedWeight {
    Node *quantized = nullptr, *dequantize = nullptr, *conversion = nullptr, *clone = nullptr;
    Argument scale, zero;
    DType dtype = DType::F32;
};
/// The same for a weight, with one scale for each position of dim 0 and zero points of 0. PyTorch looks at neither
/// (parity).
bool readWeight(const Module& module, Node* value, bool parity, QuantizedWeight& found, const Refusing& no);

/// Whether the two go together: a product of float32, or of bfloat16.
bool dtypesAgree(const QuantizedActivation& activation, const QuantizedWeight& weight, const Refusing& no);

/// The sizes as an argument; None where some are known only at run time.
Argument knownSizes(const TensorType& type);

/// Readers of `old` read `replacement`; what only `old` read goes with it.
void replaceWhole(Rewriter& rewriter, Node& old, Node& replacement);

}  // namespace cutaway
