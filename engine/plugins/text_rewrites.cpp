#include "engine/plugins/text_rewrites.h"

#include <algorithm>
#include <map>
#include <set>

#include "cutaway/words.h"
#include "engine/ir/infer.h"
#include "engine/ir/same_operands.h"
#include "engine/ir/verify.h"
#include "engine/ops/alias.h"
#include "engine/plugins/graph_calls.h"
#include "engine/plugins/rewrite_groups.h"
#include "engine/rewrite/graph_order.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

/// What the output returns, by place.
std::vector<ValueType> returnedTypes(const Graph& graph) {
    std::vector<ValueType> types;
    if (const Node* output = graph.outputNode())
        output->forEachInput([&](Node* input) { types.push_back(input->type()); });
    return types;
}

bool namesGraph(const Argument& argument, std::string_view name) {
    if (const auto* graph = argument.get<SubgraphRef>()) return graph->name == name;
    const auto* items = argument.list();
    return items &&
           std::any_of(items->begin(), items->end(), [&](const Argument& item) { return namesGraph(item, name); });
}
using AddedBodies = std::vector<std::pair<std::string, std::unique_ptr<Module>>>;

/// Whether a call may name the one graph in place of the other.
bool sameSignature(const Module& a, const Module& b) {
    const auto typesOf = [](const Module& module) {
        std::vector<ValueType> types;
        for (const Node* input : module.graph().placeholders()) types.push_back(input->type());
        types.emplace_back(TupleType(returnedTypes(module.graph())));
        return types;
    };
    const std::vector<ValueType> left = typesOf(a), right = typesOf(b);
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), sameType);
}

class GroupEditor {
  public:
    /// `known`: operators without a row that may be called; `attributes`: tensors that may be read, and their types.
    GroupEditor(Graph& graph, const TextDifference& difference, Rewriter& rewriter, std::set<std::string> known,
                std::map<std::string, ValueType> attributes, const Module& module, const AddedBodies& bodies)
        : m_graph(graph),
          m_difference(difference),
          m_rewriter(rewriter),
          m_knownOps(std::move(known)),
          m_attributes(std::move(attributes)),
          m_module(module),
          m_bodies(bodies) {}

    /// Where the group's rewrite starts: the last node that it takes away, as a pattern's root is.
    Node* anchorOf(const RewriteGroup& group) const {
        if (!group.removed.empty()) return group.removed.back();
        if (!group.edited.empty()) return group.edited.front().first;
        if (!group.rewired.empty()) return group.rewired.front().user;
        if (!group.made.empty()) return m_difference.next.at(group.made.front());
        return m_difference.order.empty() ? m_graph.outputNode() : m_difference.order.front();
    }

    Result<void> apply(const RewriteGroup& group) {
        CT_TRY_VOID(make(group));
        CT_TRY_VOID(edit(group));
        CT_TRY_VOID(rewire(group));
        for (size_t i = group.removed.size(); i-- > 0;) {
            Node& node = *group.removed[i];
            if (node.hasUsers())
                return invalidInput("'" + visibleText(node.name()) + "' is read, and nothing computes it",
                                    node.users().front()->name());
            m_graph.erase(node);
        }
        for (Node* parsed : group.made) {
            Node& node = *m_made.at(parsed);
            if (node.name() != parsed->name()) m_graph.rename(node, parsed->name());
        }
        if (group.reorders) reorder();
        return {};
    }

  private:
    Node* nodeOf(Node* parsedNode) const {
        const TextValue value = m_difference.valueOf(parsedNode);
        return value.kept ? value.kept : m_made.at(value.made);
    }
    std::vector<Argument> argumentsOf(const Node& parsed) const {
        std::vector<Argument> args;
        for (const Argument& arg : parsed.args())
            args.push_back(arg.mapNodes([&](Node* node) { return nodeOf(node); }));
        return args;
    }
    std::vector<std::pair<std::string, Argument>> keywordsOf(const Node& parsed) const {
        std::vector<std::pair<std::string, Argument>> out;
        for (const auto& [key, arg] : parsed.kwargs())
            out.emplace_back(key, arg.mapNodes([&](Node* node) { return nodeOf(node); }));
        return out;
    }

