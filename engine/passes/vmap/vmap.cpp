#include "engine/passes/vmap/vmap.h"

#include <algorithm>
#include <map>

#include "engine/autograd/expand.h"
#include "engine/ir/live_nodes.h"
#include "engine/passes/vmap/batch_rules.h"

namespace cutaway {
namespace {

bool isVmapCall(const Node& node) {
    return node.isCall(kAddBatchDim) || node.isCall(kRemoveBatchDim) || node.isCall(kVmapBegin) ||
           node.isCall(kVmapEnd);
}

/// Dim `from` at place `to`; the others keep their order.
Value withDimMoved(const Value& x, int64_t from, int64_t to) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < x.rank(); ++i)
        if (i != from) order.push_back(i);
    order.insert(order.begin() + to, from);
    return from == to ? unary("aten.alias.default", x) : permute(x, order);
}

/// A vmap that is open while the graph is walked.
struct OpenVmap {
    int64_t level;
    SymInt count;
    std::string randomness;
};

class Vmap {
  public:
    Vmap(Module& module, Rewriter& rewriter) : m_module(module), m_graph(module.graph()), m_rewriter(rewriter) {}

    Result<bool> run() {
        for (Node* node = m_graph.first(); node != nullptr && !m_stopped;) {
            CT_TRY(node, visit(*node));
        }
        if (!m_stopped) CT_TRY_VOID(erase());
        return m_changed;
    }

  private:
    Result<Node*> visit(Node& node) {
        if (!node.isCall()) return node.next();
        if (node.isCall(kVmapBegin) || node.isCall(kVmapEnd)) return boundary(node);
        if (node.isCall(kAddBatchDim)) return beginExamples(node);
        if (node.isCall(kRemoveBatchDim)) return endExamples(node);
        const int64_t level = levelOf(node);
        return level > 0 ? batch(node, level) : node.next();
    }

    Node* boundary(Node& node) {
        if (node.isCall(kVmapEnd)) {
            if (!m_open.empty()) m_open.pop_back();
            return node.next();
        }
        // Levels of other transforms lie between, so that the first examples tell the level.
        int64_t level = m_open.empty() ? 1 : m_open.back().level + 1;
        for (const Node* next = node.next(); next && !next->isCall(kVmapBegin) && !next->isCall(kVmapEnd);
             next = next->next())
            if (next->isCall(kAddBatchDim)) {
                level = std::max(level, next->arg(2).asInt().value_or(level));
                break;
            }
        const auto* randomness = node.arg(1).get<std::string>();
        m_open.push_back({level, symIntOf(node.arg(0)).value_or(SymInt(1)), randomness ? *randomness : "error"});
        return node.next();
    }

    /// Examples stand along dim 0 from here on.
    Result<Node*> beginExamples(Node& node) {
        const int64_t dim =
            InferContext(node.op(), node.args()).dim("batch_dim", node.arg(0).node()->tensor().rank()).value();
        if (dim == 0) return node.next();
        if (!begin(node)) return &node;
        GraphBuilder builder = m_rewriter.builder(m_graph, &node, node);
        const Value moved = withDimMoved(builder.value(*node.arg(0).node()), dim, 0);
        const Value example = builder.call(kAddBatchDim, {moved, 0, node.arg(2)});
        if (builder.error()) return failed(builder, node);
        m_rewriter.replace(node, *example.node());
        return moved.node();
    }

    Result<Node*> endExamples(Node& node) {
        Node& value = *node.arg(0).node();
        const int64_t level = node.arg(1).asInt().value_or(0), held = levelOfExample(&value);
        if (held > level) return leaves(value);
        if (!begin(node)) return &node;
        Node* const before = node.previous();
        const int64_t rank = value.tensor().rank();
        const int64_t dim = InferContext(node.op(), node.args()).dim("out_dim", rank + 1).value();
        GraphBuilder builder = m_rewriter.builder(m_graph, &node, node);
        Value all;
        if (held == level) all = withDimMoved(builder.value(*value.arg(0).node()), 0, dim);
        else {  // the same for every example
            all = unsqueeze(builder.value(value), dim);
            SymDims sizes = all.sizes();
            if (all) sizes[static_cast<size_t>(dim)] = symIntOf(node.arg(2)).value_or(SymInt(1));
            all = expand(all, sizes);
        }
        if (builder.error()) return failed(builder, node);
        m_rewriter.replace(node, *all.node());
        return behind(before);
    }

