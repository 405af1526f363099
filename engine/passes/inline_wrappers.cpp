#include "engine/passes/inline_wrappers.h"

#include <map>

#include "engine/ir/verify.h"
#include "engine/ops/op_registry.h"
#include "engine/passes/execution_modes.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr std::string_view kWithGradients = "higher_order.wrap_with_set_grad_enabled",
                           kWithAutocast = "higher_order.wrap_with_autocast";
/// Regions that the backward computes again.
constexpr std::string_view kCheckpoint = "higher_order.tag_activation_checkpoint",
                           kWrappedCheckpoint = "higher_order.wrap_activation_checkpoint";
constexpr std::string_view kWrappers[] = {
    kWithGradients,     kWithAutocast,       "higher_order.hints_wrapper", kCheckpoint,
    kWrappedCheckpoint, "higher_order.wrap", "higher_order.strict_mode"};

/// A function with a derivative of its own, which is not needed without gradients. Its graph returns its results and
/// the values kept for the derivative.
constexpr std::string_view kOwnDerivative = "higher_order.autograd_function_apply";

constexpr std::string_view kInvoke = "higher_order.invoke_subgraph";

std::string_view plainName(const Node& node) {
    std::string_view name = node.isCall() ? std::string_view(node.op().name()) : std::string_view();
    if (name.ends_with(".default")) name.remove_suffix(8);
    return name;
}
/// The name, without overload, of a call that is inlined; empty for other calls.
using NameOf = std::string_view (*)(const Node& node, Mode mode);

std::string_view invokeName(const Node& node, Mode) {
    return plainName(node) == kInvoke ? kInvoke : std::string_view();
}
std::string_view wrapperName(const Node& node, Mode mode) {
    const std::string_view name = plainName(node);
    if (name == kInvoke && mode != Mode::Inference)
        return kInvoke;  // what is called is differentiated together with its caller
    if (name == kOwnDerivative && mode != Mode::Training) return kOwnDerivative;
    return std::find(std::begin(kWrappers), std::end(kWrappers), name) == std::end(kWrappers) ? std::string_view()
                                                                                              : name;
}

/// A wrapper's call: its graph, and what that graph is given.
struct Wrapped {
    std::string bodyName;
    const Module* body = nullptr;
    size_t position = 0;  // of the graph among the arguments
    std::vector<Argument> operands;
};

/// Lists one by one; false for a dictionary of values.
bool flatten(const Argument& argument, std::vector<Argument>& out) {
    if (const auto* items = argument.list())
        return std::all_of(items->begin(), items->end(), [&](const Argument& item) { return flatten(item, out); });
    if (const auto* dict = argument.get<std::shared_ptr<const ArgumentDict>>()) return (*dict)->items.empty();
    out.push_back(argument);
    return true;
}

Result<Wrapped> readWrapped(const Module& module, const Node& call) {
    Wrapped wrapped;
    const auto fail = [&](const std::string& what) {
        return invalidInput(call.op().name() + ": " + what, call.name());
    };
    while (wrapped.position < call.args().size() && !call.arg(wrapped.position).get<SubgraphRef>()) ++wrapped.position;
    if (wrapped.position == call.args().size()) return fail("it names no graph");
    wrapped.bodyName = call.arg(wrapped.position).get<SubgraphRef>()->name;
    wrapped.body = module.subgraph(wrapped.bodyName);
    if (wrapped.body == nullptr) return fail("graph '" + wrapped.bodyName + "' is not in the file");
    size_t first = wrapped.position + 1;
    const bool identified = plainName(call) == kInvoke && first < call.args().size() &&
                            (call.arg(first).get<std::string>() || call.arg(first).isNone());
    if (identified) ++first;
    for (size_t i = first; i < call.args().size(); ++i)
        if (!call.arg(i).get<SubgraphRef>() && !flatten(call.arg(i), wrapped.operands))
            return fail("its graph is given values by name");
    const size_t inputs = wrapped.body->graph().placeholders().size();
    if (inputs != wrapped.operands.size())
        return fail("its graph takes " + std::to_string(inputs) + " values, and is given " +
                    std::to_string(wrapped.operands.size()));
    return wrapped;
}

/// Arguments with their nodes replaced by other values, which need not be nodes.
using Twins = std::map<const Node*, Argument>;
Argument exchanged(const Argument& argument, const Twins& twins) {
    if (const Node* node = argument.node()) {
        const auto found = twins.find(node);
        return found == twins.end() ? argument : found->second;
    }
    if (const auto* list = argument.get<ArgumentList>()) {
        ArgumentList out{{}, list->tuple};
        for (const Argument& item : list->items) out.items.push_back(exchanged(item, twins));
        return Argument(std::move(out));
    }
    if (const auto* slice = argument.get<std::shared_ptr<const ArgumentSlice>>())
        return Argument(std::make_shared<const ArgumentSlice>(ArgumentSlice{
            exchanged((*slice)->start, twins), exchanged((*slice)->stop, twins), exchanged((*slice)->step, twins)}));
    return argument;
}