    /// The type that the operator gives, which has to be the one that the text says.
    Result<ValueType> typeOf(const Node& parsed, const std::vector<Argument>& args) {
        m_ruled = false;
        if (parsed.op().isOpaque()) {
            if (!m_knownOps.contains(parsed.op().name()))
                return invalidInput("the operator '" + visibleText(parsed.op().name()) + "' is not known",
                                    parsed.name());
            return parsed.type();
        }
        const auto made = m_lastMade.find(&parsed.op());
        const bool same = made != m_lastMade.end() && sameOperands(made->second->args(), args);
        auto type = same ? Result<ValueType>(made->second->type()) : inferCall(parsed.op(), args);
        if (!type) {
            Error error = type.error();
            if (error.where.empty()) error.where = parsed.name();
            return error;
        }
        m_ruled = !type->isOpaque();
        if (!m_ruled) return parsed.type();
        if (!parsed.type().isOpaque() && !sameType(*type, parsed.type()))
            return invalidInput(
                "the text says " + parsed.type().text() + ", and " + parsed.op().name() + " gives " + type->text(),
                parsed.name());
        return type;
    }

    static Result<void> checkTensor(const Node& parsed, const ValueType& type, const std::string& where) {
        if (parsed.type().isOpaque() || sameType(type, parsed.type())) return {};
        return invalidInput("the text says " + parsed.type().text() + ", and the model's tensor is " + type.text(),
                            where);
    }

    const Module* bodyOf(std::string_view name) const {
        for (const auto& [key, body] : m_bodies)
            if (key == name) return body.get();
        return m_module.subgraph(name);
    }
    bool namesAdded(const Node& parsed) const {
        return std::any_of(m_bodies.begin(), m_bodies.end(), [&](const auto& body) {
            return std::any_of(parsed.args().begin(), parsed.args().end(),
                               [&](const Argument& arg) { return namesGraph(arg, body.first); });
        });
    }
    /// A graph that is added takes another one's place in a call that there was.
    Result<void> checkAdded(const Node& old, const Node& parsed) const {
        for (const auto& [name, body] : m_bodies)
            for (size_t i = 0; i < parsed.args().size(); ++i) {
                if (!namesGraph(parsed.args()[i], name)) continue;
                const auto* was = i < old.args().size() ? old.args()[i].get<SubgraphRef>() : nullptr;
                const Module* const before = was ? bodyOf(was->name) : nullptr;
                if (before == nullptr)
                    return invalidInput("it adds the graph '" + name + "', which takes no other's place",
                                        parsed.name());
                if (!sameSignature(*before, *body))
                    return invalidInput("the graph '" + name + "' takes or returns other types than '" + was->name +
                                            "', whose place it takes",
                                        parsed.name());
            }
        return {};
    }

    Result<void> make(const RewriteGroup& group) {
        if (group.made.empty()) return {};
        Provenance provenance;
        const Node* origin = anchorOf(group);
        if (!origin->isOutput()) provenance = origin->provenance();
        provenance.origin.clear();
        for (const Node* node : group.removed)
            for (const NodeId id : m_rewriter.originsOf(*node)) provenance.origin.push_back(id);
        provenance.sourceName.clear();
        provenance.createdBy = std::string(m_rewriter.pass());
        const auto shared = std::make_shared<const Provenance>(std::move(provenance));
        for (Node* parsed : group.made) {
            Node* const before = m_difference.next.at(parsed);
            Node* node = nullptr;
            if (parsed->isCall()) {
                std::vector<Argument> args = argumentsOf(*parsed);
                CT_TRY(ValueType type, namesAdded(*parsed) ? typeOfGraphCall(parsed->op().name(), args, parsed->name(),
                                                                             [&](auto name) { return bodyOf(name); })
                                                           : typeOf(*parsed, args));
                node = &m_graph.call(parsed->op(), std::move(args), std::move(type), before, parsed->name(),
                                     keywordsOf(*parsed));
            } else {
                const auto tensor = m_attributes.find(parsed->target());
                if (tensor == m_attributes.end())
                    return invalidInput("the model has no tensor '" + visibleText(parsed->target()) + "'",
                                        parsed->name());
                CT_TRY_VOID(checkTensor(*parsed, tensor->second, parsed->name()));
                node = &m_graph.getAttr(parsed->target(), tensor->second, before, parsed->name());
            }
            m_graph.setProvenance(*node, shared);
            m_made[parsed] = node;
            if (node->isCall() && m_ruled) m_lastMade[&node->op()] = node;
        }
        return {};
    }

