// The walk over a module that replaces its Python calls.
#include <unordered_map>

#include "engine/ops/torch/python_call.h"

namespace cutaway {
namespace {

bool isPythonName(std::string_view name) {
    for (std::string_view prefix : {"torch.", "operator.", "math.", "builtins.", "torch__inductor_",
                                    "torch__dynamo_compiled_autograd_ops_validate_outputs", "torch_Tensor_"})
        if (name.starts_with(prefix)) return true;
    return false;
}

class Lowering {
  public:
    Lowering(Module& module, const TorchLoweringHooks& hooks)
        : m_module(module), m_graph(module.graph()), m_hooks(hooks) {}

    Result<bool> run() {
        for (auto& [name, body] : m_module.subgraphs) {
            CT_TRY(const bool inner, Lowering(*body, m_hooks).run());
            m_changed |= inner;
        }
        m_hooks.begin(m_module);
        // By id: what a call becomes may take the place of others (the items of a tuple).
        std::vector<NodeId> ids;
        for (const Node& node : m_graph.nodes()) ids.push_back(node.id());
        for (const NodeId id : ids) {
            Node* const node = m_graph.find(id);
            if (m_hooks.stop()) return m_changed;
            if (node != nullptr) CT_TRY_VOID(visit(*node));
        }
        CT_TRY(const bool more, edits([&] { return m_hooks.end(); }));
        return m_changed || more;
    }

  private:
    Result<void> visit(Node& node) {
        if (!node.isCall() && !node.isOutput()) return {};
        bool taken = false;
        CT_TRY(const bool switched, edits([&]() -> Result<void> {
                   taken = node.isCall() && m_hooks.takes(node);
                   return {};
               }));
        m_changed |= switched;
        if (taken) return {};
        if (node.isCall() && (isTorchCall(node) || readsKnownTuple(node) || readsKnownTensor(node))) return lower(node);
        refresh(node);
        if (!node.isCall()) return {};
        const std::string name = node.name();
        const NodeId id = node.id();
        CT_TRY(const bool edited, edits([&] { return m_hooks.placed(node); }));
        if (edited) finish("autocast", name, id);
        return {};
    }
    /// Whether a hook has edited the graph.
    template <class Hook>
    Result<bool> edits(Hook&& hook) {
        const uint64_t before = m_graph.edits();
        CT_TRY_VOID(hook());
        return m_graph.edits() != before;
    }

    /// Arithmetic on a float that turned out to be a tensor.
    bool readsKnownTensor(const Node& node) const {
        const std::vector<Node*> inputs = node.is(Tag::Symbolic) ? node.inputs() : std::vector<Node*>();
        return std::any_of(inputs.begin(), inputs.end(), [&](const Node* input) {
            const auto found = m_known.find(input);
            return found != m_known.end() && torchcalls::tensorOf(found->second);
        });
    }
    bool readsKnownTuple(const Node& node) const {
        const Node* object = node.isCall("operator.getitem") ? node.arg(0).node() : nullptr;
        return object && m_known.contains(object);
    }

    /// Values that are known, in place of the nodes that compute them.
    Argument substituted(const Argument& argument) const {
        if (const Node* node = argument.node()) {
            const auto found = m_known.find(node);
            return found == m_known.end() ? argument : found->second;
        }
        if (const auto* list = argument.get<ArgumentList>()) {
            ArgumentList out{{}, list->tuple};
            for (const Argument& item : list->items) out.items.push_back(substituted(item));
            return Argument(std::move(out));
        }
        if (const auto* slice = argument.get<std::shared_ptr<const ArgumentSlice>>()) {
            const ArgumentSlice& parts = **slice;
            return Argument(std::make_shared<const ArgumentSlice>(
                ArgumentSlice{substituted(parts.start), substituted(parts.stop), substituted(parts.step)}));
        }
        return argument;
    }

