#include "engine/passes/execution_modes.h"

#include <algorithm>

#include "engine/autograd/expand.h"
#include "engine/autograd/gradient_flow.h"
#include "engine/ir/infer.h"

namespace cutaway {
namespace {

/// The last part of a dotted name, since PyTorch has moved these functions between modules.
std::string_view functionOf(const Node& node) {
    const std::string_view name = node.isCall() ? std::string_view(node.op().name()) : std::string_view();
    return name.starts_with("torch.") ? name.substr(name.rfind('.') + 1) : std::string_view();
}

/// _enter_autocast(device, dtype, enabled, cache_enabled)
void enterAutocast(const Node& node, ModeState& state) {
    const auto* text = node.args().empty() ? nullptr : node.arg(0).get<std::string>();
    const auto device = text ? deviceFromText(*text) : std::nullopt;
    if (!device) return;
    const bool enabled = node.args().size() < 3 || node.arg(2).asInt().value_or(1) != 0;
    const auto* dtype = node.args().size() < 2 ? nullptr : node.arg(1).get<DType>();
    state.autocast.erase(device->type);
    if (enabled)
        state.autocast.emplace(device->type, dtype                             ? *dtype
                                             : device->type == DeviceType::Cpu ? DType::BF16
                                                                               : DType::F16);
}

/// A product of full-precision operands that Dynamo's graph types in half precision: autocast was on around the whole
/// program, which the graph says nowhere else.
std::optional<std::pair<DeviceType, DType>> surroundingAutocast(const Module& module) {
    constexpr std::string_view kProducts[] = {
        "linear", "matmul", "bmm", "conv1d", "conv2d", "conv3d", "scaled_dot_product_attention"};
    for (const Node& node : module.graph().nodes()) {
        if (functionOf(node) == "_enter_autocast") return std::nullopt;
        const TensorType* type = node.isCall() && node.op().isOpaque() ? node.type().tensor() : nullptr;
        if (type == nullptr || (type->dtype != DType::BF16 && type->dtype != DType::F16)) continue;
        const std::string& name = node.op().name();
        if (std::find(std::begin(kProducts), std::end(kProducts), name.substr(name.rfind('.') + 1)) ==
            std::end(kProducts))
            continue;
        const std::vector<Node*> inputs = node.inputs();
        const auto isFull = [](const Node* input) {
            return input->type().tensor() && input->tensor().dtype == DType::F32;
        };
        if (!inputs.empty() && std::all_of(inputs.begin(), inputs.end(), isFull))
            return std::pair{type->device.type, type->dtype};
    }
    return std::nullopt;
}

}  // namespace

void followSwitch(const Node& node, ModeState& state) {
    if (functionOf(node) == "_set_grad_enabled" && !node.args().empty())
        state.gradients = node.arg(0).asInt().value_or(1) != 0;
}

ExecutionModes::ExecutionModes(Module& module, Rewriter& rewriter) : m_rewriter(rewriter) {
    ModeState state;
    if (const auto around = surroundingAutocast(module)) state.autocast.insert(*around);
    findStates(module, state);
}

/// A body runs in the modes of the call that names it.
void ExecutionModes::findStates(const Module& module, ModeState state) {
    m_starts.emplace(&module.graph(), state);
    std::vector<std::pair<const Node*, ModeState>> entered;
    for (const Node& node : module.graph().nodes()) {
        const std::string_view function = functionOf(node);
        if (function.starts_with("_enter_")) entered.emplace_back(&node, state);
        followSwitch(node, state);
        if (function == "_enter_autocast") enterAutocast(node, state);
        if (function == "_enter_inference_mode") state.gradients = false;
        if (function.starts_with("_exit_"))
            for (const auto& [enter, before] : entered)
                if (!node.args().empty() && node.arg(0).node() == enter) state = before;
        for (const Argument& arg : node.args())
            if (const auto* reference = arg.get<SubgraphRef>())
                if (const Module* body = module.subgraph(reference->name); body && !m_starts.contains(&body->graph()))
                    findStates(*body, state);
    }
}

bool isModeSwitch(const Node& node) {
    constexpr std::string_view kSwitches[] = {"_enter_autocast", "_exit_autocast", "_enter_inference_mode",
                                              "_exit_inference_mode", "_set_grad_enabled"};
    return std::find(std::begin(kSwitches), std::end(kSwitches), functionOf(node)) != std::end(kSwitches);
}

void ExecutionModes::begin(Module& module) {
    m_module = &module;
    const auto found = m_starts.find(&module.graph());
    m_state = found == m_starts.end() ? ModeState() : found->second;
    m_entered.clear();
    m_silent.clear();
}

bool ExecutionModes::take(Node& node) {
    const std::string_view function = functionOf(node);
    Graph& graph = m_module->graph();
    if (function == "_enter_autocast" || function == "_enter_inference_mode") {
        m_entered.emplace_back(&node, m_state);
        if (function == "_enter_autocast") enterAutocast(node, m_state);
        else m_state.gradients = node.args().empty() || node.arg(0).asInt().value_or(1) == 0;
        return true;  // its exit names it
    }
    if (function == "_exit_autocast" || function == "_exit_inference_mode") {
        Node* const enter = node.args().empty() ? nullptr : node.arg(0).node();
        m_rewriter.record(node.op().name(), graph, node.name(), node.id());
        graph.erase(node);
        const auto found =
            std::find_if(m_entered.begin(), m_entered.end(), [&](const auto& each) { return each.first == enter; });
        if (found == m_entered.end()) return true;
        m_state = found->second;
        m_entered.erase(found);
        if (!enter->hasUsers()) graph.erase(*enter);
        return true;
    }
    if (function != "_set_grad_enabled" || node.hasUsers()) return false;
    followSwitch(node, m_state);
    m_rewriter.record(node.op().name(), graph, node.name(), node.id());
    graph.erase(node);
    return true;
}

Result<void> ExecutionModes::cast(Node& call) {
    const bool ofSilent =
        call.isCall("operator.getitem") && call.arg(0).node() && m_silent.contains(call.arg(0).node()->id());
    if (!m_state.gradients || ofSilent) m_silent.insert(call.id());
    if (m_state.autocast.empty() || !call.isCall() || call.op().isOpaque()) return {};
    const auto listed = [&](const auto& each) {
        return autocastPolicy(call.op(), each.first) != AutocastPolicy::Other;
    };
    if (std::any_of(m_state.autocast.begin(), m_state.autocast.end(), listed)) {
        Node* const before = call.previous();
        CT_TRY_VOID(autocastCall(call, m_state.autocast, m_rewriter.builder(call.graph(), &call, call)));
        for (Node* made = before ? before->next() : call.graph().first(); made != &call && !m_state.gradients;
             made = made->next())
            m_silent.insert(made->id());
        return {};
    }
    // What the operator is written as runs in the region, too.
    const OpDef* def = call.op().def();
    if (def == nullptr || !def->decompose || def->expand != Expand::Composite) return {};
    CT_TRY_VOID(autocastCall(call, m_state.autocast, m_rewriter.builder(call.graph(), &call, call)));
    Graph& graph = call.graph();
    const uint32_t fresh = graph.idLimit();
    CT_TRY(const bool expanded, expandCall(call, m_rewriter));
    if (!expanded) return {};
    // By id, since expanding one call may replace others (the items of its tuple).
    for (uint32_t slot = fresh, end = graph.idLimit(); slot < end; ++slot) {
        Node* node = graph.find(NodeId{slot});
        if (node == nullptr || !node->isCall()) continue;
        if (auto type = inferCall(node->op(), node->args()); type && !type->isOpaque())
            graph.setType(*node, std::move(*type));
        CT_TRY_VOID(cast(*node));
    }
    return {};
}

Result<void> ExecutionModes::finish() {
    for (const auto& [enter, before] : m_entered)
        if (!enter->hasUsers()) m_module->graph().erase(*enter);
    m_entered.clear();
    if (m_silent.empty() || m_rewriter.request().mode != Mode::Training) return {};
    const std::vector<bool> flow = gradientFlow(*m_module);
    for (Node* node : m_module->graph().nodeList()) {
        if (!m_silent.contains(node->id()) || index(node->id()) >= flow.size() || !flow[index(node->id())]) continue;
        if (m_rewriter.outOfFuel() || m_rewriter.cancelled()) return {};
        const bool mutates = node->isCall() && node->op().mutates();
        if (!mutates && !node->type().tensor()) continue;
        CT_TRY_VOID(mutates ? detachOperands(*node, flow) : detachResult(*node));
    }
    return {};
}

Result<void> ExecutionModes::detachOperands(Node& mutation, const std::vector<bool>& flow) {
    const auto flows = [&](const Node* node) { return index(node->id()) < flow.size() && flow[index(node->id())]; };
    GraphBuilder builder = m_rewriter.builder(m_module->graph(), &mutation, mutation);
    std::vector<Argument> args = mutation.args();
    bool written = false, silent = true;
    args[0].forEachNode([&](Node* target) {
        silent &= m_silent.contains(target->id());
        written |= flows(target) && !m_silent.contains(target->id());
    });
    if (silent) return {};
    if (written)
        return unsupported("writes in place, in a region without gradients, to a tensor that has a gradient",
                           mutation.name(), {"write to a detached tensor, or compile for inference"});
    for (size_t i = 1; i < args.size(); ++i)
        args[i] = args[i].mapNodes([&](Node* operand) {
            return flows(operand) ? builder.call("aten.detach.default", {Argument(operand)}).node() : operand;
        });
    if (builder.error()) return *builder.error();
    if (builder.created().empty()) return {};
    m_module->graph().setArgs(mutation, std::move(args));
    m_rewriter.record(kSetGradEnabled, m_module->graph(), mutation.name(), mutation.id());
    return {};
}

Result<void> ExecutionModes::detachResult(Node& node) {
    const auto isInside = [&](const Node& user) { return m_silent.contains(user.id()); };
    if (std::all_of(node.users().begin(), node.users().end(), [&](const Node* user) { return isInside(*user); }))
        return {};
    GraphBuilder builder = m_rewriter.builder(m_module->graph(), node.next(), node);
    Node* const detached = builder.call("aten.detach.default", {Argument(&node)}).node();
    if (builder.error()) return *builder.error();
    m_module->graph().replaceUses(node, *detached,
                                  [&](const Node& user) { return isInside(user) || &user == detached; });
    m_rewriter.record(kSetGradEnabled, m_module->graph(), node.name(), node.id());
    return {};
}

}  // namespace cutaway
