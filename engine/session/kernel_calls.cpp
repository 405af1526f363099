// What each call of a compiled run computes, in nodes of its last graph and of those before.
#include "cutaway/kernel_calls.h"

#include <algorithm>
#include <map>
#include <set>

#include "cutaway/guarded.h"
#include "engine/session/chosen_program.h"

namespace cutaway {
namespace {

/// By node, the nodes that went when it came in their place. Of a training run for each half by itself, with the steps
/// that both have in common.
class Replaced {
  public:
    Replaced(const CompileTrace& trace, const std::vector<ScheduledGraph>& scheduled, const std::string& graphName) {
        for (const Step& step : trace.steps) {
            const bool otherHalf = std::any_of(scheduled.begin(), scheduled.end(), [&](const ScheduledGraph& each) {
                return each.name == step.info.graphName && each.name != graphName;
            });
            if (otherHalf || !step.before || !step.after || step.before == step.after) continue;
            for (const Node& node : step.after->graph().nodes()) {
                if (step.before->graph().find(node.id())) continue;
                for (const NodeId origin : node.provenance().origin)
                    if (step.before->graph().find(origin) && !step.after->graph().find(origin))
                        m_by[node.id()].push_back(origin);
            }
        }
    }
    /// All that went for these nodes, over all steps.
    std::vector<NodeKey> by(const std::vector<NodeId>& nodes) const {
        std::set<NodeId> seen(nodes.begin(), nodes.end());
        std::vector<NodeId> front = nodes;
        std::vector<NodeKey> all;
        while (!front.empty()) {
            const auto found = m_by.find(front.back());
            front.pop_back();
            if (found == m_by.end()) continue;
            for (const NodeId id : found->second) {
                if (!seen.insert(id).second) continue;
                front.push_back(id);
                all.push_back(nodeKey(0, id));
            }
        }
        std::sort(all.begin(), all.end());
        return all;
    }

  private:
    std::map<NodeId, std::vector<NodeId>> m_by;
};

}  // namespace

Result<std::vector<KernelCall>> kernelCalls(Session& session, RunId id, const Progress& progress) {
    return guarded([&]() -> Result<std::vector<KernelCall>> {
        CT_TRY(Session::State::Run * run, session.state().run(id));
        CT_TRY(const auto chosen, chosenProgram(*run, {}, progress));
        const std::unique_lock turn(run->turn, std::try_to_lock);  // while it runs there are no times yet
        std::vector<KernelCall> all;
        const std::vector<ScheduledGraph> scheduled = scheduledGraphs(run->trace);
        for (const ScheduledGraph& graphName : scheduled) {
            const ScheduledProgram& program = chosen->program->graphs[graphName.graph];
            const Replaced replaced(run->trace, scheduled, graphName.name);
            for (const ScheduledCall& each : program.calls) {
                KernelCall call;
                call.graphName = graphName.name;
                call.kind = each.description;
                call.replaced = replaced.by(each.nodes);
                for (const NodeId node : each.nodes) call.nodes.push_back(nodeKey(0, node));
                if (each.kind == CallKind::Kernel) {
                    call.kernel = graphName.prefix + program.kernels[each.kernel].kernel.name;
                    for (const ValueKey& value : each.bindings)
                        call.buffers.push_back(value.node ? nodeKey(0, value.node->id()) : NodeKey::None);
                }
                if (turn && all.size() < run->kernelMicroseconds.size())
                    call.microseconds = run->kernelMicroseconds[all.size()];
                all.push_back(std::move(call));
            }
        }
        return all;
    });
}

}  // namespace cutaway
