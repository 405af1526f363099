#include "engine/passes/joint/auto_chunker.h"

#include <algorithm>
#include <map>

#include "engine/passes/joint/chunk_plan.h"
#include "engine/rewrite/matcher.h"

namespace cutaway {
namespace {

std::string_view unlessChunked(const Match& match) {
    const ChunkPlanning planning = planChunks(match.root().graph(), ChunkSettings(match.request()), &match.root());
    if (!planning.plan) match.note(planning.reason);
    return planning.plan ? "" : "the product is not computed in chunks";
}
/// `build` of rules that only explain (autoChunkerRules): autoChunker itself rewrites more than the product.
template <bool bias>
Values productItself(const Match& match, GraphBuilder& builder) {
    return builder.callBound(match.root().op(), match.root().args());
}

constexpr std::string_view kWhyChunks =
    "the result is much larger than what it is made of, and is never needed as a whole";
constexpr Rule kChunkRules[] = {
    {.name = "chunk_mm",
     .find = "y = aten.mm.default(a, b); return y",
     .build = productItself<false>,
     .unless = unlessChunked,
     .why = kWhyChunks},
    {.name = "chunk_addmm",
     .find = "y = aten.addmm.default(c, a, b, ...); return y",
     .build = productItself<true>,
     .unless = unlessChunked,
     .why = kWhyChunks},
};

/// Puts the part that a plan describes into subgraphs and calls them chunk after chunk.
class Chunker {
  public:
    Chunker(Module& module, Rewriter& rewriter, const ChunkPlan& plan)
        : m_module(module), m_graph(module.graph()), m_rewriter(rewriter), m_plan(plan) {}
    Result<void> run();

  private:
    const Cut& cut(const Node& node) const { return *m_plan.cutOf(node); }
    /// Moves behind the part what neither belongs to it nor is needed by it. Returns the node before which the part is
    /// inserted.
    Node* makeRoom();
    void makeOperands(GraphBuilder& builder);
    Result<std::string> bodyFor(int64_t rows);
    Result<std::unique_ptr<Module>> buildBody(const std::string& name, int64_t rows);
    void copyBody(GraphBuilder& builder, std::vector<Node*>& copies, int64_t rows);
    Result<void> callBody(GraphBuilder& builder, size_t chunk);
    /// An output as it was before, from what the chunks made.
    Value recovered(GraphBuilder& builder, size_t output);

