#include "engine/passes/move_to_device.h"

#include "engine/ir/live_nodes.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr Device kGpu{DeviceType::Cuda, 0};

bool onCpu(const ValueType& type) {
    if (const TensorType* tensor = type.tensor()) return tensor->device.type == DeviceType::Cpu;
    if (const TupleType* items = type.tuple()) return std::any_of(items->begin(), items->end(), onCpu);
    return false;
}
ValueType moved(ValueType type) {
    if (TensorType* tensor = type.tensor()) {
        if (tensor->device.type == DeviceType::Cpu) tensor->device = kGpu;
    } else if (const TupleType* items = type.tuple()) {
        TupleType all;
        for (const ValueType& item : *items) all.push_back(moved(item));
        return ValueType(std::move(all));
    }
    return type;
}
/// A device argument that says CPU, or one that is left out by a call that creates a tensor.
bool namesCpu(const Node& node, size_t position) {
    const Schema* schema = node.op().schema();
    if (schema == nullptr || position >= schema->params.size() || schema->params[position].kind != ParamKind::Device)
        return false;
    const auto* device = node.arg(position).get<Device>();
    return device ? device->type == DeviceType::Cpu : node.op().is(Tag::Factory);
}
bool concerns(const Node& node) {
    if (onCpu(node.type())) return true;
    for (size_t i = 0; node.isCall() && i < node.args().size(); ++i)
        if (namesCpu(node, i)) return true;
    return false;
}
void moveGraph(Module& module) {
    for (auto& [name, body] : module.subgraphs) moveGraph(*body);
    Graph& graph = module.graph();
    for (Node* node : LiveNodes(graph)) {
        for (size_t i = 0; node->isCall() && i < node->args().size(); ++i)
            if (namesCpu(*node, i)) graph.setArg(*node, i, Argument(kGpu));
        if (onCpu(node->type())) graph.setType(*node, moved(node->type()));
    }
}

/// `first`: where the rewrite starts; null if it does not.
void sayDevicesThatStay(const Module& module, const Node* first, Rewriter& rewriter) {
    for (const Node& node : module.graph().nodes()) {
        const Refusing no(rewriter, rewriter.pass(), node);
        if (!no.watched()) continue;
        if (!concerns(node)) no("nothing of it is on the CPU");
        else if (first == nullptr) no("no value of the main graph is on the CPU");
        else no.about(first, "it moves with all other values, at ", *first, ", where the rewrite starts");
    }
    for (const auto& [name, body] : module.subgraphs) sayDevicesThatStay(*body, first, rewriter);
}

}  // namespace

Result<bool> moveToDevice(Module& module, Rewriter& rewriter) {
    const auto nodes = module.graph().nodes();
    const auto first = std::find_if(nodes.begin(), nodes.end(), [](const Node& node) { return concerns(node); });
    sayDevicesThatStay(module, first == nodes.end() ? nullptr : &*first, rewriter);
    if (first == nodes.end() || rewriter.begin("device", *first, "compiled for cuda:0") != Go::Yes) return false;
    moveGraph(module);
    return true;
}

}  // namespace cutaway
