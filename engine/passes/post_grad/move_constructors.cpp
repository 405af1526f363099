// PST-18: what is made on the CPU and only used on the GPU is made on the GPU. With CUDA graphs (`--enable cudagraphs`;
// PyTorch's triton.cudagraphs and graph_partition) single numbers that the caller passes on the CPU go there too, all
// in one copy.
#include <algorithm>
#include <set>

#include "engine/ir/live_nodes.h"
#include "engine/passes/post_grad/simple_passes.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/refusing.h"

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

/// The GPUs among the values of the graph, by the first value on each; more than two are not looked for.
std::vector<const Node*> gpusOf(const Graph& graph) {
    std::vector<const Node*> found;
    for (const Node& node : graph.nodes()) {
        if (!onGpu(node) || (!found.empty() && found[0]->tensor().device == node.tensor().device)) continue;
        found.push_back(&node);
        if (found.size() == 2) break;
    }
    return found;
}

/// Why the call makes no tensor out of nothing on the CPU, or "".
std::string_view unlessConstructor(const Node& node) {
    if (!node.isCall()) return "it is not a call";
    if (!onCpu(node)) return "it is not made on the CPU";
    if (node.op().isOpaque()) return "it calls what has no row in the op tables";
    const std::string_view name = node.op().name();
    if (!name.starts_with("aten.") && !name.starts_with("prims.")) return "it is not an operator of aten or prims";
    if (node.is(Tag::Random)) return "another device would draw other random numbers";
    if (node.op().schema()->find("device") < 0) return "the operator is not told on which device it makes its result";
    const auto& params = node.op().schema()->params;
    const bool fromNothing =
        std::none_of(params.begin(), params.end(), [](const Param& param) { return param.kind == ParamKind::Tensor; });
    return fromNothing ? "" : "it computes its result from a tensor";
}
bool isConstructor(const Node& node) { return unlessConstructor(node).empty(); }

/// Calls whose result is on the GPU, no matter where this operand is.
bool absorbs(const Node& user) {
    static constexpr std::string_view kOps[] = {"aten.index.Tensor",       "aten.index_put.default",
                                                "aten.index_put_.default", "aten.copy.default",
                                                "aten.copy_.default",      "aten.slice_scatter.default"};
    return onGpu(user) && std::find(std::begin(kOps), std::end(kOps), user.op().name()) != std::end(kOps);
}

bool isCpuScalar(const Node& node) { return onCpu(node) && node.tensor().rank() == 0; }

/// Whether the reader allows its operand to move: its result is on the GPU anyway, it moves along, or the device does
/// not matter to it.
enum class Reader { TakesIn, Moves, Indifferent, Blocks };
/// `scalars`: numbers move, whether made here or passed by the caller.
Reader operandReaderOf(const Node& user, const Node& operand, bool scalars, bool parity) {
    if (user.isOutput())
        return scalars && parity ? Reader::TakesIn
                                 : Reader::Blocks;  // PyTorch moves it, so that the caller gets a GPU tensor
    if (!user.isCall() || user.op().isOpaque()) return Reader::Blocks;
    const std::string& name = user.op().name();
    if (!name.starts_with("aten.") && !name.starts_with("prims.") && name != "operator.getitem") return Reader::Blocks;
    if (absorbs(user)) {
        // With a CPU scalar as value, index_put by a mask runs as masked_fill; a GPU scalar would make it synchronise.
        const bool puts = name.starts_with("aten.index_put");
        const Node* value = puts ? user.arg(2).node() : nullptr;
        bool mask = false;
        if (puts)
            user.arg(1).forEachNode(
                [&](const Node* at) { mask |= at->tensor().dtype == DType::Bool || at->tensor().dtype == DType::I8; });
        return mask && value && onCpu(*value) && value->tensor().rank() == 0 ? Reader::Blocks : Reader::TakesIn;
    }
    if (scalars && user.isCall("aten.copy_.default") && user.arg(0).node() == &operand) return Reader::Indifferent;
    if (scalars && onGpu(user)) {
        const auto fits = [](const Argument& arg) {
            return arg.node() == nullptr || onGpu(*arg.node()) || isCpuScalar(*arg.node());
        };
        if (std::all_of(user.args().begin(), user.args().end(), fits)) return Reader::TakesIn;
    }
    return onCpu(user) && !user.op().mutates() ? Reader::Moves : Reader::Blocks;
}