    /// Calls that stay: known values come in, and the type follows the operands' new types.
    void refresh(Node& node) {
        bool reads = false;
        for (const Node* input : node.inputs()) reads |= m_known.contains(input);
        if (reads) {
            const std::vector<Node*> before = node.inputs();
            std::vector<Argument> args;
            for (const Argument& arg : node.args())
                args.push_back(node.is(Tag::Symbolic) ? symbolAsNode(substituted(arg)) : substituted(arg));
            m_graph.setArgs(node, std::move(args));
            finish("known_value", node.name(), node.id());
            dropKnown(before);
        }
        if (!m_changed || !node.isCall() || node.op().isOpaque()) return;
        if (auto type = inferCall(node.op(), node.args()); type && !type->isOpaque() && !sameType(*type, node.type()))
            m_graph.setType(node, std::move(*type));
    }

    /// A size's symbol as the placeholder that is given it, where arithmetic on sizes stays in the graph.
    Argument symbolAsNode(const Argument& argument) const {
        const auto* expr = argument.get<Expr>();
        if (expr == nullptr || (*expr)->kind != ExprKind::Symbol) return argument;
        for (Node* input : m_graph.placeholders())
            if (const SymType* type = input->type().sym(); type && type->expr == *expr) return Argument(input);
        return argument;
    }

    void finish(const std::string& rule, const std::string& name, NodeId id) {
        m_hooks.done(rule, m_graph, name, id);
        m_changed = true;
    }

    /// Known values vanish with their last reader.
    void dropKnown(std::vector<Node*> candidates) {
        while (!candidates.empty()) {
            Node* node = candidates.back();
            candidates.pop_back();
            if (node->hasUsers() || !m_known.contains(node)) continue;
            for (Node* input : node->inputs()) candidates.push_back(input);
            std::sort(candidates.begin(), candidates.end(),
                      [](const Node* a, const Node* b) { return a->id() < b->id(); });
            candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
            std::erase(candidates, node);
            m_known.erase(node);
            m_graph.erase(*node);
        }
    }

    /// x.item(), typed with a number or a symbol: the number, or a call that keeps the symbol. A symbol for a float
    /// stands for the tensor itself, which computes alike and stays on its device.
    bool lowerItem(Node& node) {
        const bool item = node.op().isOpaque() && node.op().style() == Op::Style::Method &&
                          node.op().name() == "item" && node.args().size() == 1;
        const SymType* type = item ? node.type().sym() : nullptr;
        const Argument tensor = item ? substituted(node.arg(0)) : Argument();
        if (type == nullptr || !type->expr || !tensor.node() || !tensor.node()->type().tensor()) return false;
        const bool isTensor = isFloating(tensor.node()->tensor().dtype) && tensor.node()->tensor().rank() == 0;
        if (type->expr->kind == ExprKind::Float) return known(node, Argument(type->expr->real));
        if (type->expr->kind == ExprKind::Int) return known(node, Argument(type->expr->integer));
        if (isTensor) return known(node, tensor);
        m_graph.setOp(node, requireOp("aten.item.default"), {tensor}, node.type());
        finish("Tensor.item", node.name(), node.id());
        return true;
    }
    /// Its readers take the value when they are visited; without readers the node goes.
    bool known(Node& node, Argument value) {
        if (node.hasUsers()) {
            m_known.emplace(&node, std::move(value));
            return true;
        }
        const std::string name = node.name();
        const NodeId id = node.id();
        m_graph.erase(node);
        finish("Tensor.item", name, id);
        return true;
    }

