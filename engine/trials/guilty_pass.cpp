#include "engine/trials/guilty_pass.h"

#include <unordered_set>

#include "engine/ir/fingerprint.h"
#include "engine/passes/whole_program.h"

namespace cutaway {
namespace {

class Guilty {
  public:
    Guilty(const CompileTrace& trace, int first, int end, const IsWrong& isWrong) : m_trace(trace), m_isWrong(isWrong) {
        for (int i = std::max(0, first); i < end && i < static_cast<int>(trace.steps.size()); ++i)
            if (at(i).info.state == StepState::Changed) m_changed.push_back(i);
    }

    std::optional<int> expected(const std::string& pass) const {
        for (const int step : m_changed)
            if (passOf(at(step)) == pass && !isWrong(step, false) && isWrong(step, true)) return step;
        return {};
    }

    std::optional<int> any() const {
        if (m_changed.empty() || isWrong(m_changed.front(), false) || !isWrong(m_changed.back(), true)) return {};
        size_t good = 0, bad = m_changed.size();  // graphs before the changed step of that number; size(): the last one
        while (bad - good > 1) {
            const size_t middle = good + (bad - good) / 2;
            (isWrong(m_changed[middle], false) ? bad : good) = middle;
        }
        return m_changed[good];
    }

  private:
    const Step& at(int step) const { return m_trace.steps[static_cast<size_t>(step)]; }
    /// Whether the graph before or after the step gives wrong results; one that cannot be made counts as right.
    bool isWrong(int step, bool after) const {
        const auto graph = wholeAt(m_trace, step, after ? at(step).after : at(step).before, after);
        return graph && m_isWrong(*graph);
    }

    const CompileTrace& m_trace;
    const IsWrong& m_isWrong;
    std::vector<int> m_changed;
};

/// Where a node of a later graph comes from in the first one. Nodes keep their ids; new ones say what they were made
/// of.
class Origins {
  public:
    Origins(const CompileTrace& trace, int step) : m_trace(trace), m_step(step) {}

    void add(NodeId id) {
        if (!m_seen.insert(id).second) return;
        if (const Node* node = m_trace.input->graph().find(id)) {
            if (node->isCall()) m_names.push_back(node->name());
            return;
        }
        for (int i = m_step; i >= 0; --i) {
            const Step& step = m_trace.steps[static_cast<size_t>(i)];
            for (const Snapshot* graph : {&step.after, &step.before}) {
                const Node* node = *graph ? (*graph)->graph().find(id) : nullptr;
                if (node == nullptr) continue;
                for (const NodeId origin : node->provenance().origin) add(origin);
                return;
            }
        }
    }
    std::vector<std::string> names() const { return m_names; }

  private:
    const CompileTrace& m_trace;
    int m_step;
    std::unordered_set<NodeId> m_seen;
    std::vector<std::string> m_names;
};

}  // namespace

std::string passOf(const Step& step) { return step.info.stage + "/" + step.info.name; }

std::optional<int> guiltyStep(const CompileTrace& trace, int first, int end, const std::string& expected,
                              const IsWrong& isWrong) {
    const Guilty search(trace, first, end, isWrong);
    return expected.empty() ? search.any() : search.expected(expected);
}

std::vector<std::vector<std::string>> callsChangedBy(const CompileTrace& trace, int step) {
    const Step& guilty = trace.steps[static_cast<size_t>(step)];
    std::vector<std::vector<std::string>> groups;
    const auto add = [&](const Origins& origins) {
        auto names = origins.names();
        if (!names.empty() && (groups.empty() || groups.back() != names)) groups.push_back(std::move(names));
    };
    std::vector<NodeId> places;
    for (const RewriteInfo& rewrite : guilty.rewrites)
        if (rewrite.body.empty() && rewrite.nodeId != NodeId::None) places.push_back(rewrite.nodeId);
    for (const auto& place : {places.begin(), places.empty() ? places.begin() : std::prev(places.end())}) {
        if (place == places.end()) continue;
        Origins origins(trace, step);
        origins.add(*place);
        add(origins);
    }
    if (!guilty.before || !guilty.after) return groups;
    Origins all(trace, step);
    const auto differences = [&](const Graph& from, const Graph& to) {
        for (const Node& node : from.nodes()) {
            const Node* other = node.isCall() ? to.find(node.id()) : &node;
            if (other == nullptr || !(contentFingerprint(*other) == contentFingerprint(node))) all.add(node.id());
        }
    };
    differences(guilty.before->graph(), guilty.after->graph());
    differences(guilty.after->graph(), guilty.before->graph());
    add(all);
    return groups;
}

}  // namespace cutaway