    Result<void> edit(const RewriteGroup& group) {
        for (const auto& [old, parsed] : group.edited) {
            if (!parsed->isCall()) {
                if (!sameType(old->type(), parsed->type()))
                    return invalidInput(
                        "the text says " + parsed->type().text() + ", and the model's tensor is " + old->type().text(),
                        old->name());
                m_graph.setType(*old, parsed->type());
                continue;
            }
            std::vector<Argument> args = argumentsOf(*parsed);
            CT_TRY_VOID(checkAdded(*old, *parsed));
            CT_TRY(ValueType type, typeOf(*parsed, args));
            if (type.isOpaque()) type = old->type();  // of a call of graphs, which its readers' lines say
            const bool same = sameMemory(old->type(), type);
            m_graph.setOp(*old, parsed->op(), std::move(args), std::move(type), keywordsOf(*parsed));
            if (!same) CT_TRY_VOID(retypeReaders(m_graph, *old, true));
        }
        return {};
    }

    /// Where one operand stands for another wherever the user reads it, the others keep their lists of readers, which
    /// may be long.
    bool exchanged(Node& user, const std::vector<const TextRewire*>& rewires, const std::vector<Node*>& now) {
        Node &old = *rewires.front()->before, &replacement = *now[rewires.front()->leaf];
        size_t leaf = 0, reads = 0;
        bool same = &old.graph() == &m_graph;
        user.forEachInput([&](Node* input) {
            reads += input == &old;
            same = same && now[leaf++] == (input == &old ? &replacement : input);
        });
        if (!same || reads != rewires.size()) return false;
        m_graph.replaceInput(user, old, replacement);
        return true;
    }

    Result<void> rewire(const RewriteGroup& group) {
        std::map<NodeId, std::vector<const TextRewire*>> byUser;
        for (const TextRewire& rewire : group.rewired) byUser[rewire.user->id()].push_back(&rewire);
        std::set<NodeId> retyped;
        std::vector<Node*> changed;
        for (const auto& [id, rewires] : byUser) {
            Node& user = *rewires.front()->user;
            std::vector<Node*> now;
            user.forEachInput([&](Node* input) { now.push_back(input); });
            for (const TextRewire* rewire : rewires) {
                Node* const after = rewire->after.kept ? rewire->after.kept : m_made.at(rewire->after.made);
                if (!sameMemory(rewire->before->type(), after->type()) && retyped.insert(after->id()).second)
                    changed.push_back(after);
                now[rewire->leaf] = after;
            }
            if (exchanged(user, rewires, now)) continue;
            size_t leaf = 0;
            const auto next = [&](Node*) { return now[leaf++]; };
            std::vector<Argument> args;
            for (const Argument& arg : user.args()) args.push_back(arg.mapNodes(next));
            if (user.isCall() && !user.kwargs().empty()) {
                std::vector<std::pair<std::string, Argument>> keywords;
                for (const auto& [key, arg] : user.kwargs()) keywords.emplace_back(key, arg.mapNodes(next));
                m_graph.setOp(user, user.op(), std::move(args), user.type(), std::move(keywords));
            } else {
                m_graph.setArgs(user, std::move(args));
            }
        }
        // Readers keep the types that the text says; layouts that no text says follow.
        for (Node* node : changed) CT_TRY_VOID(retypeReaders(m_graph, *node, true));
        return {};
    }

    void reorder() {
        Node* const output = m_graph.outputNode();
        std::map<const Node*, std::vector<Node*>> made;
        for (Node* parsed : m_difference.made) made[m_difference.next.at(parsed)].push_back(m_made.at(parsed));
        for (Node* node : m_difference.order) {
            for (Node* before : made[node]) m_graph.moveBefore(*before, *output);
            m_graph.moveBefore(*node, *output);
        }
        for (Node* before : made[output]) m_graph.moveBefore(*before, *output);
    }

