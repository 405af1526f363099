// PST-18: what is made on the CPU and only used on the GPU is made on the GPU.
#include <algorithm>
#include <set>

#include "engine/passes/post_grad/simple_passes.h"
#include "engine/ir/live_nodes.h"
#include "engine/rewrite/graph_order.h"

namespace cutaway {
namespace {

bool onGpu(const Node& node) {
    const TensorType* type = node.type().tensor();
    return type && type->device.type == DeviceType::Cuda;
}
bool onCpu(const Node& node) {
    const TensorType* type = node.type().tensor();
    return type && type->device.type == DeviceType::Cpu;
}

/// The one GPU among the values of the graph.
std::optional<Device> onlyGpu(const Graph& graph) {
    std::optional<Device> found;
    for (const Node& node : graph.nodes()) {
        if (!onGpu(node)) continue;
        if (found && !(*found == node.tensor().device)) return std::nullopt;
        found = node.tensor().device;
    }
    return found;
}

bool isConstructor(const Node& node) {
    if (!node.isCall() || node.op().isOpaque() || !onCpu(node) || node.is(Tag::Random)) return false;
    const std::string_view name = node.op().name();
    if (!name.starts_with("aten.") && !name.starts_with("prims.")) return false;
    const int device = node.op().schema()->find("device");
    if (device < 0) return false;
    const auto& params = node.op().schema()->params;
    return std::none_of(params.begin(), params.end(), [](const Param& param) { return param.kind == ParamKind::Tensor; });
}

/// Calls whose result is on the GPU whatever device this operand is on.
bool absorbs(const Node& user) {
    static constexpr std::string_view kOps[] = {"aten.index.Tensor", "aten.index_put.default", "aten.index_put_.default",
                                                "aten.copy.default", "aten.copy_.default", "aten.slice_scatter.default"};
    return onGpu(user) && std::find(std::begin(kOps), std::end(kOps), user.op().name()) != std::end(kOps);
}

/// Whether the reader lets its operand move: it takes it in, or moves itself.
enum class Reader { TakesIn, Moves, Blocks };
Reader readerOf(const Node& user) {
    if (!user.isCall() || user.op().isOpaque()) return Reader::Blocks;
    const std::string& name = user.op().name();
    if (!name.starts_with("aten.") && !name.starts_with("prims.") && name != "operator.getitem") return Reader::Blocks;
    if (absorbs(user)) {
        // Boolean and byte indices with a CPU scalar to put are counted on the CPU.
        const bool puts = name.starts_with("aten.index_put");
        const Node* value = puts ? user.arg(2).node() : nullptr;
        bool mask = false;
        if (puts) user.arg(1).forEachNode([&](const Node* at) { mask |= at->tensor().dtype == DType::Bool || at->tensor().dtype == DType::I8; });
        return mask && value && onCpu(*value) && value->tensor().rank() == 0 ? Reader::Blocks : Reader::TakesIn;
    }
    return onCpu(user) && !user.op().mutates() ? Reader::Moves : Reader::Blocks;
}

/// The constructors that reach each other through CPU nodes, and all those nodes; empty if something holds them back.
class Group {
  public:
    explicit Group(Node& constructor) { add(constructor); }
    bool movable() const { return m_movable && m_takenIn; }
    const std::vector<Node*>& nodes() const { return m_nodes; }
    const std::vector<Node*>& constructors() const { return m_constructors; }

  private:
    void add(Node& first) {
        std::vector<Node*> pending = {&first};
        while (!pending.empty()) {
            Node* node = pending.back();
            pending.pop_back();
            if (!m_known.insert(node->id()).second) continue;
            m_nodes.push_back(node);
            if (isConstructor(*node)) m_constructors.push_back(node);
            else for (Node* input : node->inputs()) follow(*input, pending);
            for (Node* user : node->users()) {
                const Reader reader = readerOf(*user);
                m_movable &= reader != Reader::Blocks;
                m_takenIn |= reader == Reader::TakesIn;
                if (reader == Reader::Moves) pending.push_back(user);
            }
        }
    }
    void follow(Node& input, std::vector<Node*>& pending) {
        if (!onCpu(input)) return;
        if (input.isCall()) pending.push_back(&input);
        else m_movable = false;   // an input or attribute stays where it is
    }

    std::set<NodeId> m_known;
    std::vector<Node*> m_nodes, m_constructors;
    bool m_movable = true, m_takenIn = false;
};

}  // namespace

Result<bool> moveConstructorsToGpu(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, moveConstructorsToGpu(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    const auto gpu = onlyGpu(graph);
    if (!gpu) return changed;
    for (Node* node : LiveNodes(graph)) {
        if (!isConstructor(*node)) continue;
        const Group group(*node);
        if (!group.movable()) continue;
        if (!rewriter.begin("move_constructors_to_cuda", *node, "it is only used on the GPU")) return changed;
        for (Node* constructor : group.constructors()) {
            graph.setArg(*constructor, static_cast<size_t>(constructor->op().schema()->find("device")), *gpu);
            CT_TRY(ValueType type, inferCall(constructor->op(), constructor->args()));
            graph.setType(*constructor, std::move(type));
        }
        for (Node* constructor : group.constructors()) CT_TRY_VOID(retypeReaders(graph, *constructor));
        changed = true;
    }
    return changed;
}

}  // namespace cutaway
