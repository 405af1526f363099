#include "engine/passes/freezing/quant_operands.h"

#include <algorithm>

#include "engine/ir/module.h"

namespace cutaway {
namespace {

constexpr std::string_view kConvert = "prims.convert_element_type.default";

bool readOnce(const Node& node, const Refusing& no) {
    return node.users().size() == 1 || no.about(&node, node, " has ", Counted{node.users().size(), "reader"});
}
/// A conversion in front of what `value` reads, if it is one: `value` becomes its operand.
bool skipConversion(Node*& value, Node*& conversion, const Refusing& no) {
    if (!value->isCall(kConvert) || value->arg(0).node() == nullptr) return true;
    if (!readOnce(*value, no)) return false;
    conversion = value;
    value = value->arg(0).node();
    return true;
}

bool isZero(const Tensor& tensor) {
    for (int64_t i = 0; i < tensor.numel(); ++i)
        if (toDouble(tensor.item(i)) != 0) return false;
    return true;
}
/// Whether the weight's zero points are 0. Those that the file does not hold count as 0, as weights have them.
bool zerosAreZero(const Module& module, const Argument& zero, const Refusing& no) {
    const Node* node = zero.node();
    if (node == nullptr) return true;  // none
    constexpr std::string_view kTakenForZero = ", are not 0, and quantized products take them for 0";
    if (node->isCall("aten.zeros.default")) return true;
    if (node->isCall("aten.full.default") && node->arg("fill_value").isNumber())
        return node->arg("fill_value").asReal() == 0.0 ||
               no.about(node, "the weight's zero points, ", node, kTakenForZero);
    if (node->kind() != NodeKind::GetAttr)
        return no.about(node, "the weight's zero points, ", NodeWithKind{node}, ", are not constants");
    Tensor values;
    if (const auto held = module.tensors.find(node->target()); held != module.tensors.end()) values = held->second;
    if (const auto made = module.recipes.find(node->target()); made != module.recipes.end()) {
        const auto value = made->second->value();
        if (!value) return no.about(node, "the weight's zero points cannot be computed: ", value.error().message);
        values = *value;
    }
    return !values.defined() || isZero(values) || no.about(node, "the weight's zero points, ", node, kTakenForZero);
}

}  // namespace

bool isDequantizeTensor(const Node& node) {
    return node.isCall("quantized_decomposed.dequantize_per_tensor.default") ||
           node.isCall("quantized_decomposed.dequantize_per_tensor.tensor");
}

bool readActivation(Node* value, QuantizedActivation& found, const Refusing& no) {
    if (value == nullptr) return no("its operand is not a tensor");
    if (!skipConversion(value, found.conversion, no)) return false;
    if (!isDequantizeTensor(*value))
        return no.about(value, "its operand, ", NodeWithKind{value}, ", is not dequantized");
    if (!readOnce(*value, no)) return false;
    found.dequantize = value;
    found.quantized = value->arg(0).node();
    found.scale = value->arg("scale");
    found.zero = value->arg("zero_point");
    found.byTensors = found.scale.node() != nullptr;
    if (found.byTensors != (found.zero.node() != nullptr))
        return no.about(value, "scale and zero point are a number and a tensor");
    found.dtype = (found.conversion ? found.conversion : value)->tensor().dtype;
    return true;
}

bool readWeight(const Module& module, Node* value, bool parity, QuantizedWeight& found, const Refusing& no) {
    if (value == nullptr) return no("its weight is not a tensor");
    if (value->isCall("aten.clone.default") && value->arg(0).node()) {
        if (!readOnce(*value, no)) return false;
        found.clone = value;
        value = value->arg(0).node();
    }
    if (!skipConversion(value, found.conversion, no)) return false;
    if (!value->isCall("quantized_decomposed.dequantize_per_channel.default"))
        return no.about(value, "its weight, ", NodeWithKind{value}, ", is not dequantized by channel");
    if (!readOnce(*value, no)) return false;
    found.dequantize = value;
    found.quantized = value->arg(0).node();
    found.scale = value->arg("scales");
    found.zero = value->arg("zero_points");
    found.dtype = (found.conversion ? found.conversion : value)->tensor().dtype;
    if (found.quantized->tensor().dtype != DType::I8)
        return no.about(value, "the weight, ", found.quantized->tensor(), ", is not int8");
    if (found.scale.node() == nullptr || found.scale.node()->tensor().dtype != DType::F32)
        return no.about(value, "the weight's scales are not float32");
    const int64_t rank = found.quantized->tensor().rank(), axis = value->arg("axis").asInt().value_or(0);
    if (!parity && axis != 0 && axis + rank != 0)
        return no.about(value, "the weight has a scale for each position of dim ", axis, ", not for each row");
    // With parity the axis may be another: PyTorch then takes the first scales, or reads beyond the last.
    const SymInt rows = found.quantized->tensor().sizes[0], scales = numel(found.scale.node()->tensor().sizes);
    if (!(scales == rows) && !(scales == SymInt(1)))
        return no.about(value, "the weight has ", scales, " scales and ", rows, " rows");
    return parity || zerosAreZero(module, found.zero, no);
}

bool dtypesAgree(const QuantizedActivation& activation, const QuantizedWeight& weight, const Refusing& no) {
    if (activation.dtype != weight.dtype || (weight.dtype != DType::F32 && weight.dtype != DType::BF16))
        return no("it multiplies ", (activation.conversion ? activation.conversion : activation.dequantize)->tensor(),
                  " and ", (weight.conversion ? weight.conversion : weight.dequantize)->tensor(),
                  ", which are not both float32, or both bfloat16");
    return true;
}

Argument knownSizes(const TensorType& type) { return allInts(type.sizes) ? Argument(type.sizes) : Argument(); }

void replaceWhole(Rewriter& rewriter, Node& old, Node& replacement) {
    std::vector<NodeId> read;
    for (const Node* input : old.inputs()) read.push_back(input->id());
    Graph& graph = old.graph();
    rewriter.replace(old, replacement);
    for (const NodeId id : read)
        if (Node* node = graph.find(id); node != nullptr && node->isCall() && !node->hasUsers())
            rewriter.eraseDead(*node);
}

}  // namespace cutaway