    Graph& m_graph;
    const TextDifference& m_difference;
    Rewriter& m_rewriter;
    std::set<std::string> m_knownOps;
    std::map<std::string, ValueType> m_attributes;
    const Module& m_module;
    const AddedBodies& m_bodies;
    std::unordered_map<Node*, Node*> m_made;
    std::unordered_map<const Op*, const Node*> m_lastMade;  // by operator, with the type that its rule gave
    bool m_ruled = false;                                   // of typeOf()'s latest answer: an operator's rule gave it
};

/// Operators without a row that may be called: those that the graph calls already.
std::set<std::string> opaqueOps(const Module& module) {
    std::set<std::string> names;
    for (const Node& node : module.graph().nodes())
        if (node.isCall() && node.op().isOpaque()) names.insert(node.op().name());
    return names;
}
/// Types of tensors that the graph may read: as it reads them already, or as they are.
std::map<std::string, ValueType> attributesOf(const Module& root, const Module& module) {
    std::map<std::string, ValueType> types;
    for (const Node& node : module.graph().nodes())
        if (node.kind() == NodeKind::GetAttr) types.emplace(node.target(), node.type());
    for (const Module* one : {&module, &root}) {
        for (const auto& [name, tensor] : one->tensors) {
            if (!tensor.defined() || types.contains(name)) continue;
            TensorType type;
            type.dtype = tensor.dtype();
            type.device = tensor.device();
            type.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
            type.strides.assign(tensor.strides().begin(), tensor.strides().end());
            types.emplace(name, ValueType(std::move(type)));
        }
        for (const auto& [name, recipe] : one->recipes)
            types.emplace(name, recipe->graph().graph().outputs().at(0).node()->type());
    }
    return types;
}

/// Inputs and tensors of the model that the graph writes to, through views, too.
std::map<std::string, std::string> writtenInputs(const Graph& graph) {
    std::map<std::string, std::string> out;  // name, the call that does it
    for (const Node& node : graph.nodes()) {
        if (!node.isCall() || !node.op().mutates()) continue;
        for (const Node* operand : writtenOperands(node)) {
            const Node& root = storageRoot(*operand);
            if (root.isPlaceholder() || root.kind() == NodeKind::GetAttr) out[root.name()] = node.name();
        }
    }
    return out;
}
Result<void> writesAsBefore(const std::map<std::string, std::string>& before,
                            const std::map<std::string, std::string>& now) {
    const std::vector<std::string> kept = {"a plugin's pass keeps what the graph writes to its inputs"};
    for (const auto& [input, call] : before)
        if (!now.contains(input))
            return Error{ErrorCode::InvalidInput,
                         "nothing is written to '" + input + "' any more, as '" + call + "' did",
                         {},
                         kept};
    for (const auto& [input, call] : now)
        if (!before.contains(input))
            return Error{ErrorCode::InvalidInput, "it writes to '" + input + "', which the graph does not", call, kept};
    return {};
}

bool callsGraph(const Graph& graph, std::string_view name) {
    for (const Node& node : graph.nodes())
        for (const Argument& arg : node.args())
            if (namesGraph(arg, name)) return true;
    return false;
}

using FunctionWork = std::vector<std::pair<Module*, const TextFunction*>>;

/// The graphs that the text adds, as they were parsed with the calls of the main graph that name them.
Result<AddedBodies> addedBodies(const std::vector<std::string_view>& added, const FunctionWork& work,
                                std::vector<TextDifference>& differences, const Module& module) {
    AddedBodies out;
    for (const std::string_view name : added) {
        for (size_t i = 0; i < work.size(); ++i) {
            if (work[i].first != &module || !differences[i].parsed) continue;
            for (auto& [key, body] : differences[i].parsed->subgraphs)
                if (key == name && body) out.emplace_back(key, std::move(body));
        }
        if (out.empty() || out.back().first != name)
            return invalidInput("it adds a graph, which no call of the main graph names", std::string(name));
    }
    return out;
}

struct RewriteNames {
    std::string_view rule, why;
    std::map<std::string, const NamedRewrite*> byNode;
};

