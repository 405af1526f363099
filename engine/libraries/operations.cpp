#include "engine/libraries/operations.h"

#include "engine/support/saturated.h"

namespace cutaway {
namespace {

int64_t elementsOf(const TensorType* type, const NumberFor& numberFor) {
    int64_t count = type ? 1 : 0;
    for (size_t d = 0; type && d < type->sizes.size(); ++d)
        count = saturatedProduct({count, numberFor(type->sizes[d])});
    return count;
}
/// The tensor at the first of these parameters that the call has; null if there is none.
const TensorType* operandOf(const Node& node, std::initializer_list<std::string_view> params) {
    const Schema* schema = node.op().schema();
    for (const std::string_view param : params)
        if (const int at = schema ? schema->find(param) : -1; at >= 0)
            if (const Node* operand = node.arg(static_cast<size_t>(at)).node()) return operand->type().tensor();
    return nullptr;
}
int64_t sizeOf(const TensorType* type, size_t fromBack, const NumberFor& numberFor) {
    if (type == nullptr || type->sizes.size() <= fromBack) return 1;
    return numberFor(type->sizes[type->sizes.size() - 1 - fromBack]);
}

int64_t convolutionOperations(const Node& node, int64_t results, const NumberFor& numberFor) {
    const TensorType *const x = operandOf(node, {"input", "X"}), *const weight = operandOf(node, {"weight", "W"});
    if (weight == nullptr || sizeOf(weight, weight->sizes.size() - 1, numberFor) == 0) return results;
    const Schema* schema = node.op().schema();
    const int flag = schema->find("transposed"), outputPadding = schema->find("output_padding");
    const bool transposed =
        flag >= 0 ? node.arg(static_cast<size_t>(flag)).asInt().value_or(0) != 0 : outputPadding >= 0;
    const bool backward = schema->find("grad_output") >= 0;
    const int64_t windows = transposed ? elementsOf(x, numberFor)
                            : backward ? elementsOf(operandOf(node, {"grad_output"}), numberFor)
                                       : results;
    const int64_t each = elementsOf(weight, numberFor) / sizeOf(weight, weight->sizes.size() - 1, numberFor);
    return saturatedProduct({backward ? 4 : 2, windows, each});
}

}  // namespace

int64_t operationsOf(const Node& node, const NumberFor& numberFor) {
    const TupleType* const tuple = node.type().tuple();
    const TensorType* const out = tuple ? (tuple->empty() ? nullptr : (*tuple)[0].tensor()) : node.type().tensor();
    const int64_t elements = elementsOf(out, numberFor);
    const std::string_view name = node.op().baseName();
    const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    if (name == "mm" || name == "bmm" || name == "addmm" || name == "baddbmm" || has("_linear"))
        return saturatedProduct({2, elements, sizeOf(operandOf(node, {"mat1", "batch1", "self", "X"}), 0, numberFor)});
    if (has("convolution")) return convolutionOperations(node, elements, numberFor);
    if (has("scaled_dot_product"))
        return saturatedProduct({has("_backward") ? 10 : 4, elementsOf(operandOf(node, {"query"}), numberFor),
                                 sizeOf(operandOf(node, {"key"}), 1, numberFor)});
    return elements;
}

}  // namespace cutaway
