#include "engine/passes/remove_noop_ops.h"

#include "engine/ir/infer.h"
#include "engine/ir/live_nodes.h"
#include "engine/rewrite/storage_roots.h"

namespace cutaway {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

/// `start` is absent or 0, `end` is absent or at least the dim's size, `step` is 1.
bool coversDim(const Node& node, const TensorType& source) {
    const InferContext c(node.op(), node.args());
    const auto dim = c.dim("dim", source.rank());
    if (!dim || source.rank() == 0) return false;
    const auto start = node.arg("start").isNone() ? SymInt(0) : symIntOf(node.arg("start")).value_or(SymInt(1));
    const auto end = node.arg("end").isNone() ? SymInt(kToTheEnd) : symIntOf(node.arg("end")).value_or(SymInt(0));
    const SymInt& size = source.sizes[static_cast<size_t>(*dim)];
    const bool whole = end == SymInt(kToTheEnd) || knownLessEqual(size, end);
    return start == SymInt(0) && whole && node.arg("step").asInt() == 1;
}

bool allEqual(const Argument& list, int64_t value) {
    const auto* items = list.list();
    return items && std::all_of(items->begin(), items->end(), [&](const Argument& item) { return item.asInt() == value; });
}

bool always(const Node&, const TensorType&) { return true; }
bool isInteger(const Node&, const TensorType& source) { return isIntegral(source.dtype, true); }

struct Noop {
    std::string_view op;
    size_t source;  // operand that the call would return; for cat the first item of it
    bool (*condition)(const Node& node, const TensorType& source);
    std::string_view why;
};
// Packets whose overloads all share the rule are matched by packet.
constexpr Noop kNoops[] = {
    {"aten.slice.Tensor", 0, coversDim, "the slice covers the whole dim"},
    {"aten.slice_scatter.default", 1, [](const Node& node, const TensorType& source) {
         return node.arg(0).node() && node.arg(0).node()->tensor().sizes == source.sizes && coversDim(node, source);
     }, "the slice that is written covers the whole tensor"},
    {"aten.repeat.default", 0, [](const Node& node, const TensorType&) { return allEqual(node.arg("repeats"), 1); }, "every dim is repeated once"},
    {"aten.constant_pad_nd.default", 0, [](const Node& node, const TensorType&) { return allEqual(node.arg("pad"), 0); }, "the padding is empty"},
    {"prims.convert_element_type.default", 0, always, "it has that dtype already"},
    {"prims.device_put.default", 0, always, "it is on that device already"},
    {"aten.ceil.default", 0, isInteger, "integers are whole"},
    {"aten.floor.default", 0, isInteger, "integers are whole"},
    {"aten.round.default", 0, isInteger, "integers are whole"},
    {"aten.trunc.default", 0, isInteger, "integers are whole"},
    {"aten.pow.Tensor_Scalar", 0, [](const Node& node, const TensorType&) {
         const auto* exponent = node.arg("exponent").get<int64_t>();
         return exponent && *exponent == 1;
     }, "the exponent is 1"},
    {"aten.cat.default", 0, [](const Node& node, const TensorType&) { return node.arg(0).list() && node.arg(0).list()->size() == 1; },
     "there is one tensor to concatenate"},
    {"aten.view.default", 0, always, "the shape is the same"},
    {"aten.view.dtype", 0, always, "the dtype is the same"},
    {"aten.copy.default", 1, always, "a copy of the same type"},
    {"aten.alias.default", 0, always, "an alias is the tensor itself"},
    {"aten.clone.default", 0, always, "a copy of the same type"},
};

const Noop* findNoop(const Node& node) {
    if (!node.isCall() || node.op().isOpaque()) return nullptr;
    for (const Noop& row : kNoops)
        if (row.op == node.op().name()) return &row;
    return nullptr;
}

}  // namespace

std::vector<std::string_view> noopRules() {
    std::vector<std::string_view> names;
    for (const Noop& row : kNoops) names.push_back(row.op);
    return names;
}

Result<bool> removeNoopOps(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, removeNoopOps(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    StorageRoots storages(graph);
    for (Node* node : LiveNodes(graph)) {
        const Noop* noop = findNoop(*node);
        if (noop == nullptr || !node->type().tensor()) continue;
        const Argument& operand = node->arg(noop->source);
        Node* source = operand.list() && !operand.list()->empty() ? operand.list()->front().node() : operand.node();
        if (source == nullptr || !source->type().tensor()) continue;
        if (!node->tensor().sameMeta(source->tensor()) || !noop->condition(*node, source->tensor())) continue;
        if (!storages.mayReplace(*node, *source)) continue;
        // PyTorch does not look; then elements from elsewhere are read.
        if (!(node->tensor().offset == source->tensor().offset) && !rewriter.options().parity && storageIsRead(*node)) continue;
        if (rewriter.disabled(node->op().name())) continue;
        if (!rewriter.begin(node->op().name(), *node, noop->why)) return changed;
        // PyTorch looks at the storages as they were before the pass, so two outputs may come to share one: only with parity.
        if (!rewriter.options().parity) storages.merge(*node, *source);
        rewriter.replace(*node, *source);
        changed = true;
    }
    return changed;
}

}  // namespace cutaway
