#include "tests/support/graph_eval.h"

#include <QString>
#include <map>
#include <stdexcept>

#include "engine/ops/eval.h"
#include "engine/text/parse.h"

namespace cutaway::testing {

std::shared_ptr<const Module> moduleOf(std::string_view text) {
    auto module = parseText(text);
    if (!module) throw std::runtime_error(module.error().text());
    return std::shared_ptr<const Module>(std::move(*module));
}

std::shared_ptr<const Module> moduleOf(const std::string& inputs, const std::string& statements) {
    QString lines = QString::fromStdString(statements);
    lines.replace("; ", "\n    ");
    return moduleOf("def forward(" + inputs + "):\n    " + lines.toStdString() + "\n");
}

std::vector<Tensor> drawnInputs(const Module& module, uint64_t seed, int64_t below) {
    uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
    auto next = [&] {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    };
    std::vector<Tensor> inputs;
    for (const Node* node : module.graph().placeholders()) {
        const TensorType& type = node->tensor();
        const Dims sizes = toInts(type.sizes), strides = toInts(type.strides);
        Tensor packed = Tensor::empty(DType::F64, sizes);
        for (int64_t i = 0; i < packed.numel(); ++i) {
            const double unit = static_cast<double>(next() >> 11) * 0x1p-53;
            packed.as<double>()[i] = isFloating(type.dtype)      ? unit * 4 - 2
                                     : type.dtype == DType::Bool ? static_cast<double>(unit < 0.5)
                                                                 : std::floor(unit * static_cast<double>(below));
        }
        int64_t extent = 1;
        for (size_t d = 0; d < sizes.size(); ++d) extent += std::max<int64_t>(sizes[d] - 1, 0) * strides[d];
        Tensor laid(Storage::allocate(static_cast<size_t>(extent * byteSize(type.dtype))), type.dtype, sizes, strides);
        copyInto(laid, packed);
        inputs.push_back(std::move(laid));
    }
    return inputs;
}

namespace {
struct GraphValues : ValueSource {
    std::map<NodeId, TensorList> known;
    const TensorList& valueOf(const Node& node) const override { return known.at(node.id()); }
};
}  // namespace

Result<std::vector<Tensor>> referenceOutputs(const Module& module, const std::vector<Tensor>& inputs) {
    GraphValues values;
    size_t position = 0;
    for (const Node& node : module.graph().nodes()) {
        if (node.isPlaceholder()) {
            values.known[node.id()] = {inputs[position++]};
        } else if (node.kind() == NodeKind::GetAttr) {
            values.known[node.id()] = {module.tensors.at(node.target())};
        } else if (node.isCall()) {
            EvalResult result = evaluateCall(node.op(), node.args(), node.type(), values);
            if (!result.ok()) return result.error();
            values.known[node.id()] = result.tensors();
        }
    }
    std::vector<Tensor> outputs;
    for (const Argument& output : module.graph().outputs())
        outputs.push_back(output.node() ? values.known.at(output.node()->id())[0] : Tensor());
    return outputs;
}

}  // namespace cutaway::testing