    /// The innermost level whose examples the call is to be written for; 0 for none.
    int64_t levelOf(const Node& node) const {
        int64_t level = 0;
        for (const Node* input : node.inputs()) level = std::max(level, levelOfExample(input));
        if (!node.is(Tag::Random)) return level;
        // Each example draws for itself.
        const auto limit = m_drawn.find(node.id());
        for (const OpenVmap& open : m_open)
            if (open.randomness != "same" && (limit == m_drawn.end() || open.level < limit->second))
                level = std::max(level, open.level);
        return level;
    }

    Result<Node*> batch(Node& call, int64_t level) {
        if (call.isCall("aten._assert_tensor_metadata.default")) return drop(call);
        if (call.op().mutates())
            return unsupported(call.op().name() + ": writes inside of vmap that stay after functionalization",
                               call.name(), {"write to a copy"});
        SymInt count = 1;
        const OpenVmap* open = nullptr;
        for (const OpenVmap& each : m_open)
            if (each.level == level) open = &each;
        if (open) count = open->count;
        for (const Node* input : call.inputs())
            if (levelOfExample(input) == level) count = input->arg(0).node()->tensor().sizes[0];
        CT_TRY_VOID(check(call, open));
        if (!begin(call)) return &call;
        Node* const before = call.previous();
        std::optional<GraphBuilder> graphBuilder(m_rewriter.builder(m_graph, &call, call));
        GraphBuilder& builder = *graphBuilder;
        BatchedCall c(call, builder, level, count);
        if (call.isCall("aten.sym_size.int")) return sizeOfExample(call, c, before);
        Values made = call.is(Tag::Random) ? draw(c) : byRule(c);
        if (builder.error() && call.is(Tag::Random)) return failed(builder, call);
        // A rule whose calls are refused does not fit these operands.
        if (builder.error()) {
            discard(builder);
            graphBuilder.emplace(m_rewriter.builder(m_graph, &call, call));
            made = Values::notHandled();
        }
        if (!made.handled() || !isRight(c, made)) {
            discard(builder);
            if (call.op().packet() == "aten.as_strided")
                return unsupported(
                    call.op().name() + ": inside of vmap it reads memory whose layout is that of all examples",
                    call.name(), {"write it as slices and views"});
            if (const OpDef* def = call.op().def(); def && def->decompose) {
                CT_TRY(const bool expanded, expandCall(call, m_rewriter));
                if (expanded) return behind(before);
            }
            CT_TRY(made, batchByMap(m_module, c, m_rewriter));
        }
        std::vector<Node*> examples;
        for (const Value& all : made.values()) {
            if (all && all.node()->is(Tag::Random)) m_drawn[all.node()->id()] = level;
            examples.push_back(all ? builder.call(kAddBatchDim, {all, 0, level}).node() : nullptr);
        }
        for (Node* each : builder.created())
            if (each->is(Tag::Random)) m_drawn[each->id()] = level;
        if (builder.error()) return failed(builder, call);
        if (call.type().tuple()) {
            CT_TRY_VOID(m_rewriter.replaceTuple(call, examples));
        } else m_rewriter.replace(call, *examples[0]);
        return behind(before);
    }

    Result<void> check(const Node& call, const OpenVmap* open) const {
        if (call.is(Tag::Random) && (!open || open->randomness == "error"))
            return unsupported(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                "'different' randomness flags on vmap or perform the randomness operation out of vmap",
                call.name());
        if (call.is(Tag::Random) && open->randomness == "same" && !call.isCall("aten.rand_like.default") &&
            !call.isCall("aten.randn_like.default"))
            return unsupported(call.op().name() + ": draws that are the same for all examples, of values that are not",
                               call.name(), {"give vmap randomness='different'"});
        if (call.isCall("aten.item.default") || call.isCall("aten._local_scalar_dense.default"))
            return unsupported(
                "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on "
                "a Tensor, please try to rewrite what you're doing with other operations.",
                call.name());
        if (call.is(Tag::DataDependent))
            return unsupported(
                "vmap: We do not support batching operators that can output dynamic shape: " + call.op().name(),
                call.name(), {"use operators with results of a fixed size"});
        return {};
    }

    Values byRule(BatchedCall& c) {
        const BatchRule rule = batchRuleOf(c.op());
        return rule ? rule(c) : Values::notHandled();
    }