void sayWrappersThatStay(const Module& module, Rewriter& rewriter, NameOf nameOf, bool inside) {
    for (const Node& node : module.graph().nodes()) {
        const Refusing no(rewriter, rewriter.pass(), node);
        if (nameOf(node, rewriter.request().mode).empty()) no("it is not a call that only wraps a graph");
        else if (inside) no("the graph that it stands in is written where it is called first");
    }
    for (const auto& [name, body] : module.subgraphs) sayWrappersThatStay(*body, rewriter, nameOf, true);
}

class Inlining {
  public:
    Inlining(Module& module, Rewriter& rewriter, NameOf nameOf)
        : m_module(module), m_graph(module.graph()), m_rewriter(rewriter), m_nameOf(nameOf) {}

    Result<bool> run(const ModeState& start) {
        ModeState state = start;
        for (Node* node = m_graph.first(); node != nullptr;) {
            followSwitch(*node, state);
            const std::string_view name = m_nameOf(*node, m_rewriter.request().mode);
            if (name.empty()) {
                node = node->next();
                continue;
            }
            CT_TRY(Wrapped wrapped, readWrapped(m_module, *node));
            if (m_rewriter.begin(m_rewriter.pass(), *node, "its graph runs where it stands") != Go::Yes)
                return m_changed;
            m_changed = true;
            CT_TRY(node, inlineCall(*node, name, wrapped, state));
        }
        // The bodies of calls that stay: cond, while_loop, map, scan.
        for (auto& [name, body] : m_module.subgraphs) {
            CT_TRY(const bool inner, Inlining(*body, m_rewriter, m_nameOf).run({}));
            m_changed |= inner;
        }
        return m_changed;
    }

  private:
    /// The first node that replaces the call, so that wrappers among these are inlined next.
    Result<Node*> inlineCall(Node& call, std::string_view name, const Wrapped& wrapped, const ModeState& state) {
        Node* const before = call.previous();
        Node* const entered = enter(call, name);
        const bool checkpoint = name == kCheckpoint || name == kWrappedCheckpoint;
        m_region = checkpoint && m_rewriter.request().mode == Mode::Training ? ++m_regions : 0;
        const Twins twins = copyBody(call, wrapped);
        std::vector<Argument> results, outputs = wrapped.body->graph().outputs();
        if (name == kOwnDerivative && !outputs.empty() && outputs[0].list())
            outputs = std::vector<Argument>(*outputs[0].list());
        for (const Argument& value : outputs) results.push_back(exchanged(value, twins));
        leave(call, name, entered, state);
        CT_TRY_VOID(replaceResults(call, results));
        CT_TRY_VOID(retypeBody(wrapped));
        std::vector<std::string> bodies;
        for (const Argument& arg : call.args())
            if (const auto* reference = arg.get<SubgraphRef>()) bodies.push_back(reference->name);
        m_graph.erase(call);
        for (const std::string& body : bodies) dropBody(body);
        return before ? before->next() : m_graph.first();
    }

    Node* switchTo(Node& call, std::string_view function, std::vector<Argument> args, std::string_view name) {
        Node& made = m_graph.call(findOrMakeOpaque(function), std::move(args), OpaqueType{}, &call, name);
        m_graph.setProvenance(made, call.provenance());
        return &made;
    }
    Node* enter(Node& call, std::string_view name) {
        if (name == kWithGradients) return switchTo(call, kSetGradEnabled, {call.arg(0)}, "_set_grad_enabled");
        if (name == kWithAutocast)
            return switchTo(call, kEnterAutocast, {call.arg(0), call.arg(1), call.arg(2), call.arg(3)},
                            "_enter_autocast");
        return nullptr;
    }
    void leave(Node& call, std::string_view name, Node* entered, const ModeState& state) {
        if (name == kWithGradients) switchTo(call, kSetGradEnabled, {Argument(state.gradients)}, "_set_grad_enabled");
        if (name == kWithAutocast) switchTo(call, kExitAutocast, {Argument(entered)}, "_exit_autocast");
    }

