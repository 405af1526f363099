// What each node is to the scheduler: a kernel's, a library's, a view, or made again wherever it is read.
#include "engine/ir/data_dependent.h"
#include "engine/ir/unbacked_sizes.h"
#include "engine/schedule/fusion.h"
#include "engine/schedule/lowering_memo.h"

namespace cutaway {
namespace {

using Role = NodeFacts::Role;

class Classifier {
  public:
    Classifier(const Graph& graph, const Schedule& schedule)
        : m_graph(&graph), m_schedule(&schedule), m_facts(graph.idLimit()), m_probed(graph.idLimit()) {}

    std::vector<NodeFacts> run() {
        int position = 0;
        markDead();
        for (const Node& node : m_graph->nodes()) {
            NodeFacts& nodeFacts = facts(node);
            nodeFacts.position = position++;
            if (nodeFacts.role != Role::Dead) nodeFacts.role = roleOf(node, nodeFacts);
        }
        return std::move(m_facts);
    }

  private:
    NodeFacts& facts(const Node& node) { return m_facts[index(node.id())]; }
    /// Kept, because trying a rule builds expressions and a node is asked about for each of its operands.
    const RuleFacts& probed(const Node& node) {
        std::optional<RuleFacts>& facts = m_probed[index(node.id())];
        if (!facts) facts = probe(node, m_schedule->target, *m_schedule->memo);
        return *facts;
    }
    bool isLibrarys(const Node& node) const { return m_schedule->libraries.contains(node.id()); }

    /// Marks calls without effects that no living node reads, nor needs for a size that they find.
    void markDead() {
        std::map<const Node*, std::vector<const Node*>> sizes;  // by finder; lookups only
        for (const auto& [finder, reader] : foundSizes(*m_graph)) sizes[finder].push_back(reader);
        std::vector<const Node*> order;
        for (const Node& node : m_graph->nodes()) order.push_back(&node);
        for (auto at = order.rbegin(); at != order.rend(); ++at) {
            const Node& node = **at;
            if (!node.isCall() || node.is(Tag::Impure) || node.op().mutates()) continue;
            const auto lives = [&](const Node* user) { return facts(*user).role != Role::Dead; };
            bool read = std::any_of(node.users().begin(), node.users().end(), lives);
            if (const auto found = sizes.find(&node); found != sizes.end())
                read |= std::any_of(found->second.begin(), found->second.end(), lives);
            if (!read) facts(node).role = Role::Dead;
        }
    }
    Role roleOf(const Node& node, NodeFacts& nodeFacts) {
        if (node.isOutput()) return Role::Output;
        if (!node.isCall()) return node.type().sym() ? Role::Symbol : Role::Input;
        if (const SymType* sym = node.type().sym())
            return sym->expr && !readsData(node) ? Role::Symbol : Role::External;
        if (node.isCall("operator.getitem")) return Role::Alias;
        if (node.is(Tag::View) && !node.op().mutates()) return Role::Alias;
        if (node.op().mutates() || drawsFromRun(node) || sizeDependsOnData(node.op(), node.args()) ||
            node.is(Tag::Impure)) {
            nodeFacts.rule.whyNot = node.op().mutates() ? "it writes to memory that others see"
                                                        : "its result does not follow from its operands' elements";
            return Role::External;
        }
        if (isLibrarys(node)) {
            nodeFacts.rule.whyNot = "a library computes it";
            return Role::External;
        }
        nodeFacts.rule = probed(node);
        if (!nodeFacts.rule.lowers) return Role::External;
        return isFree(node, nodeFacts.rule) ? Role::Free : Role::Lowered;
    }
    /// Whether a number is read from a tensor's data; all others follow from sizes.
    static bool readsData(const Node& node) {
        const std::string_view name = node.op().baseName();
        return name == "_local_scalar_dense" || name == "item";
    }
    /// Constants and functions of the index alone: cheaper to compute again than to read, unless a reader needs them in
    /// memory.
    bool isFree(const Node& node, const RuleFacts& rule) {
        if (rule.reduces || rule.divides || node.type().tuple() || rule.cost > m_schedule->target.fusion.freeCost)
            return false;
        for (const Node* input : node.inputs()) {
            const Role role = facts(*rootOf(*input).node).role;
            if (role != Role::Free && role != Role::Symbol) return false;
        }
        return !needsMemory(node);
    }
    /// Random numbers that a seed among the operands gives have a rule; others follow from the state of the run.
    static bool drawsFromRun(const Node& node) {
        return node.is(Tag::Random) && (node.op().def() == nullptr || !node.op().def()->lower);
    }
    /// True if a reader will want the value (or a view of it) at an address.
    bool needsMemory(const Node& node) {
        for (const Node* user : node.users()) {
            if (user->isOutput()) return true;
            if (facts(*user).role == Role::Dead) continue;
            if (user->is(Tag::View) || user->isCall("operator.getitem")) {
                if (!user->isCall("operator.getitem") && !probed(*user).lowers) return true;
                if (needsMemory(*user)) return true;
            } else if (user->op().mutates() || drawsFromRun(*user) || user->is(Tag::Impure) || isLibrarys(*user) ||
                       !probed(*user).lowers) {
                return true;
            }
        }
        return false;
    }

    const Graph* m_graph;
    const Schedule* m_schedule;
    std::vector<NodeFacts> m_facts;
    std::vector<std::optional<RuleFacts>> m_probed;
};

}  // namespace

std::vector<NodeFacts> classify(const Graph& graph, const Schedule& schedule) {
    return Classifier(graph, schedule).run();
}

}  // namespace cutaway