/// The function's differences, as rewrites.
Result<bool> rewriteFunction(const Module& root, Module& module, const TextDifference& difference, Rewriter& rewriter,
                             const RewriteNames& names, const AddedBodies& bodies) {
    if (difference.empty()) return false;
    Graph& graph = module.graph();
    GroupEditor editor(graph, difference, rewriter, opaqueOps(module), attributesOf(root, module), module, bodies);
    const std::vector<ValueType> returned = returnedTypes(graph);
    const auto written = writtenInputs(graph);
    bool changed = false;
    for (const RewriteGroup& group : groupsOf(difference)) {
        const NamedRewrite* said = nullptr;
        const auto look = [&](const Node& node) {
            const auto found = names.byNode.find(node.name());
            if (!said && found != names.byNode.end()) said = found->second;
        };
        for (const Node* node : group.made) look(*node);
        for (const Node* node : group.removed) look(*node);
        for (const auto& [old, parsed] : group.edited) look(*old);
        for (const TextRewire& rewire : group.rewired) look(*rewire.user);
        const Go go = rewriter.begin(said ? std::string_view(said->rule) : names.rule, *editor.anchorOf(group),
                                     said ? std::string_view(said->why) : names.why);
        if (go == Go::Stop) break;
        if (go == Go::Skip) continue;
        changed = true;
        CT_TRY_VOID(editor.apply(group));
    }
    const std::vector<ValueType> now = returnedTypes(graph);
    for (size_t i = 0; i < returned.size() && i < now.size(); ++i)
        if (!sameType(returned[i], now[i]))
            return Error{ErrorCode::InvalidInput,
                         "output " + std::to_string(i) + " is " + now[i].text() + " in place of " + returned[i].text(),
                         {},
                         {"a plugin's pass keeps inputs and outputs as they are"}};
    CT_TRY_VOID(writesAsBefore(written, writtenInputs(graph)));
    return changed;
}

}  // namespace

std::string pluginText(const Module& module) {
    PrintOptions options;
    options.comments = false;
    return printText(module, options).text;
}

Result<bool> rewriteByText(Module& module, std::string_view before, std::string_view after, Rewriter& rewriter,
                           std::string_view rule, std::string_view why, const std::vector<NamedRewrite>& named) {
    if (before == after) return false;
    CT_TRY(const FunctionTexts old, splitFunctions(before));
    CT_TRY(const FunctionTexts now, splitFunctions(after));
    std::set<std::string_view> seen;
    std::vector<std::string_view> added;
    for (const TextFunction& function : now.functions) {
        if (!old.find(function.name)) added.push_back(function.name);
        if (!seen.insert(function.name).second)
            return invalidInput("it has two graphs of one name", std::string(function.name));
    }
    RewriteNames names{rule, why, {}};
    for (const NamedRewrite& one : named) names.byNode.emplace(one.node, &one);
    // All is read before anything is changed. Bodies first, as the pipeline's own passes go.
    FunctionWork work;
    for (const TextFunction& function : old.functions) {
        Module* const one = function.name == "forward" && &function == &old.functions.front()
                                ? &module
                                : module.subgraph(function.name);
        if (one != nullptr) work.emplace_back(one, &function);
    }
    if (work.size() > 1) std::rotate(work.begin(), work.begin() + 1, work.end());
    std::vector<TextDifference> differences;
    for (const auto& [one, function] : work) {
        const TextFunction* const fresh = now.find(function->name);
        if (!fresh)
            return invalidInput("it leaves out a graph, which a plugin's pass may not", std::string(function->name));
        std::unordered_map<std::string_view, Node*> lines;
        for (const std::string_view line : function->body)
            if (Node* node = one->graph().findByName(definedName(line))) lines.emplace(line, node);
        CT_TRY(TextDifference difference, differenceOf(one->graph(), lines, *function, *fresh, now));
        differences.push_back(std::move(difference));
    }
    CT_TRY(auto bodies, addedBodies(added, work, differences, module));
    bool changed = false;
    for (size_t i = 0; i < work.size(); ++i) {
        CT_TRY(const bool did, rewriteFunction(module, *work[i].first, differences[i], rewriter, names, bodies));
        changed |= did;
    }
    // With less fuel the call that reads one may not be made.
    for (auto& [name, body] : bodies)
        if (callsGraph(module.graph(), name)) module.subgraphs.emplace_back(name, std::move(body));
    return changed;
}

}  // namespace cutaway