    /// The body may be made for operands of another layout, or that begin elsewhere in their memory.
    Result<void> retypeBody(const Wrapped& wrapped) {
        size_t position = 0;
        for (const Node* inner : wrapped.body->graph().placeholders()) {
            Node* operand = wrapped.operands[position++].node();
            if (operand && operand->type().tensor() && inner->type().tensor() &&
                !sameMemory(inner->type(), operand->type()))
                CT_TRY_VOID(retypeReaders(m_graph, *operand, true));
        }
        return {};
    }
    Twins copyBody(Node& call, const Wrapped& wrapped) {
        Twins twins;
        size_t operand = 0;
        const std::map<std::string, std::string> names = takeOver(*wrapped.body);
        for (Node& node : wrapped.body->graph().nodes()) {
            if (node.isPlaceholder()) twins.emplace(&node, wrapped.operands[operand++]);
            else if (node.kind() == NodeKind::GetAttr) {
                const auto renamed = names.find(node.target());
                const std::string& target = renamed == names.end() ? node.target() : renamed->second;
                twins.emplace(&node, Argument(&m_graph.getAttr(target, node.type(), &call, node.name())));
            } else if (node.isCall()) twins.emplace(&node, Argument(copyCall(call, node, twins, names)));
        }
        return twins;
    }
    Node* copyCall(Node& position, const Node& node, const Twins& twins,
                   const std::map<std::string, std::string>& names) {
        const auto adapted = [&](const Argument& arg) {
            const auto* reference = arg.get<SubgraphRef>();
            const auto renamed = reference ? names.find(reference->name) : names.end();
            return renamed == names.end() ? exchanged(arg, twins) : Argument(SubgraphRef{renamed->second});
        };
        std::vector<Argument> args;
        for (const Argument& arg : node.args()) args.push_back(adapted(arg));
        NamedArguments keywords;
        for (const auto& [key, value] : node.kwargs()) keywords.emplace_back(key, adapted(value));
        Node& copy = m_graph.call(node.op(), std::move(args), node.type(), &position, node.name(), std::move(keywords));
        Provenance provenance = node.provenance();
        if (m_region > 0) {  // computed again in the backward, unless the program marks the call otherwise
            provenance.region = m_region;
            if (provenance.recompute == 0) provenance.recompute = 1;
        }
        m_graph.setProvenance(copy, std::move(provenance));
        return &copy;
    }
    /// Takes over the body's own graphs, tensors and symbols, renamed where a name is taken.
    std::map<std::string, std::string> takeOver(const Module& body) {
        std::map<std::string, std::string> names;
        const auto fresh = [&](const std::string& wanted) {
            std::string name = wanted;
            for (int n = 1; m_module.subgraph(name) || m_module.tensors.contains(name); ++n)
                name = wanted + "_" + std::to_string(n);
            if (name != wanted) names.emplace(wanted, name);
            return name;
        };
        for (const auto& [name, inner] : body.subgraphs)
            m_module.subgraphs.emplace_back(fresh(name), std::make_unique<Module>(*inner));
        for (const auto& [name, tensor] : body.tensors) m_module.tensors.emplace(fresh(name), tensor);
        m_module.symbols.insert(body.symbols.begin(), body.symbols.end());
        return names;
    }

    Result<void> replaceResults(Node& call, const std::vector<Argument>& results) {
        for (Node* reader : std::vector<Node*>(call.users())) {
            if (!reader->isCall("operator.getitem")) {
                if (results.size() != 1)
                    return invalidInput(call.op().name() + ": the tuple is used as a whole by '" + reader->name() + "'",
                                        call.name());
                exchangeIn(*reader, call, results[0]);
                continue;
            }
            auto item = reader->arg(1).asInt().value_or(0);
            if (item < 0) item += static_cast<int64_t>(results.size());
            if (item < 0 || item >= static_cast<int64_t>(results.size()))
                return invalidInput(
                    call.op().name() + ": its graph gives " + std::to_string(results.size()) + " values",
                    reader->name());
            for (Node* user : std::vector<Node*>(reader->users()))
                exchangeIn(*user, *reader, results[static_cast<size_t>(item)]);
            m_graph.erase(*reader);
        }
        return {};
    }
    void exchangeIn(Node& reader, Node& old, const Argument& value) {
        if (Node* node = value.node()) return m_graph.replaceInput(reader, old, *node);
        const Twins twins = {{&old, value}};
        std::vector<Argument> args;
        for (const Argument& arg : reader.args()) args.push_back(exchanged(arg, twins));
        m_graph.setArgs(reader, std::move(args));
    }
    void dropBody(const std::string& name) {
        for (const Node& node : m_graph.nodes())
            for (const Argument& arg : node.args())
                if (const auto* reference = arg.get<SubgraphRef>(); reference && reference->name == name) return;
        std::erase_if(m_module.subgraphs, [&](const auto& each) { return each.first == name; });
    }

    Module& m_module;
    Graph& m_graph;
    Rewriter& m_rewriter;
    const NameOf m_nameOf;
    int32_t m_regions = 0;  // checkpointed regions so far
    int32_t m_region = 0;   // of the call that is inlined; 0: none
    bool m_changed = false;
};

}  // namespace

Result<bool> inlineWrappers(Module& module, Rewriter& rewriter) {
    sayWrappersThatStay(module, rewriter, wrapperName, false);
    return Inlining(module, rewriter, wrapperName).run({});
}

Result<bool> inlineSubgraphs(Module& module, Rewriter& rewriter) {
    sayWrappersThatStay(module, rewriter, invokeName, false);
    return Inlining(module, rewriter, invokeName).run({});
}

}  // namespace cutaway
