#include "engine/autograd/forward_ad.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/autograd/dual_levels.h"
#include "engine/autograd/dual_writes.h"
#include "engine/autograd/forward_duals.h"
#include "engine/ir/live_nodes.h"

namespace cutaway {
namespace {

Error refused(std::string what, const Node& where) { return invalidInput(std::move(what), where.name()); }

/// "[3, 4]"
std::string sizesText(const SymDims& sizes) {
    std::string out = "[";
    for (size_t i = 0; i < sizes.size(); ++i) out += (i > 0 ? ", " : "") + sizes[i].text();
    return out + "]";
}

/// The tangents of one depth of nesting.
class Sweep {
  public:
    Sweep(Graph& graph, Rewriter& rewriter, const DualLevels& levels, int depth)
        : m_graph(graph),
          m_rewriter(rewriter),
          m_levels(levels),
          m_depth(depth),
          m_duals(graph, rewriter),
          m_writes(graph, rewriter, m_duals) {}

    /// False when the fuel is used up.
    Result<bool> run() {
        int64_t region = 0;
        for (Node* node = m_graph.first(); node != nullptr && !m_duals.stopped();) {
            Node* const call = node;
            node = node->next();
            if (const int64_t now = m_levels.regionOf(*call, m_depth); now != kSameRegion && now != region) {
                region = now;
                m_duals.forget();  // leaving a level drops its tangents
            }
            if (region == 0 || !call->isCall()) continue;
            CT_TRY(node, visit(*call, node));
        }
        return !m_duals.stopped();
    }

  private:
    Result<Node*> visit(Node& call, Node* next) {
        const bool here = m_levels.depthOf(call) == m_depth;
        for (Node* operand : call.inputs()) CT_TRY_VOID(m_writes.inherit(*operand, call));
        if (here && isMakeDual(call)) {
            CT_TRY_VOID(makeDual(call));
            return next;
        }
        if (here && isUnpackDual(call)) {
            return unpackDual(call);
        }
        if (call.isCall() && call.op().mutates()) return m_writes.write(call);
        if (!m_duals.reaches(call)) return next;
        return m_duals.push(call);
    }

    Result<void> makeDual(Node& call) {
        Node &primal = *call.arg(0).node(), &tangent = *call.arg(1).node();
        const TensorType &x = primal.tensor(), &t = tangent.tensor();
        const auto isContinuous = [](const TensorType& type) {
            return isFloating(type.dtype) || isComplex(type.dtype);
        };
        for (const auto& [type, what] : {std::pair{&x, "primal"}, std::pair{&t, "tangent"}})
            if (!isContinuous(*type))
                return refused(std::string("Expected ") + what + " to be floating point or complex, but got: torch." +
                                   std::string(info(type->dtype).torchName),
                               call);
        if (m_duals.tangentOf(primal))
            return refused(
                "Making a dual Tensor based on a Tensor that already has a forward gradient at the same "
                "level 0 is not supported.",
                call);
        if (m_duals.tangentOf(tangent))
            return refused(
                "Setting a forward grad that itself has a forward gradient at the same level0 is not "
                "supported.",
                call);
        if (x.sizes != t.sizes)
            return refused(
                "Trying to set a forward gradient that has a different size than that of the original "
                "Tensor, this is not supported. Tensor is of size " +
                    sizesText(x.sizes) + " while the given forward gradient is of size " + sizesText(t.sizes) + ".",
                call);
        if (!begin("make_dual", call)) return {};
        GraphBuilder builder = m_rewriter.builder(m_graph, &call, call);
        const Value laidOut = m_writes.laidOutLike(builder, builder.value(primal), builder.value(tangent));
        if (builder.error()) return *builder.error();
        m_graph.setOp(call, requireOp("aten.alias.default"), {Argument(&primal)}, call.type());
        m_duals.setTangent(call, laidOut.node());
        m_writes.cut(call);
        return {};
    }

    Result<Node*> unpackDual(Node& call) {
        Node& dual = *call.arg(0).node();
        const auto level = call.arg(1).asInt();
        Node* const tangent = level && *level > 0 ? nullptr : m_duals.tangentOf(dual);
        if (!begin("unpack_dual", call)) return &call;
        GraphBuilder builder = m_rewriter.builder(m_graph, &call, call);
        const Value primal = unary("aten.alias.default", builder.value(dual));
        if (builder.error()) return *builder.error();
        m_writes.cut(*primal.node());
        CT_TRY_VOID(replaceUnpacked(m_graph, call, *primal.node(), tangent));
        return primal.node()->next();  // the items that stood behind it are gone, too
    }

    bool begin(std::string_view rule, const Node& node) {
        if (m_rewriter.begin(rule, node) == Go::Yes) return true;
        m_duals.stop();
        return false;
    }

    Graph& m_graph;
    Rewriter& m_rewriter;
    const DualLevels& m_levels;
    int m_depth;
    ForwardDuals m_duals;
    DualWrites m_writes;
};

/// Outside of every level a dual is its primal.
Result<bool> unpackOutside(Graph& graph, Rewriter& rewriter, const DualLevels& levels) {
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        if (!isUnpackDual(*node) || levels.depthOf(*node) > 0) continue;
        if (rewriter.begin("unpack_dual", *node) != Go::Yes) return changed;
        GraphBuilder builder = rewriter.builder(graph, node, *node);
        const Value primal = unary("aten.alias.default", builder.value(*node->arg(0).node()));
        if (builder.error()) return *builder.error();
        CT_TRY_VOID(replaceUnpacked(graph, *node, *primal.node(), nullptr));
        changed = true;
    }
    return changed;
}

}  // namespace

Result<bool> forwardAd(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, forwardAd(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    for (const Node& node : graph.nodes())
        if (node.isCall() && !isDualCall(node))
            rewriter.refuse(rewriter.pass(), node, "it makes or opens no dual tensor");
    CT_TRY(const DualLevels levels, DualLevels::of(graph));
    if (levels.empty()) return changed;
    const size_t before = rewriter.done().size();
    CT_TRY_VOID(unpackOutside(graph, rewriter, levels));
    bool finished = true;
    for (int depth = levels.deepest(); depth > 0 && finished; --depth) {
        CT_TRY(finished, Sweep(graph, rewriter, levels, depth).run());
    }
    for (Node* node : LiveNodes(graph)) {
        if (!finished || !isDualLevel(*node) || node->hasUsers()) continue;
        if (rewriter.begin("dual level", *node) != Go::Yes) break;
        graph.erase(*node);
    }
    return changed || rewriter.done().size() > before;
}

}  // namespace cutaway
