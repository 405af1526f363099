#include "engine/passes/post_grad/addmm.h"

namespace cutaway {
namespace {

constexpr std::string_view kWhy = "the bias is added while the product is still in registers";

/// Every reader is pointwise, looking through getitem and views. The output is not; no reader counts as all.
bool allUsersPointwise(const Node& node) {
    for (const Node* user : node.users()) {
        if (user->isOutput()) return false;
        if (user->is(Tag::View) || user->isCall("operator.getitem")) {
            if (!allUsersPointwise(*user)) return false;
        } else if (!user->is(Tag::Pointwise)) {
            return false;
        }
    }
    return true;
}

bool expandsTo(const SymDims& from, const SymDims& to) {
    if (from.size() > to.size()) return false;
    for (size_t i = 0; i < from.size(); ++i) {
        const SymInt& size = from[from.size() - 1 - i];
        if (!(size == to[to.size() - 1 - i]) && !(size == SymInt(1))) return false;
    }
    return true;
}

bool fits(const Node& add, const Node& product, const Node& bias) {
    if (!product.isCall("aten.mm.default") || product.users().size() != 1 || !bias.type().tensor()) return false;
    if (&product == &bias) return false;
    const TensorType &out = product.tensor(), &b = bias.tensor();
    if (b.dtype != product.arg(0).node()->tensor().dtype || b.dtype != product.arg(1).node()->tensor().dtype) return false;
    if (!expandsTo(b.sizes, out.sizes)) return false;
    return !(out.device.type == DeviceType::Cuda && allUsersPointwise(add));
}

}  // namespace

Result<bool> fuseAddmm(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, fuseAddmm(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    const std::vector<Node*> order = graph.nodeList();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
        Node& add = **at;
        if (!add.isCall("aten.add.Tensor") || add.arg("alpha").asReal() != 1.0) continue;
        Node *left = add.arg(0).node(), *right = add.arg(1).node();
        if (left == nullptr || right == nullptr) continue;
        // add(bias, mm) is tried first, as PyTorch registers it.
        const bool productRight = fits(add, *right, *left);
        if (!productRight && !fits(add, *left, *right)) continue;
        Node &product = productRight ? *right : *left, &bias = productRight ? *left : *right;
        if (!rewriter.begin("addmm", add, kWhy)) return changed;
        GraphBuilder builder = rewriter.builder(graph, &add, add);
        const Value fused = builder.call("aten.addmm.default", {Argument(&bias), product.arg(0), product.arg(1)});
        if (builder.error()) return *builder.error();
        fused.node()->provenance().origin.push_back(product.id());
        rewriter.replace(add, *fused.node());
        graph.erase(product);
        changed = true;
    }
    return changed;
}

}  // namespace cutaway