    /// Draws of each example's own, or of one for all.
    Values draw(BatchedCall& c) {
        std::vector<Argument> args = c.copyOfArgs();
        if (const int size = c.op().schema()->find("size"); size >= 0 && c.op().is(Tag::Factory)) {
            const auto sizes = static_cast<const InferContext&>(c).sizes("size");
            if (!sizes) return Values::notHandled();
            args[static_cast<size_t>(size)] = Argument(c.sizes(*sizes));
            return c.again(std::move(args));
        }
        for (const OpenVmap& each : m_open)
            if (each.randomness == "same" && c.isTensor(0) && c.isBatched(0)) {
                args[0] = c.call("aten.select.int", {c.all(0), 0, 0});
                const Values one = c.again(std::move(args));
                const Value value = one.values()[0];
                return value ? expand(unsqueeze(value, 0), c.sizes(value.sizes())) : value;
            }
        for (size_t i = 0; i < args.size(); ++i)
            if (c.isTensor(i)) args[i] = c.all(i);
        return c.op().is(Tag::Pointwise) ? c.again(std::move(args)) : Values::notHandled();
    }

    /// Results of another dtype or other sizes than the examples' are not taken: the call runs in a map.
    bool isRight(const BatchedCall& c, const Values& made) const {
        const TupleType single{c.node().type()};
        const TupleType& types = c.node().type().tuple() ? *c.node().type().tuple() : single;
        if (types.size() != made.values().size()) return false;
        for (size_t i = 0; i < types.size(); ++i) {
            const TensorType* const one = types[i].tensor();
            const Value& all = made.values()[i];
            if (!one != !all) return false;
            if (one && (all.dtype() != one->dtype || differ(all.sizes(), c.sizes(one->sizes)))) return false;
        }
        return true;
    }

    Result<Node*> sizeOfExample(Node& call, BatchedCall& c, Node* before) {
        const auto dim = c.dim("dim", c.type(0).rank());
        if (!dim) return dim.error();
        const Value size = c.call(call.op().name(), {c.all(0), *dim + 1});
        if (c.builder().error()) return failed(c.builder(), call);
        m_graph.replaceUses(call, *size.node());
        m_graph.erase(call);
        return behind(before);
    }

    Result<Node*> drop(Node& node) {
        if (!begin(node)) return &node;
        Node* const next = node.next();
        m_graph.erase(node);
        return next;
    }
    void discard(const GraphBuilder& builder) {
        for (auto node = builder.created().rbegin(); node != builder.created().rend(); ++node)
            if (Node* made = m_graph.find((*node)->id()); made && !made->hasUsers()) m_graph.erase(*made);
    }

    /// What marked levels and examples has no reader left.
    Result<void> erase() {
        std::vector<Node*> nodes = m_graph.nodeList();
        for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
            Node& node = **at;
            if (!isVmapCall(node)) continue;
            if (node.hasUsers()) return leaves(node);
            if (!begin(node)) return {};
            m_graph.erase(node);
        }
        return {};
    }
    Error leaves(const Node& value) const {
        return invalidInput(
            "a value of one example leaves the vmap that it was made in: return it through the function that "
            "torch.vmap calls",
            value.name());
    }

    bool begin(const Node& node) {
        if (m_rewriter.begin(m_rewriter.pass(), node) == Go::Yes) {
            m_changed = true;
            return true;
        }
        m_stopped = true;
        return false;
    }
    Node* behind(Node* before) const { return before ? before->next() : m_graph.first(); }
    static Error failed(const GraphBuilder& builder, const Node& where) {
        Error error = *builder.error();
        error.where = where.name();
        return error;
    }

    Module& m_module;
    Graph& m_graph;
    Rewriter& m_rewriter;
    std::vector<OpenVmap> m_open;
    std::map<NodeId, int64_t> m_drawn;  // draws of these are written for this level and those inside of it
    bool m_changed = false, m_stopped = false;
};

}  // namespace

Result<bool> vmap(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, vmap(*body, rewriter));
        changed |= inner;
    }
    bool used = false;
    for (const Node& node : module.graph().nodes()) {
        used |= isVmapCall(node);
        if (node.isCall() && !isVmapCall(node)) rewriter.refuse(rewriter.pass(), node, "it reads no example of a vmap");
    }
    if (!used) return changed;
    CT_TRY(const bool outer, Vmap(module, rewriter).run());
    return changed || outer;
}

}  // namespace cutaway
