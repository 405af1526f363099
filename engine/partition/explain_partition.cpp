#include "engine/partition/explain_partition.h"

#include <algorithm>

#include "cutaway/words.h"

namespace cutaway {
namespace {

std::string named(const JointFacts& facts, int node) { return "`" + facts[node].node->name() + "`"; }

std::string listed(const JointFacts& facts, const std::vector<int>& nodes) {
    constexpr size_t kShown = 4;
    std::string out;
    for (size_t i = 0; i < nodes.size() && i < kShown; ++i)
        out += (i == 0 ? "" : i + 1 == nodes.size() ? " and " : ", ") + named(facts, nodes[i]);
    if (nodes.size() > kShown) out += " and " + std::to_string(nodes.size() - kShown) + " more";
    return out;
}

class Explaining {
  public:
    Explaining(const JointFacts& facts, const SavedValues& choice, const Sides& sides)
        : m_facts(facts), m_choice(choice), m_sides(sides) {}

    std::string explain(int node) const {
        const size_t at = static_cast<size_t>(node);
        if (m_sides.saved[at]) return "saved for the backward: " + whySaved(node);
        if (m_sides.forward[at] && m_sides.backward[at]) return "computed again in the backward: " + whyAgain(node);
        if (m_sides.backward[at]) return "in the backward: " + whyBackward(node);
        if (!m_sides.forward[at]) return "on neither side: nothing that is returned depends on it";
        if (m_facts[node].forwardInput) return "an input of the forward, which the backward does not read";
        const std::vector<int> heirs = savedHeirs(node);
        if (heirs.empty()) return "in the forward: the backward needs nothing that is computed from it";
        return "in the forward: of what is computed from it the backward reads only " + listed(m_facts, heirs) +
               ", which " + (heirs.size() == 1 ? "is" : "are") + " saved";
    }

  private:
    const FlowNetwork* network() const { return m_choice.network ? &m_choice.network->network : nullptr; }

    std::vector<int> readersInBackward(int node) const {
        std::vector<int> out;
        for (const int user : m_facts[node].users)
            if (user + 1 < static_cast<int>(m_facts.nodes.size()) && m_sides.backward[static_cast<size_t>(user)] &&
                !m_sides.saved[static_cast<size_t>(user)])
                out.push_back(user);
        return out;
    }
    std::string readBy(int node) const {
        const std::vector<int> readers = readersInBackward(node);
        return readers.empty()
                   ? "the backward returns it"
                   : listed(m_facts, readers) + " of the backward read" + (readers.size() == 1 ? "s" : "") + " it";
    }

    std::string whySaved(int node) const {
        const JointNode& fact = m_facts[node];
        const std::string read = readBy(node);
        if (fact.recompute < 0) return read + ", and it is marked to be saved";
        if (fact.drawsAnew) return read + ", and " + std::string(sentence(EdgeReason::DrawsAnew));
        if (!network()) return read + ", and " + std::string(m_choice.attempt) + " are saved";
        const EdgeReason banned = (*network())[node].source;
        if (banned != EdgeReason::None) return read + ", and " + std::string(sentence(banned));
        const std::vector<int> path = pathFromBanned(node);
        std::string out = read + ", and saving its " + bytesText(fact.bytes) + " is cheapest";
        if (path.empty()) return out;
        out += ": " + named(m_facts, path.front()) + ", from which it is computed, cannot be computed again (" +
               std::string(sentence((*network())[path.front()].source)) + ")";
        if (path.size() > 2) {
            std::vector<int> between(path.begin() + 1, path.end() - 1);
            out += "; the way from there leads through " + listed(m_facts, between);
        }
        return out;
    }

    std::string whyAgain(int node) const {
        const JointNode& fact = m_facts[node];
        if (fact.tagged()) return "it is marked to be";
        if (fact.view) return "a view costs nothing";
        std::vector<int> sources;
        for (const int input : fact.inputs)
            if (m_sides.saved[static_cast<size_t>(input)] || m_sides.backward[static_cast<size_t>(input)])
                sources.push_back(input);
        std::string out = sources.empty() ? "it needs no operands" : "from " + listed(m_facts, sources);
        if (network() && (*network())[node].source == EdgeReason::None && m_choice.budget < 1 &&
            m_choice.recomputedRuntime > 0)
            out += ", because the memory budget is " + numberText(m_choice.budget);
        else out += ", which is cheaper than saving its " + bytesText(fact.bytes);
        return out;
    }

    std::string whyBackward(int node) const {
        const JointNode& fact = m_facts[node];
        if (fact.node->isPlaceholder()) return "it is the gradient of a result";
        if (fact.tangentsClosure) return "it depends on the gradients of the results";
        return "only the backward needs it";
    }

    /// The nodes from one that may not be computed again up to this one, which is on the cut.
    std::vector<int> pathFromBanned(int node) const {
        std::vector<int> next(m_facts.nodes.size(), -1), queue = {node};
        std::vector<bool> seen(m_facts.nodes.size());
        seen[static_cast<size_t>(node)] = true;
        for (size_t at = 0; at < queue.size(); ++at)
            for (const int input : m_facts[queue[at]].inputs) {
                if (seen[static_cast<size_t>(input)]) continue;
                seen[static_cast<size_t>(input)] = true;
                next[static_cast<size_t>(input)] = queue[at];
                if ((*network())[input].source == EdgeReason::None) {
                    queue.push_back(input);
                    continue;
                }
                std::vector<int> path;
                for (int on = input; on >= 0; on = next[static_cast<size_t>(on)]) path.push_back(on);
                return path;
            }
        return {};
    }

    /// Saved values that are computed from the node.
    std::vector<int> savedHeirs(int node) const {
        std::vector<int> out, queue = {node};
        std::vector<bool> seen(m_facts.nodes.size());
        for (size_t at = 0; at < queue.size(); ++at)
            for (const int user : m_facts[queue[at]].users) {
                if (user + 1 == static_cast<int>(m_facts.nodes.size())) continue;
                if (seen[static_cast<size_t>(user)]) continue;
                seen[static_cast<size_t>(user)] = true;
                if (m_sides.saved[static_cast<size_t>(user)]) out.push_back(user);
                else if (m_sides.forward[static_cast<size_t>(user)]) queue.push_back(user);
            }
        std::sort(out.begin(), out.end());
        return out;
    }

    static std::string numberText(double value) {
        char text[32];
        std::snprintf(text, sizeof text, "%g", value);
        return text;
    }

    const JointFacts& m_facts;
    const SavedValues& m_choice;
    const Sides& m_sides;
};

}  // namespace

Sides sidesOf(const JointFacts& facts, const SplitGraph& split) {
    const size_t count = facts.nodes.size();
    Sides sides{std::vector<bool>(count), std::vector<bool>(count), std::vector<bool>(count)};
    for (size_t i = 0; i + 1 < count; ++i) {
        const NodeId id = facts.nodes[i].node->id();
        sides.forward[i] = split.forward->graph().find(id) != nullptr;
        sides.backward[i] = split.backward->graph().find(id) != nullptr;
    }
    for (const std::vector<int>* group : {&split.saved.values, &split.saved.numbers})
        for (const int value : *group) sides.saved[static_cast<size_t>(value)] = true;
    return sides;
}

std::string explainSide(const JointFacts& facts, const SavedValues& choice, const Sides& sides, int node) {
    return Explaining(facts, choice, sides).explain(node);
}

}  // namespace cutaway
