#include "engine/session/run_notes.h"

#include <algorithm>

namespace cutaway {
namespace {

template <class Holds>
bool anyCall(const Module& module, const Holds& holds) {
    for (const Node& node : module.graph().nodes())
        if (node.isCall() && holds(node)) return true;
    return std::any_of(module.subgraphs.begin(), module.subgraphs.end(),
                       [&](const auto& each) { return anyCall(*each.second, holds); });
}
bool isCollective(const Node& node) {
    const std::string& name = node.op().name();
    return name.starts_with("_c10d_functional.") || name.starts_with("symm_mem.") || name.starts_with("fsdp.");
}
bool isOfHalves(const Node& node) {
    const TensorType* type = node.type().tensor();
    return type != nullptr && isHalf(type->dtype);
}

}  // namespace

std::vector<std::string> notesOf(const Module& module, const RunReport& report, bool compiled, bool roundsHalves,
                                 bool tf32) {
    std::vector<std::string> notes;
    if (tf32) notes.emplace_back(kTf32Note);
    if (anyCall(module, isCollective))
        notes.emplace_back(
            "collectives run in this process alone: a reduction gives its own values, and what others would send is "
            "what it sends");
    if (compiled && !roundsHalves && report.compared && !report.matches && anyCall(module, isOfHalves))
        notes.emplace_back(
            "kernels keep values of half precision in float32 between calls, where PyTorch's eager mode rounds each, so "
            "that a floor or a comparison may come out otherwise: --enable fusion=emulate_precision_casts:true rounds "
            "them all");
    return notes;
}

}  // namespace cutaway
