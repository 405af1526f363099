#include "engine/passes/post_grad/simple_passes.h"

#include <algorithm>
#include <list>

#include "engine/passes/post_grad/wait_tensor.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/matcher.h"
#include "engine/rewrite/refusing.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

/// Erases calls of these ops, which nobody reads, last first.
template <size_t N>
Result<bool> eraseCalls(Module& module, Rewriter& rewriter, const std::string_view (&ops)[N], std::string_view why) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, eraseCalls(*body, rewriter, ops, why));
        changed |= inner;
    }
    Graph& graph = module.graph();
    for (Node* node = graph.last(); node != nullptr;) {
        Node* const previous = node->previous();
        const bool found =
            node->isCall() && std::find(std::begin(ops), std::end(ops), node->op().name()) != std::end(ops);
        if (found && node->hasUsers()) {
            Refusing(rewriter, node->op().baseName(), *node)(*node->users()[0], " reads it");
        } else if (found) {
            const Go go = rewriter.begin(node->op().baseName(), *node, why);
            if (go == Go::Stop) return changed;
            if (go == Go::Yes) {
                graph.erase(*node);
                changed = true;
            }
        }
        node = previous;
    }
    return changed;
}

/// Computes the order that PyTorch's walk ends with before anything is moved, since a move may undo an earlier one.
class LocalityOrder {
  public:
    LocalityOrder(const Graph& graph, Release release)
        : m_regions(graph),
          m_drawsStay(has(release, ReleaseChange::DrawsInOrder)),
          m_seen(graph.idLimit(), false),
          m_places(graph.idLimit()) {
        for (Node& node : graph.nodes()) m_places[index(node.id())] = m_order.insert(m_order.end(), &node);
    }
    std::vector<Node*> run() {
        const auto isCopy = [](const Node* node) { return node->isCall("aten.copy_.default"); };
        const auto firstCopy = std::find_if(m_order.begin(), m_order.end(), isCopy);
        bool behindCopy = firstCopy != m_order.end();
        for (auto at = m_order.end(); at != m_order.begin();) {
            --at;
            Node& node = **at;
            m_seen[index(node.id())] = true;
            if (behindCopy) {
                behindCopy = at != firstCopy;
                continue;
            }
            for (Node* input : node.inputs())
                if (isMovable(*input, node)) m_order.splice(at, m_order, m_places[index(input->id())]);
        }
        return {m_order.begin(), m_order.end()};
    }
    /// Why the walk has not moved the node, if it has not.
    bool refuseMove(const Node& node, const Refusing& refuse) const {
        if (node.isCall("operator.getitem")) return refuse("what takes a result out of a tuple is not moved");
        if (!node.hasUsers()) return refuse("nobody reads it");
        const Node* reader = nullptr;
        for (const Node* each : m_order) {
            if (each->isCall("aten.copy_.default"))
                return refuse("it is not read before ", each, ", and what stands from there on keeps its order");
            if (std::find(node.users().begin(), node.users().end(), each) == node.users().end()) continue;
            reader = each;
            break;
        }
        if (reader->isCall(kWait)) return refuse(reader, ", its first reader, waits for it");
        if (m_drawsStay && node.is(Tag::Random)) return refuse("draws of random numbers keep their order");
        if (m_regions.regionOf(node) != m_regions.regionOf(*reader))
            return refuse("a mutation lies between it and ", reader, ", its first reader");
        return refuse("it stands where the walk puts it, before ", reader, ", its first reader");
    }

  private:
    bool isMovable(const Node& node, const Node& reader) const {
        if (!node.isCall() || node.isCall("operator.getitem")) return false;
        // Members of a group must agree on the order of their collectives.
        if (reader.isCall(kWait) || (m_drawsStay && node.is(Tag::Random))) return false;
        const bool readersSeen = std::all_of(node.users().begin(), node.users().end(),
                                             [&](const Node* user) { return m_seen[index(user->id())]; });
        return readersSeen && m_regions.regionOf(node) == m_regions.regionOf(reader);
    }

    MutationRegions m_regions;
    bool m_drawsStay;
    std::vector<bool> m_seen;
    std::list<Node*> m_order;
    std::vector<std::list<Node*>::iterator> m_places;
};

}  // namespace

Result<bool> viewToReshape(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, viewToReshape(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    const Op& reshape = requireOp("aten.reshape.default");
    for (Node& node : graph.nodes()) {
        if (!node.isCall("aten.view.default")) continue;
        if (rewriter.begin("view_to_reshape", node, "later passes may change strides") != Go::Yes) return changed;
        graph.setOp(node, reshape, node.args(), node.type());
        changed = true;
    }
    return changed;
}

Result<bool> removeProfilerOps(Module& module, Rewriter& rewriter) {
    static constexpr std::string_view kOps[] = {
        "profiler._record_function_enter.default", "profiler._record_function_enter_new.default",
        "profiler._record_function_exit.default", "profiler._record_function_exit._RecordFunction"};
    return eraseCalls(module, rewriter, kOps, "profiler marks mean nothing in compiled code");
}

Result<bool> removeAssertOps(Module& module, Rewriter& rewriter) {
    static constexpr std::string_view kOps[] = {"aten._assert_tensor_metadata.default"};
    return eraseCalls(module, rewriter, kOps, "types have been fixed since capture");
}

Result<bool> reorderForLocality(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, reorderForLocality(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    LocalityOrder plan(graph, rewriter.request().pytorch);
    const std::vector<Node*> order = plan.run();
    for (const Node* node : order)
        if (rewriter.watches(*node)) plan.refuseMove(*node, Refusing(rewriter, "reorder_for_locality", *node));
    // From the end, so that after every single move the graph is in order.
    for (size_t i = order.size() - 1; i-- > 0;) {
        if (order[i]->next() == order[i + 1]) continue;
        if (rewriter.begin("reorder_for_locality", *order[i], "it is made shortly before it is read") != Go::Yes)
            return changed;
        graph.moveBefore(*order[i], *order[i + 1]);
        changed = true;
    }
    return changed;
}

Result<bool> stableSort(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, stableSort(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    const Node* late = nullptr;
    for (const Node& node : graph.nodes()) {
        const auto inputs = node.inputs();
        const auto behind = std::find_if(inputs.begin(), inputs.end(),
                                         [&](const Node* input) { return !graph.isBefore(*input, node); });
        const Refusing refuse(rewriter, "stable_topological_sort", node);
        if (behind == inputs.end()) refuse("it stands behind all its operands");
        else if (late) refuse("the graph is sorted once, from ", late, " on");
        else late = &node;
    }
    if (late == nullptr || rewriter.begin("stable_topological_sort", *late, "it stands before its operands") != Go::Yes)
        return changed;
    sortTopologically(graph);
    return true;
}

}  // namespace cutaway