/// The constructors that reach each other through CPU nodes, and all those nodes. Numbers that the caller passes count
/// as constructors where they may move.
class Group {
  public:
    Group(Node& constructor, bool scalars, bool parity) : m_scalars(scalars), m_parity(parity) { add(constructor); }
    bool movable() const { return m_blocked == nullptr && m_takenIn; }
    bool refuse(const Refusing& refuse) const {
        if (m_blocked == nullptr)
            return refuse("no call on the GPU reads ", m_nodes.size() > 1 ? "what is made of it" : "it");
        if (m_reader == nullptr) return refuse(m_blocked, ", an input on the CPU, would have to move with it");
        if (m_reader->isOutput()) return refuse(m_blocked, " is returned, and the caller expects it on the CPU");
        if (!onGpu(*m_reader)) return refuse(NodeWithKind{m_reader}, " reads ", m_blocked, " and stays on the CPU");
        return refuse(
            NodeWithKind{m_reader}, " reads ", m_blocked,
            ", and is none of the calls on a GPU that take operands from any device: indexing, copies, aten.slice_scatter");
    }
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
            if (isConstructor(*node) || isPassedScalar(*node)) m_constructors.push_back(node);
            else
                for (Node* input : node->inputs()) follow(*input, pending);
            for (Node* user : node->users()) {
                const Reader reader = operandReaderOf(*user, *node, m_scalars, m_parity);
                if (reader == Reader::Blocks && m_blocked == nullptr) {
                    m_blocked = node;
                    m_reader = user;
                }
                m_takenIn |= reader == Reader::TakesIn;
                if (reader == Reader::Moves) pending.push_back(user);
            }
        }
    }
    void follow(Node& input, std::vector<Node*>& pending) {
        if (!onCpu(input)) return;
        if (input.isCall() || isPassedScalar(input)) pending.push_back(&input);
        else if (m_blocked == nullptr) m_blocked = &input;  // an input or attribute stays where it is
    }

    bool isPassedScalar(const Node& node) const { return m_scalars && node.isPlaceholder() && isCpuScalar(node); }

    bool m_scalars, m_parity;
    std::set<NodeId> m_known;
    std::vector<Node*> m_nodes, m_constructors;
    const Node *m_blocked = nullptr,
               *m_reader = nullptr;  // what cannot move, and who reads it; no reader: it is an input
    bool m_takenIn = false;
};

constexpr std::string_view kScalars = "move_scalars_to_cuda", kConstructors = "move_constructors_to_cuda";

