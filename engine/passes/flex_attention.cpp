#include "engine/passes/flex_attention.h"

#include <cmath>
#include <limits>

#include "engine/ir/live_nodes.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/passes/vmap/batched_call.h"

namespace cutaway {
namespace {

constexpr double kLn2 = 0.69314718055994530942;
constexpr double kMasked = -std::numeric_limits<double>::infinity();

enum class FlexKind { None, Forward, Backward };

FlexKind kindOf(const Node& node) {
    const auto is = [&](std::string_view name) {
        return node.isCall(name) || node.isCall(std::string(name) + ".default");
    };
    if (is("higher_order.flex_attention")) return FlexKind::Forward;
    return is("higher_order.flex_attention_backward") ? FlexKind::Backward : FlexKind::None;
}

/// A graph that computes something of one score, and what it captures.
struct ElementGraph {
    std::string name;
    const Module* body = nullptr;
    std::vector<Argument> captured;
};

/// The operands of both calls. Scores are computed in float64 of float64 queries, else in float32.
struct FlexOperands {
    Value query, key, value;
    ElementGraph score, mask;
    Argument scale;
    DType working = DType::F32;
};

class FlexAttention {
  public:
    FlexAttention(Module& module, Rewriter& rewriter, Node& call)
        : m_module(module), m_call(call), m_builder(rewriter.builder(module.graph(), &call, call)) {
        for (const Node& node : module.graph().nodes()) {
            if (&node == &call) break;
            m_level += node.isCall(kVmapBegin) ? 1 : node.isCall(kVmapEnd) ? -1 : 0;
        }
    }

    /// (query, key, value, score, block mask, scale, options, captured by the score, captured by the mask) to (result,
    /// log2 of the sums of exponentials, largest scores / ln 2).
    Result<std::vector<Node*>> forward() {
        CT_TRY(FlexOperands x, read(3, 4, 5, 7));
        const Value scores = scoresOf(x), masked = maskedScores(x, scores);
        const Value sums = call("aten.logsumexp.default", {masked, Argument(std::vector<int64_t>{-1}), false});
        const Value nothing = call("aten.all.dim", {call("aten.eq.Scalar", {masked, kMasked}), int64_t{-1}, false});
        const Value value = where(nothing, full({}, kMasked, x.working), sums);
        const Value largest = call("aten.amax.default", {masked, Argument(std::vector<int64_t>{-1}), false});
        const Value weights = call("aten._safe_softmax.default", {masked, int64_t{-1}, Argument()});
        const DType dtype = x.query.dtype();
        const Value result = product(convert(weights, dtype), convert(x.value, dtype));
        return finished({result, value / kLn2, largest / kLn2});
    }

    /// (query, key, value, result, log2 of sums, gradient of the result, gradient of the sums, score, its joint graph,
    /// block mask, scale, options, captured by the score, captured by the mask) to (gradients of query, key, value, and
    /// of what the score captures).
    Result<std::vector<Node*>> backward() {
        const Value query = operand(0), key = operand(1), value = operand(2);
        CT_TRY(FlexOperands x, read(7, 9, 10, 12));
        CT_TRY(const ElementGraph joint, graphAt(m_call.arg(8), 12));
        if (const auto* captured = m_call.arg(12).list(); captured && !captured->empty())
            CT_TRY_VOID(refuseGradients(*joint.body));
        const Value out = convert(operand(3), x.working), sums = operand(4) * kLn2;
        const Value gradient = m_call.arg(5).isNone() ? unary("aten.zeros_like.default", operand(3)) : operand(5);
        const Value wide = convert(gradient, x.working);
        const Value scores = scoresOf(x), masked = maskedScores(x, scores);
        const Value reached = call("aten.ne.Scalar", {sums, kMasked});
        const Value weights = where(unsqueeze(reached, -1), unary("aten.exp.default", masked - unsqueeze(sums, -1)),
                                    full({}, 0.0, x.working));
        Value ofWeights = product(wide, transposed(convert(x.value, x.working))) - sum(out * wide, {-1}, true);
        if (!m_call.arg(6).isNone()) ofWeights = ofWeights + unsqueeze(operand(6) / kLn2, -1);
        const Value ofModified = weights * ofWeights;
        const Value ofScores = forEachScore(joint, {scores}, {ofModified}, x.working) * OperandValue(x.scale);
        const Value mask = forEachScore(x.mask, {}, {}, DType::Bool);
        const DType dtype = query.dtype();
        const Value kept = where(mask, convert(ofScores, dtype), full({}, 0.0, dtype));
        return finished({product(kept, x.key), gathered(product(transposed(kept), x.query), key),
                         gathered(product(transposed(convert(weights, dtype)), gradient), value), Value()});
    }