    Result<void> lower(Node& node) {
        if (lowerItem(node)) return {};
        std::vector<Argument> args;
        for (const Argument& arg : node.args()) args.push_back(substituted(arg));
        NamedArguments keywords;
        for (const auto& [key, value] : node.kwargs()) keywords.emplace_back(key, substituted(value));
        GraphBuilder builder = m_hooks.builder(m_graph, node);
        if (node.type().tensor()) builder.setFoundType(node.type());
        auto result =
            resolveTorchCall(builder, node.op(), std::move(args), std::move(keywords), &m_module, m_hooks.autocast());
        if (!result) {
            Error error = std::move(result).error();
            error.where = node.name();
            return error;
        }
        const std::string rule = node.op().name(), name = node.name();
        const NodeId id = node.id();
        const std::vector<Node*> inputs = node.inputs();
        std::vector<NodeId> ids;
        for (const Node* each : builder.created()) ids.push_back(each->id());
        ids.push_back(id);
        Node* made = result->node();
        if (made == nullptr && builder.created().empty() && node.hasUsers()) {
            m_known.emplace(&node, std::move(*result));  // its readers will take the value
            return {};
        }
        place(node, std::move(*result), builder);
        finish(rule, name, id);
        dropKnown(inputs);
        for (const NodeId each : ids)
            if (Node* call = m_graph.find(each)) CT_TRY_VOID(m_hooks.placed(*call));
        return {};
    }

    /// Puts the result in the node's place.
    void place(Node& node, Argument result, GraphBuilder& builder) {
        Node* made = result.node();
        const auto& created = builder.created();
        if (made == nullptr) {
            if (node.hasUsers()) m_known.emplace(&node, std::move(result));
            else m_graph.erase(node);
            return;
        }
        const bool fresh = std::find(created.begin(), created.end(), made) != created.end();
        if (fresh && !made->hasUsers()) {
            // The node becomes the last call made for it, and keeps its id and name.
            m_graph.setOp(node, made->op(), made->args(), made->type());
            m_graph.erase(*made);
            return;
        }
        m_graph.replaceUses(node, *made);
        const std::string name = node.name();
        m_graph.erase(node);
        if (fresh) m_graph.rename(*made, name);
    }

    Module& m_module;
    Graph& m_graph;
    const TorchLoweringHooks& m_hooks;
    std::unordered_map<const Node*, Argument> m_known;  // looked up, never iterated
    bool m_changed = false;
};

}  // namespace

bool isTorchCall(const Node& node) {
    if (!node.isCall()) return false;
    if (effectOf(node)) return true;
    if (node.op().name() == "operator.getitem") {
        const Node* object = node.arg(0).node();
        return object == nullptr || object->type().tensor() || (torchcalls::knownValue(node.arg(0)).node() == nullptr);
    }
    if (!node.op().isOpaque()) {
        // Arithmetic on symbols has rows of its own and stays; on anything else it is a Python call.
        if (!node.op().is(Tag::Symbolic) || !isPythonName(node.op().name())) return false;
        const std::vector<Node*> inputs = node.inputs();
        if (std::any_of(node.args().begin(), node.args().end(), [](const Argument& arg) { return arg.get<Expr>(); }))
            return false;
        const auto symbolic = [](const Node* input) {
            return input->type().sym() && !symbolsOf(input->type().sym()->expr).empty();
        };
        return inputs.empty() || !std::all_of(inputs.begin(), inputs.end(), symbolic);
    }
    return node.op().style() == Op::Style::Method || (node.op().style() == Op::Style::Function &&
                                                      isPythonName(node.op().name()) && !isNamelessLowering(node.op()));
}
bool isNamelessLowering(const Op& op) {
    return op.isOpaque() && op.style() == Op::Style::Function && op.name().starts_with("torch__inductor_") &&
           torchSignatures(op).empty();
}

bool hasTorchCalls(const Module& module) {
    for (const Node& node : module.graph().nodes())
        if (isTorchCall(node)) return true;
    return std::any_of(module.subgraphs.begin(), module.subgraphs.end(),
                       [](const auto& each) { return hasTorchCalls(*each.second); });
}

Result<bool> lowerTorchCalls(Module& module, const TorchLoweringHooks& hooks) { return Lowering(module, hooks).run(); }

}  // namespace cutaway