/// All numbers that the caller passes and that may move, each with its group.
std::vector<std::pair<Node*, Group>> movableScalars(const Graph& graph, Rewriter& rewriter) {
    std::vector<std::pair<Node*, Group>> out;
    for (Node* input : graph.placeholders()) {
        const Refusing refuse(rewriter, kScalars, *input);
        if (!isCpuScalar(*input)) {
            refuse("it is ", input->type(), ", no single number on the CPU");
            continue;
        }
        Group group(*input, true, rewriter.request().parity);
        if (!group.movable()) group.refuse(refuse);
        else if (!out.empty()) refuse("it moves together with ", out[0].first);
        if (group.movable()) out.emplace_back(input, std::move(group));
    }
    return out;
}
Result<void> moveConstructor(Graph& graph, Node& constructor, Device gpu) {
    graph.setArg(constructor, static_cast<size_t>(constructor.op().schema()->find("device")), gpu);
    CT_TRY(ValueType type, inferCall(constructor.op(), constructor.args()));
    graph.setType(constructor, std::move(type));
    return {};
}
/// One copy per dtype; PyTorch joins all numbers, which changes some of their dtypes.
Result<void> copyScalars(Graph& graph, Rewriter& rewriter, const std::vector<Node*>& scalars, Device gpu) {
    Node* position = graph.first();
    while (position->isPlaceholder() || position->kind() == NodeKind::GetAttr) position = position->next();
    GraphBuilder builder = rewriter.builder(graph, position, *scalars[0]);
    std::vector<Argument> parts;
    std::set<NodeId> made;
    for (Node* scalar : scalars) parts.emplace_back(unsqueeze(builder.value(*scalar), 0));
    const Value joined = builder.call("aten.cat.default", {Argument(std::move(parts))});
    const Value moved = builder.call("prims.device_put.default", {joined, gpu, true});
    const Value items = builder.call("aten.unbind.int", {moved});
    std::vector<Node*> there;
    for (size_t i = 0; i < scalars.size(); ++i) there.push_back(items[static_cast<int64_t>(i)].node());
    if (builder.error()) return *builder.error();
    for (const Node* node : builder.created()) made.insert(node->id());
    for (size_t i = 0; i < scalars.size(); ++i) {
        // A final copy_ into the number writes to the caller's tensor.
        graph.replaceUses(*scalars[i], *there[i], [&](const Node& user) {
            return made.contains(user.id()) || user.isCall("aten.copy_.default");
        });
        for (Node* user : std::vector<Node*>(there[i]->users())) {
            const auto* device = user->isCall("prims.device_put.default") ? user->arg(1).get<Device>() : nullptr;
            if (device == nullptr || !(*device == gpu)) continue;
            Refusing(rewriter, kConstructors, *user)("it copies ", scalars[i],
                                                     ", which goes to the GPU in one copy with its kind");
            rewriter.replace(*user, *there[i]);
        }
    }
    for (Node* node : there) CT_TRY_VOID(retypeReaders(graph, *node));
    return {};
}
/// One rewrite, because numbers and constructors that meet on the CPU move together.
Result<bool> moveScalars(Graph& graph, Rewriter& rewriter, Device gpu) {
    const bool parity = rewriter.request().parity;
    const auto movable = movableScalars(graph, rewriter);
    if (movable.empty()) return false;
    if (rewriter.begin(kScalars, *movable[0].first,
                       "they are only used on the GPU, and CUDA graphs take no numbers from the CPU") != Go::Yes)
        return false;
    std::vector<std::vector<Node*>> copies;
    std::vector<Node*> constructors;
    for (const auto& [scalar, group] : movable) {
        const auto sameCopy = [&, scalar = scalar](const std::vector<Node*>& copy) {
            return parity || copy[0]->tensor().dtype == scalar->tensor().dtype;
        };
        const auto copy = std::find_if(copies.begin(), copies.end(), sameCopy);
        if (copy == copies.end()) copies.push_back({scalar});
        else copy->push_back(scalar);
        for (Node* constructor : group.constructors())
            if (!constructor->isPlaceholder() &&
                std::find(constructors.begin(), constructors.end(), constructor) == constructors.end())
                constructors.push_back(constructor);
    }
    for (Node* constructor : constructors) CT_TRY_VOID(moveConstructor(graph, *constructor, gpu));
    for (const std::vector<Node*>& copy : copies) CT_TRY_VOID(copyScalars(graph, rewriter, copy, gpu));
    for (Node* constructor : constructors) CT_TRY_VOID(retypeReaders(graph, *constructor));
    return true;
}

}  // namespace

Result<bool> moveConstructorsToGpu(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, moveConstructorsToGpu(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    const std::vector<const Node*> gpus = gpusOf(graph);
    const bool scalars = rewriter.request().enabled("cudagraphs") != nullptr;
    const auto refuseAll = [&](std::string_view rule, const auto&... why) {
        for (const Node& node : graph.nodes())
            if (rewriter.watches(node)) Refusing(rewriter, rule, node)(why...);
        return changed;
    };
    if (!scalars) refuseAll(kScalars, "CUDA graphs, which take no numbers from the CPU, are off (--enable cudagraphs)");
    for (const std::string_view rule : {kScalars, kConstructors})
        if (gpus.empty()) refuseAll(rule, "no value of the graph is on a GPU");
        else if (gpus.size() > 1) refuseAll(rule, "there are two GPUs, of ", gpus[0], " and of ", gpus[1]);
    if (gpus.size() != 1) return changed;
    const Device gpu = gpus[0]->tensor().device;
    if (scalars) {
        CT_TRY(const bool moved, moveScalars(graph, rewriter, gpu));
        changed |= moved;
    }
    for (Node* node : LiveNodes(graph)) {
        const Refusing refuse(rewriter, kConstructors, *node);
        if (const std::string_view why = unlessConstructor(*node); !why.empty()) {
            refuse(why);
            continue;
        }
        const Group group(*node, scalars, rewriter.request().parity);
        if (!group.movable()) {
            group.refuse(refuse);
            continue;
        }
        if (rewriter.begin(kConstructors, *node, "it is only used on the GPU") != Go::Yes) return changed;
        for (Node* constructor : group.constructors()) {
            if (constructor != node) Refusing(rewriter, kConstructors, *constructor)("it moves together with ", node);
            CT_TRY_VOID(moveConstructor(graph, *constructor, gpu));
        }
        for (Node* constructor : group.constructors()) CT_TRY_VOID(retypeReaders(graph, *constructor));
        changed = true;
    }
    return changed;
}

}  // namespace cutaway