    Module& m_module;
    Graph& m_graph;
    Rewriter& m_rewriter;
    const ChunkPlan& m_plan;
    std::vector<Value> m_ones;                 // in place of the tangents
    std::vector<std::vector<Value>> m_pieces;  // per input; empty if it is not cut
    std::vector<Value> m_sums;                 // per output; null if it is not summed
    std::vector<std::vector<Value>> m_made;    // per output, its chunks; empty if it is summed
    std::map<int64_t, std::string> m_bodies;   // by rows
};

Node* Chunker::makeRoom() {
    std::vector<bool> before(m_graph.idLimit());
    const auto mark = [&](const Node* node) { before[static_cast<size_t>(node->id())] = true; };
    for (const auto* nodes : {&m_plan.inputs, &m_plan.tangents, &m_plan.body})
        for (const Node* node : *nodes) mark(node);
    std::vector<bool> body(m_graph.idLimit());
    for (const Node* node : m_plan.body)
        body[static_cast<size_t>(node->id())] = cut(*node).dim >= 0 || cut(*node).summed;
    Node* first = m_graph.outputNode();
    for (Node* node : m_graph.nodeList()) {
        if (node->isOutput() || before[static_cast<size_t>(node->id())]) continue;
        bool ready = true;
        node->forEachInput([&](const Node* input) {
            ready &= before[static_cast<size_t>(input->id())] && !body[static_cast<size_t>(input->id())];
        });
        if (ready) {
            mark(node);
            continue;
        }
        m_graph.moveBefore(*node, *m_graph.outputNode());
        if (first->isOutput()) first = node;
    }
    return first;
}

void Chunker::makeOperands(GraphBuilder& builder) {
    const auto filled = [&](const TensorType& type, DType dtype, int64_t value) {
        return builder.call("aten.full.default", {Argument(type.sizes), value},
                            {{"dtype", dtype}, {"device", type.device}});
    };
    for (const Node* tangent : m_plan.tangents) m_ones.push_back(filled(tangent->tensor(), tangent->tensor().dtype, 1));
    for (Node* input : m_plan.inputs) {
        std::vector<Value>& pieces = m_pieces.emplace_back();
        if (cut(*input).dim < 0) continue;
        const Value chunks = builder.call("aten.chunk.default", {builder.value(*input), m_plan.count, cut(*input).dim});
        for (size_t i = 0; i < m_plan.rows.size() && chunks; ++i) pieces.push_back(chunks[static_cast<int64_t>(i)]);
    }
    for (const Node* output : m_plan.outputs) {
        const TensorType& type = output->tensor();
        // Single numbers add up in f32 at least.
        const bool single =
            std::all_of(type.sizes.begin(), type.sizes.end(), [](const SymInt& size) { return size == SymInt(1); });
        m_sums.push_back(cut(*output).summed ? filled(type, single && isHalf(type.dtype) ? DType::F32 : type.dtype, 0)
                                             : Value());
    }
    m_made.resize(m_plan.outputs.size());
}

/// Writes the body's calls on chunks. Calls that create tensors create them in the size of a chunk.
void Chunker::copyBody(GraphBuilder& builder, std::vector<Node*>& copies, int64_t rows) {
    for (const Node* node : m_plan.body) {
        std::vector<Argument> args;
        for (const Argument& arg : node->args())
            args.push_back(arg.mapNodes([&](Node* input) { return copies[static_cast<size_t>(input->id())]; }));
        const size_t sizes = node->isCall("aten.full.default") ? 0 : 1;
        if ((sizes == 0 || node->isCall("aten.expand.default")) && cut(*node).dim >= 0) {
            SymDims shape = node->tensor().sizes;
            shape[static_cast<size_t>(cut(*node).dim)] = rows;
            args[sizes] = Argument(shape);
        }
        Provenance provenance = node->provenance();
        provenance.origin = {node->id()};
        provenance.sourceName.clear();
        provenance.createdBy = std::string(m_rewriter.pass());
        builder.setProvenance(std::move(provenance));
        copies[static_cast<size_t>(node->id())] = builder.callBound(node->op(), std::move(args), node->name()).node();
        if (builder.error()) return;
    }
}

Result<std::unique_ptr<Module>> Chunker::buildBody(const std::string& name, int64_t rows) {
    auto body = std::make_unique<Module>();
    body->name = name;
    Graph& graph = body->graph();
    graph.reserveIds(m_graph.idLimit());
    std::vector<Node*> copies(m_graph.idLimit());
    const auto placeholder = [&](const Node& like, TensorType type) {
        body->inputs.emplace_back();
        return &graph.placeholder(like.name(), std::move(type));
    };
    for (size_t i = 0; i < m_plan.inputs.size(); ++i) {
        const Node& input = *m_plan.inputs[i];
        TensorType type = input.tensor();
        if (cut(input).dim >= 0) type.sizes[static_cast<size_t>(cut(input).dim)] = rows;
        copies[static_cast<size_t>(input.id())] = placeholder(input, std::move(type));
    }
    for (size_t i = 0; i < m_ones.size(); ++i)
        copies[static_cast<size_t>(m_plan.tangents[i]->id())] = placeholder(*m_ones[i].node(), m_ones[i].type());
    std::vector<Node*> sums;
    for (const Value& sum : m_sums) sums.push_back(sum ? placeholder(*sum.node(), sum.type()) : nullptr);

    GraphBuilder builder(graph);
    copyBody(builder, copies, rows);
    std::vector<Argument> results;
    for (size_t i = 0; i < m_plan.outputs.size() && !builder.error(); ++i) {
        const Value made = builder.value(*copies[static_cast<size_t>(m_plan.outputs[i]->id())]);
        results.push_back(sums[i] ? made + builder.value(*sums[i]) : made);
        body->outputs.emplace_back();
    }
    if (builder.error()) return *builder.error();
    graph.output(Argument(ArgumentList{std::move(results), true}));
    m_graph.reserveIds(graph.idLimit());  // ids are unique in all graphs of a run
    return body;
}

Result<std::string> Chunker::bodyFor(int64_t rows) {
    std::string& name = m_bodies[rows];
    if (!name.empty()) return name;
    int64_t number = 0;
    do name = "chunking_subgraph_" + std::to_string(number++);
    while (m_module.subgraph(name) != nullptr);
    CT_TRY(auto body, buildBody(name, rows));
    m_module.subgraphs.emplace_back(name, std::move(body));
    return name;
}

Result<void> Chunker::callBody(GraphBuilder& builder, size_t chunk) {
    CT_TRY(const std::string name, bodyFor(m_plan.rows[chunk]));
    std::vector<Argument> args = {SubgraphRef{name}, Argument(name)};
    for (size_t i = 0; i < m_plan.inputs.size(); ++i)
        args.push_back(m_pieces[i].empty() ? Argument(m_plan.inputs[i]) : Argument(m_pieces[i][chunk]));
    for (const Value& one : m_ones) args.push_back(one);
    for (const Value& sum : m_sums)
        if (sum) args.push_back(sum);
    TupleType types;
    for (const Argument& result : m_module.subgraph(name)->graph().outputs()) types.push_back(result.node()->type());
    const Value call = builder.callBound(findOrMakeOpaque("higher_order.invoke_subgraph"), std::move(args));
    if (!call) return {};
    m_graph.setType(*call.node(), std::move(types));
    for (size_t i = 0; i < m_plan.outputs.size(); ++i) {
        const Value result = call[static_cast<int64_t>(i)];
        if (m_sums[i]) m_sums[i] = result;
        else m_made[i].push_back(result);
    }
    return {};
}

Value Chunker::recovered(GraphBuilder& builder, size_t output) {
    const Node& node = *m_plan.outputs[output];
    Value value = m_sums[output];
    if (!value)
        value = builder.call(
            "aten.cat.default",
            {Argument(std::vector<Argument>(m_made[output].begin(), m_made[output].end())), cut(node).dim});
    if (const Node* scale = cut(node).scale) value = builder.call("aten.mul.Tensor", {value, const_cast<Node*>(scale)});
    // Converted also where the sum has this dtype already, as in PyTorch; remove_noop_ops drops that.
    if (cut(node).summed && node.tensor().dtype != DType::F32)
        value = builder.call("prims.convert_element_type.default", {value, node.tensor().dtype});
    return value;
}

Result<void> Chunker::run() {
    GraphBuilder builder = m_rewriter.builder(m_graph, makeRoom(), *m_plan.product);
    makeOperands(builder);
    for (size_t chunk = 0; chunk < m_plan.rows.size() && !builder.error(); ++chunk)
        CT_TRY_VOID(callBody(builder, chunk));
    std::map<const Node*, Node*> replacements;
    for (size_t i = 0; i < m_plan.outputs.size() && !builder.error(); ++i)
        replacements[m_plan.outputs[i]] = recovered(builder, i).node();
    if (builder.error()) return *builder.error();
    for (auto node = m_plan.body.rbegin(); node != m_plan.body.rend(); ++node) {
        const auto found = replacements.find(*node);
        if (found != replacements.end()) m_rewriter.replace(**node, *found->second);
        else if (!(*node)->hasUsers()) m_graph.erase(**node);
    }
    return {};
}

std::string sentence(const ChunkPlan& plan) {
    return std::string(kWhyChunks) + ": " + std::to_string(plan.rows[0]) + " rows at a time, in " +
           std::to_string(plan.rows.size()) + " chunks";
}

}  // namespace

Result<bool> autoChunker(Module& module, Rewriter& rewriter) {
    const ChunkPlanning planning = planChunks(module.graph(), ChunkSettings(rewriter.request()));
    if (!planning.plan) return false;
    const ChunkPlan& plan = *planning.plan;
    const std::string_view rule = plan.product->isCall("aten.mm.default") ? kChunkRules[0].name : kChunkRules[1].name;
    if (rewriter.begin(rule, *plan.product, sentence(plan)) != Go::Yes) return false;
    CT_TRY_VOID(Chunker(module, rewriter, plan).run());
    return true;
}

std::span<const Rule> autoChunkerRules() { return kChunkRules; }

}  // namespace cutaway