  private:
    Value call(std::string_view op, std::vector<Argument> args) { return m_builder.call(op, std::move(args)); }
    Value operand(size_t position) { return m_builder.value(*m_call.arg(position).node()); }
    Value full(const SymDims& sizes, double value, DType dtype) {
        return cutaway::full(m_builder, sizes, Scalar(value), dtype, operand(0).type().device);
    }
    Value transposed(const Value& x) { return call("aten.transpose.int", {x, int64_t{-2}, int64_t{-1}}); }
    Value product(const Value& a, const Value& b) { return call("aten.matmul.default", {a, b}); }
    Error refuse(const std::string& why) const { return invalidInput(m_call.op().name() + ": " + why, m_call.name()); }

    Result<ElementGraph> graphAt(const Argument& named, size_t captured) const {
        ElementGraph graph;
        const auto* reference = named.get<SubgraphRef>();
        graph.body = reference ? m_module.subgraph(reference->name) : nullptr;
        if (!graph.body) return refuse("it names a graph that is not in the file");
        graph.name = reference->name;
        if (captured < m_call.args().size())
            if (const auto* list = m_call.arg(captured).list()) graph.captured = *list;
        return graph;
    }
    /// Operands at these positions, with as many heads and batches of keys and values as of queries.
    Result<FlexOperands> read(size_t score, size_t blocks, size_t scale, size_t captured) {
        for (size_t i = 0; i < m_call.args().size() && i < (score == 3 ? 3u : 5u); ++i)
            if (!m_call.arg(i).node() || !m_call.arg(i).node()->type().tensor() || (i < 3 && operand(i).rank() != 4))
                return refuse("needs queries, keys and values of 4 dims");
        if (m_call.args().size() <= scale) return refuse("arguments are missing");
        const auto* list = m_call.arg(blocks).list();
        if (!list || list->empty()) return refuse("the block mask is not a tuple");
        FlexOperands x;
        CT_TRY(x.score, graphAt(m_call.arg(score), captured));
        CT_TRY(x.mask, graphAt(list->back(), captured + 1));
        x.scale = m_call.arg(scale);
        x.query = operand(0);
        if (x.query.dtype() == DType::F64) x.working = DType::F64;
        x.key = spread(operand(1), x.query);
        x.value = spread(operand(2), x.query);
        if (m_builder.error()) return *m_builder.error();
        return x;
    }
    /// Each head of keys serves a group of heads of queries, and one batch of keys all batches of queries.
    Value spread(Value x, const Value& query) {
        const SymInt heads = query.size(1), own = x.size(1);
        if (!(heads == own)) {
            const SymDims grouped = {x.size(0), own, floorDiv(heads, own), x.size(2), x.size(3)};
            x = reshape(expand(unsqueeze(x, 2), grouped), {x.size(0), heads, x.size(2), x.size(3)});
        }
        if (x.size(0) == query.size(0)) return x;
        return expand(x, {query.size(0), x.size(1), x.size(2), x.size(3)});
    }
    /// The gradient of what was spread over heads and batches.
    Value gathered(Value gradient, const Value& to) {
        const SymInt heads = gradient.size(1), own = to.size(1);
        if (!(heads == own)) {
            const SymDims grouped = {gradient.size(0), own, floorDiv(heads, own), gradient.size(2), gradient.size(3)};
            gradient = sum(reshape(gradient, grouped), {2}, false);
        }
        return gradient.size(0) == to.size(0) ? gradient : sum(gradient, {0}, true);
    }
    Value scoresOf(const FlexOperands& x) {
        return product(convert(x.query, x.working), transposed(convert(x.key, x.working))) * OperandValue(x.scale);
    }
    Value maskedScores(const FlexOperands& x, const Value& scores) {
        m_sizes = scores.sizes();
        const Value mask = forEachScore(x.mask, {}, {}, DType::Bool),
                    modified = forEachScore(x.score, {scores}, {}, x.working);
        return where(mask, modified, full({}, kMasked, x.working));
    }

