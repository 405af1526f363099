#include "engine/formats/declared_types.h"

#include "engine/ir/infer.h"

namespace cutaway {
namespace {

bool contradict(const TensorType& declared, const TensorType& made) {
    return declared.dtype != made.dtype || declared.rank() != made.rank() || differ(declared.sizes, made.sizes);
}

void compare(Module& module, std::vector<std::string>& remarks) {
    Graph& graph = module.graph();
    std::string first;
    int64_t more = 0;
    for (Node* node : graph.nodeList()) {
        const TensorType* declared = node->type().tensor();
        if (!node->isCall() || declared == nullptr || node->op().isOpaque()) continue;
        auto made = inferCall(node->op(), node->args());
        if (!made || !made->tensor() || !contradict(*declared, *made->tensor())) continue;
        if (first.empty())
            first = "'" + node->name() + "' is declared as " + declared->text() + ", and its operands make it " +
                    made->tensor()->text();
        else ++more;
        graph.setType(*node, std::move(*made));
    }
    if (!first.empty())
        remarks.push_back(first + ": the operands count, as when PyTorch runs the file" +
                          (more > 0 ? "; so do they for " + std::to_string(more) + " more" : ""));
    for (auto& [name, body] : module.subgraphs) compare(*body, remarks);
}

}  // namespace

void compareDeclaredTypes(Module& module) { compare(module, module.origin.remarks); }

}  // namespace cutaway