    /// What the graph makes of each score: of `first`, its batch, head, query and key, `last`, and what it captures.
    Value forEachScore(const ElementGraph& graph, std::vector<Value> first, std::vector<Value> last, DType dtype) {
        if (m_builder.error()) return {};
        std::vector<Value> places;
        const auto inputs = graph.body->graph().placeholders();
        for (size_t dim = 0; dim < m_sizes.size(); ++dim) {
            const size_t position = first.size() + dim;
            const TensorType* type = position < inputs.size() ? inputs[position]->type().tensor() : nullptr;
            places.push_back(
                iota(m_builder, m_sizes[dim], operand(0).type().device, 0, 1, type ? type->dtype : DType::I64));
        }
        const auto example = [&](const Value& x, size_t dim) {
            return call(kAddBatchDim, {x, int64_t{0}, levelAt(dim)});
        };
        for (size_t dim = 0; dim < m_sizes.size(); ++dim) {
            call(kVmapBegin, {Argument(m_sizes[dim]), std::string("error")});
            for (Value& x : first) x = example(x, dim);
            for (Value& x : last) x = example(x, dim);
            places[dim] = example(places[dim], dim);
        }
        std::vector<Argument> args = {Argument(SubgraphRef{graph.name})};
        for (const auto* list : {&first, &places, &last}) args.insert(args.end(), list->begin(), list->end());
        args.insert(args.end(), graph.captured.begin(), graph.captured.end());
        Value one = callGraph(graph, std::move(args));
        for (size_t dim = m_sizes.size(); one && dim-- > 0;) {
            one = call(kRemoveBatchDim, {one, levelAt(dim), Argument(m_sizes[dim]), int64_t{0}});
            call(kVmapEnd, {});
        }
        return one ? convert(one, dtype) : one;
    }
    int64_t levelAt(size_t dim) const { return m_level + 1 + static_cast<int64_t>(dim); }
    /// The first result of the graph.
    Value callGraph(const ElementGraph& graph, std::vector<Argument> args) {
        if (m_builder.error()) return {};
        std::vector<Argument> results = graph.body->graph().outputs();
        const bool several = results.size() > 1 || (results.size() == 1 && results[0].list());
        if (results.size() == 1 && results[0].list()) results = std::vector<Argument>(*results[0].list());
        TupleType types;
        for (const Argument& result : results) types.push_back(result.node() ? result.node()->type() : ValueType());
        if (types.empty() || !types[0].tensor()) {
            m_builder.fail(refuse("graph '" + graph.name + "' returns no tensor"));
            return {};
        }
        Node& made = m_module.graph().call(findOrMakeOpaque("higher_order.wrap"), std::move(args),
                                           several ? ValueType(types) : types[0], &m_call, "flex_" + graph.name);
        m_module.graph().setProvenance(made, m_builder.sharedProvenance());
        const Value all = m_builder.value(made);
        return several ? all[0] : all;
    }
    /// A joint graph returns the gradients of the score, of its four numbers, and of what is captured.
    Result<void> refuseGradients(const Module& joint) const {
        std::vector<Argument> results = joint.graph().outputs();
        if (results.size() == 1 && results[0].list()) results = std::vector<Argument>(*results[0].list());
        for (size_t i = 5; i < results.size(); ++i)
            if (results[i].node())
                return unsupported(m_call.op().name() + ": gradients of tensors that a score captures", m_call.name(),
                                   {"compile the forward for training, whose gradients are derived here"});
        return {};
    }
    Result<std::vector<Node*>> finished(const std::vector<Value>& values) const {
        if (m_builder.error()) return *m_builder.error();
        std::vector<Node*> nodes;
        for (const Value& value : values) nodes.push_back(value.node());
        return nodes;
    }

    Module& m_module;
    Node& m_call;
    GraphBuilder m_builder;
    SymDims m_sizes;      // of the scores: batches, heads, queries, keys
    int64_t m_level = 0;  // of the vmap that the call stands in
};

}  // namespace

Result<bool> writeFlexAttention(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, writeFlexAttention(*body, rewriter));
        changed |= inner;
    }
    for (Node* node : LiveNodes(module.graph())) {
        const FlexKind kind = kindOf(*node);
        if (kind == FlexKind::None) continue;
        if (rewriter.begin(rewriter.pass(), *node, "its graphs run for each score") != Go::Yes) return changed;
        FlexAttention attention(module, rewriter, *node);
        CT_TRY(const std::vector<Node*> made, kind == FlexKind::Forward ? attention.forward() : attention.backward());
        CT_TRY_VOID(rewriter.replaceTuple(*node, made));
        changed = true;
    }
    return changed;
}

}  // namespace cutaway
